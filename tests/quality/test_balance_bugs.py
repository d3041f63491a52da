"""A bug of what no claim about a trace says: the balance of a router."""

from random import Random

from model.checking.claims import Outcome
from model.grouping import balance_claims
from model.grouping.machine import run as run_router
from model.grouping.rules import least
from model.vocabulary import Event, GroupingConfig, Workload
from tests.quality.planting import Planted

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
