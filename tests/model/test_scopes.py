"""Golden counts of every small scope.

A count notices every change of what can happen. All behaviours of a scope keep every promise.
"""

from collections import Counter
from collections.abc import Callable
from itertools import combinations, product
from math import nan
from typing import Any

import pytest

from model.checking.claims import Outcome
from model.checking.explorer import explore as search
from model.grouping import run as route
from model.grouping.claims import CLAIMS, FEW, judge
from model.join import scopes as join
from model.join.state_claims import COMPLETE, claims_of
from model.join.variants import VARIANTS as OF_CHAINS
from model.join.variants import explore as explore_join
from model.slack.protocol import LATE_TOO_EARLY, WROTE_AGAIN
from model.slack.scopes import explore as explore_slack
from model.vocabulary import Event, GroupingConfig, Workload
from tests.quality.claims import variants_of

EXPLORE: dict[str, Callable[..., Any]] = {
    "slack": explore_slack,
    "join": explore_join,
}
EVERYDAY: dict[str, dict[str, tuple[int, int]]] = {
    "slack": {"small": (12_765, 41_726), "conformal": (1_568, 2_631)},
    "join": {
        "adding": (569, 1_377),
        "removing": (4_196, 12_701),
        "silent": (645, 1_477),
        "cut": (2_308, 5_313),
        "drop": (4_508, 11_879),
        "elastic-drop": (5_849, 15_999),
        "columns": (1_227, 3_208),
        "fifo": (4_256, 11_738),
        "numbered": (5_545, 14_078),
        "balanced": (7_817, 26_646),
        "repeating": (10_578, 35_337),
        "drop-unordered": (10_117, 29_814),
        "balanced-unordered": (12_225, 44_286),
        "flush": (10_615, 27_806),
        "balanced-three": (10_233, 40_040),
        "elastic": (9_437, 31_376),
        "elastic-twice": (9_395, 33_640),
        "adding-large": (11_460, 38_774),
        "three": (9_038, 30_266),
        "unordered": (29_250, 96_677),
    },
}
"""States and transitions of scopes that are explored every day."""
AT_NIGHT: dict[str, dict[str, tuple[int, int]]] = {
    "slack": {"redelivery": (39_973, 169_664)},
    "join": {
        "three-numbered": (21_927, 67_188),
        "flush-unordered": (30_242, 90_233),
        "cut-large": (31_670, 83_480),
        "numbered-large": (33_525, 95_394),
        "four": (35_511, 138_874),
        "fifo-large": (40_743, 123_284),
        "elastic-large": (137_200, 588_857),
        "balanced-large": (308_452, 1_491_138),
    },
}
"""States and transitions of the scopes that take longer."""
BY_DAY = 27_000
"""Transitions of the largest scope of a chain that is explored by day here, as others are alike."""


def is_at_night(room: str, golden: tuple[int, int]) -> bool:
    """Return whether a scope is explored at night only."""
    return room == "join" and golden[1] > BY_DAY


@pytest.mark.parametrize(
    ("room", "scope", "golden"),
    [
        *(
            pytest.param(room, name, n, marks=[pytest.mark.long] * is_at_night(room, n))
            for room, scopes in EVERYDAY.items()
            for name, n in scopes.items()
        ),
        *(
            pytest.param(room, name, n, marks=pytest.mark.long)
            for room, scopes in AT_NIGHT.items()
            for name, n in scopes.items()
        ),
    ],
)
def test_every_behaviour_of_a_small_scope_keeps_the_promises(
    room: str, scope: str, golden: tuple[int, int]
) -> None:
    found = EXPLORE[room](scope)
    assert (found.unique_states, found.transitions) == golden
    assert found.cut is None
    for verdict in found.verdicts:
        assert verdict.outcome is Outcome.HOLDS, (verdict.claim, verdict.witness)


def test_every_scope_of_the_chain_has_a_golden_count() -> None:
    by_day = set(EVERYDAY["join"])
    assert by_day == set(join.EVERYDAY)
    assert {*by_day, *AT_NIGHT["join"]} == set(join.SCOPES)


TUPLES = 4


@pytest.mark.parametrize("policy", ["tag", "tag-literal", "w-choices", "pkg"])
def test_every_small_stream_of_keys_keeps_every_promise(policy: str) -> None:
    """One to four tuples of two keys, one of them finite or not, cut or not after each."""
    config = GroupingConfig(
        3,
        policy,
        ((0, (1, 2, 4)), (2, (4, 2, 1))),
        latency_us=(5, 5, 0),
        senders=2,
        window_tuples=2,
        hash_seed=1,
    ).to_json()
    occurred = Counter[str]()
    for length in range(1, TUPLES + 1):
        for keys in product("abA", repeat=length):
            arrivals = tuple(
                Event(seq, seq, key.lower(), 100, nan if key.isupper() else float(1 << seq), 100)
                for seq, key in enumerate(keys)
            )
            for cuts in [c for n in range(length) for c in combinations(range(1, length), n)]:
                workload = Workload("grouping", arrivals, config, cuts)
                found = judge(workload, route(workload))
                assert all(each.outcome is Outcome.HOLDS for each in found.verdicts), workload
                occurred += Counter(found.guards)
    needed = {**CLAIMS.guards}
    if policy == "pkg":  # which gives no key more than two places
        del needed[FEW]
    assert all(occurred[case] for case in needed.values())


@pytest.mark.long
@pytest.mark.parametrize("name", OF_CHAINS)
def test_every_planted_bug_of_a_chain_has_a_shortest_way(name: str) -> None:
    bug = OF_CHAINS[name]
    found = explore_join(bug.home, name)
    assert bug.promise in {each.claim for each in found.verdicts if each.outcome is Outcome.BROKEN}


def test_a_chain_that_is_quiet_too_early_is_not_complete() -> None:
    scope = OF_CHAINS["silent_merge"].spoil(join.SCOPES["elastic"])
    found = search(join.machine_of(scope), claims_of(scope), promise=COMPLETE)
    assert COMPLETE in {each.claim for each in found.verdicts if each.outcome is Outcome.BROKEN}


@pytest.mark.parametrize(
    ("room", "claim", "scope", "name"),
    [
        ("slack", "wrong answers are pending", "conformal", "closed_by_state"),
        ("slack", "each pair once", "conformal", "mixed_tuple_lost"),
        ("slack", f"never: {WROTE_AGAIN}", "conformal", "lost_update"),
        ("slack", f"never: {LATE_TOO_EARLY}", "conformal", "early_closing"),
    ],
)
def test_every_claim_on_the_states_of_a_task_can_fail(
    room: str, claim: str, scope: str, name: str
) -> None:
    found = EXPLORE[room](scope, variants_of(room)[name].rules)
    assert claim in {each.claim for each in found.verdicts if each.outcome is Outcome.BROKEN}
