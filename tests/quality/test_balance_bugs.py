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


def test_good_balance_is_accepted() -> None:
    assert not broken(CASE, RULES)
    assert not broken(drawn("pkg", (1,) * N), RULES)
    assert not broken(drawn("shuffle", (1,) * N), RULES)
