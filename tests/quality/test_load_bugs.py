"""Bugs of what traces do not say: the balance of a router, and the load of a chain.

A run of a chain is only numbers here.
"""

from collections.abc import Mapping
from random import Random

from model.checking.claims import Outcome
from model.grouping import balance_claims
from model.grouping.machine import run as run_router
from model.grouping.rules import least
from model.join import control
from model.join.load_claims import NO_FALSE_SHEDDING, RUN_CLAIMS, Moment, Moments
from model.vocabulary import Event, GroupingConfig, Workload
from model.vocabulary.join_load import Limits
from tests.quality.planting import Planted

CLAIMS: Mapping[str, frozenset[str]] = {
    "join": frozenset((NO_FALSE_SHEDDING,)),
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


def test_bad_balance_is_found() -> None:
    right = balance_claims.check(CASE, run_router(CASE), WEIGHTS, delta=1e-9)
    assert right.outcome is Outcome.HOLDS
    with Planted(least, lambda _right, candidates, _loads: candidates[0]).in_force():
        trace = run_router(CASE)
    verdict = balance_claims.check(CASE, trace, WEIGHTS, delta=1e-9)
    assert verdict.outcome is Outcome.BROKEN


# ------------------------------------------------------------------------------- load of a chain

LIMITS, CAPACITY = Limits(0.25, 0.75, 0.75), 400
WORKERS, LARGEST = 4, 50
"""Number of workers; largest block size, zeta*."""
STEPS = 40


def rising() -> list[Moment]:
    """Return a load that rises to 1; neighbours differ by a block, as they may."""
    found = []
    for step in range(STEPS):
        mean = step / STEPS
        block = control.choose_block_size(mean, CAPACITY, WORKERS, LIMITS.tau1, LARGEST)
        fullest = mean + block / CAPACITY * (WORKERS - 1) / 2
        found.append(Moment(step, WORKERS, mean, fullest, mean, 0.0))
    return found


def outcome(moments: list[Moment]) -> Outcome:
    (verdict,) = RUN_CLAIMS.over_all([RUN_CLAIMS.judge(Moments(moments, LIMITS, CAPACITY))])
    return verdict.outcome


def test_blocks_that_are_too_large_fill_a_worker() -> None:
    assert outcome(rising()) is Outcome.HOLDS
    with Planted(control.choose_block_size, lambda right, *given: 2 * right(*given)).in_force():
        moments = rising()
    assert outcome(moments) is Outcome.BROKEN
