"""Routers that balance badly are caught from their routes: by a bound, or compared with a fluid."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest

from model.checking.claims import Outcome
from model.grouping import balance_claims
from model.grouping.balance_claims import LOWER, UPPER
from model.grouping.machine import run
from model.grouping.rules import RULES
from model.grouping.state import Rules
from model.grouping.variants import VARIANTS
from model.vocabulary import Event, GroupingConfig, Trace, Workload
from model.vocabulary.grouping import Route

CLAIMS = frozenset((LOWER, UPPER))
"""Claims whose bugs are planted here."""
N = 8
TIMES_US = (1,) * 4 + (10,) * 4
WEIGHTS = {f"k{number}": 1 for number in range(997)}
TUPLES = 12_000


def drawn(policy: str, times_us: tuple[int, ...]) -> Workload:
    """Draw one window of independent, equally likely keys."""
    keys = Random(1).choices(list(WEIGHTS), k=TUPLES)
    arrivals = tuple(Event(seq, seq, key, 100, 1.0, 100) for seq, key in enumerate(keys))
    config = GroupingConfig(N, policy, ((0, times_us),), window_tuples=TUPLES)
    return Workload("grouping", arrivals, config.to_json())


CASE = drawn("tag", TIMES_US)


def broken(case: Workload, rules: Rules) -> set[str]:
    verdicts = balance_claims.check(case, run(case, rules), WEIGHTS, delta=1e-9)
    return {verdict.claim for verdict in verdicts if verdict.outcome is Outcome.BROKEN}


def most(candidates: Sequence[int], loads: Sequence[int]) -> int:
    return max(candidates, key=loads.__getitem__)


BAD = {
    "the most load": replace(RULES, least=most),
    "the first candidate": replace(RULES, least=lambda candidates, _loads: candidates[0]),
    "tuples for time": replace(RULES, costs={}),
    "uniform candidates": VARIANTS["uniform_if_light"].rules,
    "another load": VARIANTS["wrong_instance_charged"].rules,
}


@pytest.mark.parametrize("name", BAD)
def test_bad_balance_is_found(name: str) -> None:
    assert broken(CASE, BAD[name]) == {UPPER}


def test_lost_routes_are_less_work_than_candidates_allow() -> None:
    trace = run(CASE)
    half = Trace("half", [step for step in trace.of(Route) if step.seq % 2])
    verdicts = balance_claims.check(CASE, half, WEIGHTS, delta=1e-9)
    assert LOWER in {each.claim for each in verdicts if each.outcome is Outcome.BROKEN}


@pytest.mark.parametrize("name", BAD)
def test_bad_balance_is_far_from_a_fluid(name: str) -> None:
    # Two windows: in the first one nothing is known to be heavy.
    case = CASE.with_(config={**CASE.config, "window_tuples": TUPLES // 2}, cuts=(TUPLES // 2,))
    assert balance_claims.check_closeness(case, run(case)).outcome is Outcome.HOLDS
    verdict = balance_claims.check_closeness(case, run(case, BAD[name]))
    assert verdict.outcome is Outcome.BROKEN, verdict.sentence


def test_good_balance_is_accepted() -> None:
    assert not broken(CASE, RULES)
    assert not broken(drawn("pkg", (1,) * N), RULES)
    assert not broken(drawn("shuffle", (1,) * N), RULES)


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ({"senders": 2}, "senders is 2; the bound is for one"),
        ({"policy": "pkg", "window_tuples": 9}, "there are 2 windows; loads of 'pkg' go on"),
    ],
)
def test_workloads_outside_the_bound_are_refused(config: dict[str, object], sentence: str) -> None:
    case = CASE.with_(config={**CASE.config, **config}, cuts=(100,))
    with pytest.raises(ValueError, match=sentence):
        balance_claims.check(case, run(case), WEIGHTS, delta=1e-9)
