"""Golden counts of every small scope, and planted bugs in them.

A count notices every change of what can happen. All behaviours of a scope keep every promise.
"""

from collections.abc import Callable
from typing import Any

import pytest

from model.checking.claims import Outcome
from model.checking.explorer import explore as search
from model.grouping import scopes as grouping
from model.grouping.variants import VARIANTS as OF_GROUPING
from model.join import scopes as join
from model.join.state_claims import COMPLETE, COPIES, CROSSED, ONE_PLACE, claims_of
from model.join.variants import VARIANTS as OF_CHAINS
from model.join.variants import explore as explore_join
from model.script import scopes as script
from model.script.variants import VARIANTS as OF_SCRIPT
from model.slack.scopes import explore as explore_slack
from model.watermark.scopes import explore as explore_watermark
from properties.test_scopes import GOLDEN, explore_grouping

UNREACHED = -1
"""Length of the path to a state that must be reached, and never is."""
EXPLORE: dict[str, Callable[..., Any]] = {
    "slack": explore_slack,
    "watermark": explore_watermark,
    "join": explore_join,
    "grouping": grouping.explore,
    "script": script.explore,
}
EVERYDAY: dict[str, dict[str, tuple[int, int]]] = {
    "slack": {"conformal": (1_568, 2_631)},
    "watermark": {"small": (3_839, 6_151)},
    "join": {
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
    "script": {"small": (2_279, 2_226)},
}
"""States and transitions of scopes that are explored every day beside those of ``properties``."""
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
    "script": {"disorder": (1_023, 1_020), "silent": (2_343, 2_340)},
}
"""States and transitions of the scopes that take longer."""
BY_DAY = 32_000
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
    by_day = {*EVERYDAY["join"], *(scope for room, scope in GOLDEN if room == "join")}
    assert by_day == set(join.EVERYDAY)
    assert {*by_day, *AT_NIGHT["join"]} == set(join.SCOPES)


@pytest.mark.parametrize("name", sorted(set(grouping.SCOPES) - {"long", "tag"}))
def test_every_small_stream_of_keys_keeps_every_promise(name: str) -> None:
    found = explore_grouping(name)
    assert (found.unique_states, found.transitions) == GOLDEN["grouping", "tag"]
    for verdict in found.verdicts:
        assert verdict.outcome is Outcome.HOLDS, (verdict.claim, verdict.sentence)


# ------------------------------------------------------------------------------------ planted bugs

SOON = "never: a tuple was late for a window that the watermark had not reached"
BACK = "never: the watermark went back"
PENDING = "wrong answers are pending"
OPEN = "nothing stays open behind the watermark"
COUNTED = "pairs out of order are counted"
READ = "the wait is that of the reading"
BUGS: dict[str, dict[str, tuple[str, int, str]]] = {
    "slack": {
        "early_closing": ("small", 1, SOON),
        "mixed_tuple_lost": ("small", 2, "each pair once"),
        "gamma_only": ("small", UNREACHED, "a correction is due because of age"),
        "slack_winds_up": ("pd", 3, "slack within 0 and the largest delay"),
        "lost_update": (
            "small",
            3,
            "never: the stream wrote a window that it had answered or called late before",
        ),
        "closed_by_state": ("small", 2, PENDING),
        "no_flush": ("redelivery", 4, "exact in the end"),
        "watermark_falls": ("small", 2, BACK),
        "counts_twice": ("redelivery", 3, PENDING),
        "alpha_unclamped": ("conformal", 3, "alpha within 0 and 1"),
        "clears_everything": ("redelivery", 7, PENDING),
        "clears_first": ("small", 4, PENDING),
    },
    "watermark": {
        "literal": ("small", 1, READ),
        "ties_reversed": ("small", 2, COUNTED),
        "cluster_per_batch": ("small", 3, COUNTED),
        "cluster_one_too_many": ("small", 4, COUNTED),
        "pairs_left_behind": ("small", 4, COUNTED),
        "watermark_falls": ("small", 3, BACK),
        "wait_in_floats": ("small", 3, READ),
        "no_warm_up": ("small", 1, READ),
        "closes_early": ("small", 2, SOON),
        "closes_late": ("small", 2, OPEN),
        "mixed_tuple_lost": ("small", 2, "each pair once"),
        "reopens": ("small", 2, OPEN),
        "counts_twice": ("redelivery", 3, "each pair once"),
    },
}
"""Scope, length of a shortest path and broken claim, by variant."""
LENGTHS: dict[str, dict[str, int]] = {
    "join": {
        "no_copy": 5,
        "both_visible": 6,
        "deleted_early": 6,
        "acknowledged_first": 9,
        "acknowledged_later": 6,
        "channel_for_acks": 6,
        "no_numbers": 6,
        "seen_ignored": 6,
        "released_at_once": 7,
        "seen_renewed": 7,
        "blocking_send": 8,
        "balance_alone": 15,
        "local_timer": 4,
        "source_watermark": 5,
        "copies_dropped": 9,
        "silent_merge": 3,
        "halves": 8,
        "opened_at_once": 5,
        "redirected_at_once": 7,
        "end_ignored": 8,
        "floor_within_an_epoch": 6,
        "restored_alone": 9,
    },
    "grouping": {
        "wrong_instance_charged": 3,
        "one_choice_twice": 1,
        "heavy_drawn": 4,
        "uniform_if_light": 3,
        "with_propagation": 5,
        "loads_go_on": 4,
        "last_of_equals": 1,
    },
    "script": {
        "target_not_charged": 0,
        "at_every_change": 1,
        "stamped_at_the_end": 1,
        "union_as_a_set": 1,
        "late_by_all_sensors": 2,
        "late_ones_unseen": 4,
        "one_cluster_for_all": 3,
        "watermark_falls": 4,
        "silence_ignored": 3,
        "floor_taken_back": 4,
        "silent_by_event_time": 3,
        "unasked_unheard": 3,
    },
}
"""Lengths of shortest paths that break a variant's own promise in its home.

Other bugs of routers take longer streams than a scope has.
"""
SCRIPT_HOMES = {
    **dict.fromkeys(("late_ones_unseen", "one_cluster_for_all", "watermark_falls"), "disorder"),
    **dict.fromkeys(
        ("silence_ignored", "floor_taken_back", "silent_by_event_time", "unasked_unheard"), "silent"
    ),
}
"""Scopes of bugs that need an adaptive watermark, or a sensor that falls silent."""
VARIANTS: dict[str, Any] = {"join": OF_CHAINS, "grouping": OF_GROUPING, "script": OF_SCRIPT}


def home_of(room: str, name: str) -> str:
    """Return the scope in which a variant breaks its promise."""
    if room == "join":
        return OF_CHAINS[name].home
    if room == "grouping":
        return grouping.HOMES[name]
    return SCRIPT_HOMES.get(name, script.EVERYDAY[0])


BUGS |= {
    room: {
        name: (home_of(room, name), length, VARIANTS[room][name].promise)
        for name, length in lengths.items()
    }
    for room, lengths in LENGTHS.items()
}


def by_room(room: str, name: str) -> Any:
    """Return parameters; by day ``test_planted_bugs.py`` breaks the promises of other rooms."""
    marks = () if room in ("slack", "watermark") else pytest.mark.long
    return pytest.param(room, name, marks=marks)


@pytest.mark.parametrize(
    ("room", "name"), [by_room(room, name) for room in BUGS for name in BUGS[room]]
)
def test_the_explorer_finds_the_shortest_path_to_a_planted_bug(room: str, name: str) -> None:
    scope, length, claim = BUGS[room][name]
    found = EXPLORE[room](scope, name)
    verdict = next(each for each in found.verdicts if each.claim == claim)
    assert verdict.outcome is Outcome.BROKEN
    if room == "script":
        assert [v.claim for v in found.verdicts if v.outcome is Outcome.BROKEN] == [claim]
    if length == UNREACHED:
        assert claim not in found.paths
        return
    assert len(found.paths[claim].steps) == length
    assert not length or verdict.witness[0].startswith("0. Initially ")


def test_every_planted_bug_of_chains_and_scripts_has_a_shortest_path() -> None:
    assert set(LENGTHS["join"]) == set(OF_CHAINS)
    assert set(OF_SCRIPT) == set(LENGTHS["script"])


@pytest.mark.parametrize(
    ("claim", "name"),
    [
        (ONE_PLACE, "restored_alone"),
        (COPIES, "deleted_early"),
        (CROSSED, "no_copy"),
        (COMPLETE, "silent_merge"),
    ],
)
def test_every_invariant_of_a_chain_can_fail(claim: str, name: str) -> None:
    scope = OF_CHAINS[name].scope
    found = search(join.machine_of(scope), claims_of(scope), max_states=3_000)
    assert claim in {each.claim for each in found.verdicts if each.outcome is Outcome.BROKEN}
