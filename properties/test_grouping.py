"""Room ``grouping``: model, simulation and Spark's operator agree, and its claims hold."""

from collections.abc import Sequence
from math import expm1, log

import pytest
from hypothesis import given

from model.grouping import balance
from model.grouping.claims import CLAIMS
from model.grouping.variants import VARIANTS
from model.vocabulary import GroupingConfig, Workload
from model.vocabulary.grouping import POLICIES
from properties import close_calls
from properties.agreement import Agreement, put_to_the_test, telling
from properties.promised import Reached, promised
from sim.grouping import simulate
from sim.grouping.room import TIMED_ROOM
from straggler.strategies.grouping import cases, timed_cases
from straggler.strategies.hot_keys import skewed
from straggler.strategies.timed_cases import TimedCase
from straggler.strategies.troubled import in_all_regions


@promised(*put_to_the_test(CLAIMS), examples=60)
@telling(each.example for each in VARIANTS.values())
@telling([*close_calls.GROUPING, skewed("tag", 0)])
@given(case=cases())
def test_spark_s_operator_does_what_the_model_does(reached: Reached, case: Workload) -> None:
    Agreement("grouping", reached).of_operator(case)


@promised(
    "tuples of heavy keys",
    "rebalances that changed the table",
    "full summaries",
    "windows with new times",
)
def test_every_policy_agrees_on_hot_keys_that_change(reached: Reached, seed: int) -> None:
    for policy in POLICIES:
        Agreement("grouping", reached).of_operator(skewed(policy, seed))


ABOVE = {(7,) * 16: 2, (7,) * 17: 3, (7,) * 256: 3, (7,) * 257: 4, (1, *[10] * 15): 3}
ABOVE |= {(1,) * 64 + (2,) * 64: 3, (1,) * 64 + (10,) * 64: 2}
"""Tuples that a makespan may be above that of a fluid, by the times of the instances."""


def test_a_window_is_judged_by_its_fluid_and_by_what_may_be() -> None:
    one, two = frozenset({0}), frozenset({0, 1})
    fluid_us = balance.least_time_us(balance.masses([(one, 1), (two, 1.5), (two, 0.5)]), (1, 2))
    assert fluid_us == pytest.approx(2)  # two tuples for the first instance, one for the second
    assert {each: balance.tuples_above(each) for each in ABOVE} == ABOVE
    assert balance.rho((3, 1), (1, 2)) == 1 / 8
    assert balance.imbalance((3, 1), (1, 2)) == pytest.approx(1 / 5)

    def bound_us(a: float) -> float:
        shares = [expm1(4 * a) / expm1(a * time_us) for time_us in (1, 2, 4)]
        return 300 * expm1(4 * a) / (4 * a) + log(sum(shares) / 0.01) / a

    least_us = min(bound_us(10 ** (power / 200)) for power in range(-600, 0))
    assert balance.largest_work_us(0.3, 1_000, (1, 2, 4), 0.01) == pytest.approx(least_us, 1e-4)


@promised("shed", "sent_again", "served_again", "several senders", examples=9)
@given(clusters=in_all_regions(timed_cases))
def test_a_timed_run_is_a_run_of_the_model(
    reached: Reached, clusters: Sequence[TimedCase[GroupingConfig]]
) -> None:
    for config, (plan, seed) in clusters:
        run = simulate(plan, config, seed)
        Agreement("grouping", reached).of_run(run)
        # Routes depend on arrivals alone: the cluster of a replay has other workers and tiers.
        assert TIMED_ROOM.replay(run.workload).trace.digest() == run.trace.digest()
