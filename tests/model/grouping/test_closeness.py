"""Distance of the makespan from that of a fluid: derived bounds and their conditions."""

from itertools import count
from math import log2
from pathlib import Path
from random import Random
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.checking.claims import Outcome
from model.grouping import run
from model.grouping.balance import total_speed, tuples_above
from model.grouping.balance_claims import Closeness, check_closeness, closeness
from model.grouping.machine import Machine
from model.grouping.rules import RULES, first_table
from model.vocabulary import Event, GroupingConfig, Workload

PAGE = (Path(__file__).parents[3] / "docs" / "grouping.md").read_text(encoding="utf-8")
TIMES = st.lists(st.sampled_from((1, 2, 5, 10)), min_size=1, max_size=9).map(tuple)


def windows(keys: list[str], config: GroupingConfig) -> Workload:
    """Return one tuple per key, cut at the ends of windows."""
    arrivals = tuple(Event(seq, seq, key, 100, 1.0, 100) for seq, key in enumerate(keys))
    cuts = tuple(range(config.window_tuples, len(keys), config.window_tuples))
    return Workload("grouping", arrivals, config.to_json(), cuts)


def drawn(config: GroupingConfig, count: int, keys: int = 2_000, seed: int = 1) -> Workload:
    """Return windows of equally likely keys that are drawn independently."""
    return windows(Random(seed).choices([f"k{n}" for n in range(keys)], k=count), config)


def above(n: int, times_us: tuple[int, ...], senders: int = 1) -> list[float]:
    """Return by how much each window after the first exceeds a fluid."""
    config = GroupingConfig(n, "tag", ((0, times_us),), senders=senders, window_tuples=100 * n)
    workload = drawn(config, 400 * n)
    return [each.above for each in closeness(workload, run(workload))]


# --------------------------------------------------------------------------------- what is derived


@given(times_us=TIMES, tuples=st.integers(1, 90))
def test_with_all_instances_as_candidates_the_excess_is_below_one_tuple(
    times_us: tuple[int, ...], tuples: int
) -> None:
    # nag-dynamic routes by time to any instance if all instances are equally near.
    machine = Machine(GroupingConfig(len(times_us), "nag-dynamic", ((0, times_us),)))
    where = machine.route_all(0, ["a"] * tuples)
    counts = tuple(where.count(i) for i in range(len(times_us)))
    fluid_us = tuples / sum(1 / time_us for time_us in times_us)
    assert Closeness(0, counts, times_us, fluid_us).above < 1


@pytest.mark.parametrize(
    ("times_us", "tuples"),
    [
        ((1,), 2),
        ((7,) * 16, 2),
        ((7,) * 17, 3),
        ((7,) * 128, 3),
        ((7,) * 256, 3),
        ((7,) * 257, 4),
        ((1,) * 64 + (10,) * 64, 2),
        ((1,) * 1_000 + (10,) * 1_000, 2),
        ((1,) * 64 + (2,) * 64, 3),
        ((1, *[10] * 15), 3),
    ],
)
def test_how_many_tuples_are_allowed_follows_from_the_times(
    times_us: tuple[int, ...], tuples: int
) -> None:
    assert tuples_above(times_us) == tuples


@pytest.mark.parametrize("n", [2, 4, 8, 16])
@pytest.mark.parametrize("slower", [1, 3, 10])
def test_up_to_sixteen_instances_are_two_tuples_above_at_most(n: int, slower: int) -> None:
    times_us = (1,) * (n // 2) + (slower,) * (n - n // 2)
    assert fmean(above(n, times_us)) <= tuples_above(times_us) == 2


def test_the_excess_over_a_fluid_grows_with_each_sender() -> None:
    one, eight = above(8, (1,) * 8), above(8, (1,) * 8, senders=8)
    assert fmean(one) <= 2 < 4 < fmean(eight) <= 8 * 2


def test_a_verdict_says_how_close_it_is() -> None:
    config = GroupingConfig(4, "tag", ((0, (1, 1, 10, 10)),), window_tuples=400)
    workload = drawn(config, 1_200)
    verdict = check_closeness(workload, run(workload))
    assert verdict.outcome is Outcome.HOLDS
    assert "On average over 2 windows" in verdict.sentence
    assert "2 are allowed" in verdict.sentence
    # The first window and incomplete windows do not count.
    short = workload.with_(arrivals=workload.arrivals[:799], cuts=(400,))
    assert check_closeness(short, run(short)).outcome is Outcome.UNDETERMINED
    other = workload.with_(config={**workload.config, "policy": "key"})
    verdict = check_closeness(other, run(other))
    assert verdict.outcome is Outcome.BROKEN
    assert "tuples above (counts (" in verdict.witness[0]


# ------------------------------------------------------------------- where it needs a condition


def assert_page_says(found: Closeness) -> None:
    """Compare with a row of docs/grouping.md, section 7."""
    fluid_us = sum(found.counts) / total_speed(found.times_us)
    cost = (found.fluid_us - fluid_us) / max(found.times_us)
    assert f"| {found.above:.2f} | {abs(cost):.2f} |" in PAGE


def tournament(n: int) -> Workload:
    """Return tuples of light keys, one each, in the order of a tournament of the instances.

    The keys of a round have two winners of the round before as candidates. The first of the two
    wins, because it gets the tuple. A window of other keys comes first.
    """
    config = GroupingConfig(n, "tag", window_tuples=n - 1)
    candidates = first_table(config, RULES).candidates
    names = (f"k{number}" for number in count())
    keys = []
    winners = list(range(n))
    while len(winners) > 1:
        pairs = list(zip(winners[::2], winners[1::2], strict=True))
        for pair in pairs:
            keys.append(next(name for name in names if candidates(name) == pair))
        winners = [first for first, _ in pairs]
    return windows([f"x{number}" for number in range(n - 1)] + keys, config)


@pytest.mark.parametrize("n", [16, 32])
def test_keys_in_an_unlucky_order_are_further_above(n: int) -> None:
    workload = tournament(n)
    (found,) = closeness(workload, run(workload))
    # A fluid gives every instance less than a tuple. Each round gives its winners one more.
    assert found.fluid_us == pytest.approx((n - 1) / n)
    assert max(found.counts) == log2(n)
    assert found.above > 3
    assert check_closeness(workload, run(workload)).outcome is Outcome.BROKEN
    if n == 16:
        assert_page_says(found)


def test_with_many_equal_instances_two_is_not_enough() -> None:
    config = GroupingConfig(128, "tag", window_tuples=6_400, hash_seed=2)
    shares = [rank**-0.5 for rank in range(1, 2_001)]
    keys = Random(2).choices([f"k{rank}" for rank in range(2_000)], shares, k=2 * 6_400)
    workload = windows(keys, config)
    (found,) = closeness(workload, run(workload))
    assert found.above == pytest.approx(tuples_above((1,) * 128)) == 3
    assert_page_says(found)


def test_candidates_cost_more_tuples_in_longer_windows() -> None:
    n, times_us = 16, (1,) * 8 + (10,) * 8
    shares = [1 / rank for rank in range(1, 1_001)]
    costs = []
    for each in (100, 3_000):
        config = GroupingConfig(n, "tag", ((0, times_us),), window_tuples=each * n)
        keys = Random(1).choices([f"k{rank}" for rank in range(1_000)], shares, k=2 * each * n)
        workload = windows(keys, config)
        (found,) = closeness(workload, run(workload))
        # However long the window is, the router is as close to what its candidates allow.
        assert found.above < 1
        assert_page_says(found)
        costs.append(found.rho_of_candidates)
    assert max(costs) < 0.02
    assert 30 * costs[1] > 10 * costs[0] > 0
