"""Bugs of what traces do not say: the balance of a router, and the load of a chain.

A run of a chain is only numbers here: a load rises and falls, and workers come and go by the
decisions of the model. Spark's controller decides the same to the last bit.
"""

from collections.abc import Mapping
from random import Random

import pytest

from model.checking.claims import Outcome
from model.grouping import balance_claims
from model.grouping.balance_claims import LOWER, UPPER
from model.grouping.machine import run as run_router
from model.grouping.rules import least
from model.join import control
from model.join.control import Watch
from model.join.load_claims import (
    CALM,
    NO_FALSE_SHEDDING,
    RUN_CLAIMS,
    SCALED,
    SHED_AS_ASKED,
    Moment,
    Rule,
    judge,
)
from model.vocabulary import Event, GroupingConfig, Trace, Workload
from model.vocabulary.grouping import Route
from model.vocabulary.join_load import Limits
from tests.quality.planting import Planted

CLAIMS: Mapping[str, frozenset[str]] = {
    "grouping": frozenset((LOWER, UPPER)),
    "join": frozenset((NO_FALSE_SHEDDING, SHED_AS_ASKED, CALM, SCALED)),
}
"""Claims that judge other records than traces, by room."""

# --------------------------------------------------------------------------- balance of a router

WEIGHTS = {f"k{number}": 1 for number in range(997)}
TUPLES = 12_000


def drawn() -> Workload:
    """Draw one window of independent, equally likely keys."""
    keys = Random(1).choices(list(WEIGHTS), k=TUPLES)
    arrivals = tuple(Event(seq, seq, key, 100, 1.0, 100) for seq, key in enumerate(keys))
    times_us = (1,) * 4 + (10,) * 4
    config = GroupingConfig(8, "tag", ((0, times_us),), window_tuples=TUPLES)
    return Workload("grouping", arrivals, config.to_json())


CASE = drawn()


def broken(trace: Trace) -> set[str]:
    verdicts = balance_claims.check(CASE, trace, WEIGHTS, delta=1e-9)
    return {verdict.claim for verdict in verdicts if verdict.outcome is Outcome.BROKEN}


def test_bad_balance_is_found() -> None:
    first = Planted(least, lambda _right, candidates, _loads: candidates[0])
    with first.in_force():
        trace = run_router(CASE)
    assert broken(trace) == {UPPER}


def test_lost_routes_are_less_work_than_candidates_allow() -> None:
    trace = run_router(CASE)
    assert not broken(trace)
    half = Trace("half", [step for step in trace.of(Route) if step.seq % 2])
    assert LOWER in broken(half)


# ------------------------------------------------------------------------------- load of a chain

LIMITS = Limits(0.25, 0.75, 0.75)
RULE = Rule(LIMITS, capacity=400, base=0.1, margin=0.05)
LARGEST = 50
"""Largest block size, zeta*."""
SECOND = 1_000_000
ARRIVALS = 1_000
CHANGE_S = 3
"""Time until workers have come or gone, in seconds."""


def load_at(second: int) -> float:
    """Return the workers that the load would keep busy: about tau1, above it, then fewer."""
    if second < 20:
        return 4 * (0.73 if second % 2 else 0.77)
    if second < 30:
        return 4 * 0.68
    return 4 * 0.77 if second < 200 else 1.5


def run(seconds: int = 900) -> list[Moment]:
    """Run the case study, a moment a second; neighbours differ by a block as they may."""
    workers, wanted, asked, seen, share, moments = 4, 4, 0, Watch(), 0.0, []
    for second in range(seconds):
        mean = min(1.0, load_at(second) / workers)
        block = control.choose_block_size(mean, RULE.capacity, workers, LIMITS.tau1, LARGEST)
        fullest = mean + block / RULE.capacity * (workers - 1) / 2
        shed = round(share * ARRIVALS)
        share = control.share_to_shed(
            share > 0, mean, LIMITS.tau1, RULE.base, RULE.power, RULE.margin
        )
        at_us = second * SECOND
        if wanted == workers:
            asked = second
            seen, wanted = control.watch(seen, at_us, workers, mean, LIMITS)
        moments.append(Moment(at_us, workers, mean, fullest, mean, share, ARRIVALS, shed, wanted))
        if second >= asked + CHANGE_S:
            workers = wanted
    return moments


def outcomes(moments: list[Moment]) -> dict[str, Outcome]:
    return {each.claim: each.outcome for each in RUN_CLAIMS.over_all([judge(moments, RULE)])}


def test_the_right_controller_keeps_every_promise() -> None:
    assert set(outcomes(run()).values()) == {Outcome.HOLDS}


BUGS: Mapping[str, Planted] = {
    NO_FALSE_SHEDDING: Planted(control.choose_block_size, lambda right, *given: 2 * right(*given)),
    SHED_AS_ASKED: Planted(control.share_to_shed, lambda right, *given: right(*given) / 2),
    CALM: Planted(control.share_to_shed, lambda right, _did, *given: right(False, *given)),
    SCALED: Planted(control.workers_for, lambda right, *given: right(*given) + 1),
}


@pytest.mark.parametrize("claim", BUGS)
def test_a_bug_of_a_controller_breaks_its_claim(claim: str) -> None:
    with BUGS[claim].in_force():
        moments = run()
    assert outcomes(moments)[claim] is Outcome.BROKEN
