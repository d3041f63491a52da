"""Windows of both rooms by hand: aggregates, pairs out of order, and corrections."""

from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.slack.assumption import scored
from model.vocabulary import SlackConfig, Step
from model.vocabulary.windows import (
    Cleared,
    Correction,
    Correlation,
    Final,
    Late,
    Result,
    Revision,
)
from model.watermark.evidence import inversions
from model.windows.cluster import READINGS, Cluster, wait_us
from model.windows.correction import advance, due, plan
from model.windows.query import aggregate_of, as_written, quantile
from model.windows.state import History, Pair, Plan, Store
from tests.model.arrivals import stream_of

# --------------------------------------------------------------------------------------- aggregates


@pytest.mark.parametrize(
    ("aggregate", "expected"),
    [
        ("sum", 16.0),
        ("count", 5.0),
        ("avg", 3.2),
        ("min", 1.0),
        ("max", 7.0),
        ("median", 2.0),
        ("quantile", 5.0),
    ],
)
def test_aggregates_of_a_handful(aggregate: str, expected: float) -> None:
    config = SlackConfig(1, 1, aggregate=aggregate, q=0.8, control="fixed")
    assert aggregate_of(config)([5.0, 1.0, 2.0, 7.0, 1.0]) == expected


def test_a_rank_uses_the_decimal_that_was_written() -> None:
    # In float64 0.07 * 100 is 7.000000000000001, whose ceiling is 8.
    assert quantile(as_written(0.07))([float(n) for n in range(1, 101)]) == 7.0
    assert as_written(0.1) == Fraction(1, 10)


# ------------------------------------------------------------------------------- pairs out of order


TIMES = st.lists(st.integers(-5, 5), max_size=20)


def pair_by_pair(times_us: list[int]) -> int:
    return sum(earlier > later for earlier, later in combinations(times_us, 2))


@given(times_us=TIMES, k=st.integers(1, 7))
def test_pairs_out_of_order_are_those_of_the_last_k(times_us: list[int], k: int) -> None:
    cluster = Cluster(k)
    counted = []
    for time_us in times_us:
        cluster.enter(time_us)
        counted.append(cluster.inv)
    expected = [pair_by_pair(times_us[max(0, n - k) : n]) for n in range(1, len(times_us) + 1)]
    assert counted == expected
    assert inversions(times_us, k) == expected
    assert list(cluster.times_us) == times_us[-k:]


@pytest.mark.parametrize(
    ("times_us", "waits"),
    [
        ((7,), {"disorder": 100, "literal": 0, "scaled": 100, "fixed": 100}),
        ((7, 7), {"disorder": 0, "literal": 100, "scaled": 0, "fixed": 100}),
        ((1, 2, 3), {"disorder": 0, "literal": 100, "scaled": 0, "fixed": 100}),
        ((1, 3, 2), {"disorder": 33, "literal": 66, "scaled": 66, "fixed": 100}),
        ((3, 1, 2), {"disorder": 66, "literal": 33, "scaled": 100, "fixed": 100}),
        ((3, 2, 1), {"disorder": 100, "literal": 0, "scaled": 100, "fixed": 100}),
    ],
)
def test_waits_of_small_clusters(times_us: tuple[int, ...], waits: dict[str, int]) -> None:
    assert {name: wait_us(name, 100, Cluster(9, times_us)) for name in READINGS} == waits


# -------------------------------------------------------------------------------------- corrections


CONFIG = SlackConfig(10, 5, control="fixed", gamma_us=5, max_age_us=40)
EVENTS = stream_of((12, 1.0), (14, 2.0), (9, 4.0))


def history() -> History:
    kept = History(CONFIG)
    for event in EVENTS:
        kept.add(event)
    return kept


def values(kept: History, start_us: int, key: str) -> list[float]:
    return [event.value for event in kept.tuples(start_us, key)]


def store() -> Store:
    """Return a store with two windows answered without tuple 1, which is late for both."""
    kept = Store()
    kept.record(Result(0, 5, "a", 0, 5.0, 2, 0, 25))
    kept.record(Result(0, 10, "a", 0, 1.0, 1, 0, 25))
    kept.record(Late(0, 5, "a", 1, 14, 0))
    kept.record(Late(0, 10, "a", 1, 14, 0))
    return kept


def carry_out(kept: Store, made: Plan | None, small_steps: int | None = None) -> list[Step]:
    taken: list[Step] = []
    while made is not None and small_steps != 0:
        made, steps = advance(made, kept)
        taken += steps
        small_steps = None if small_steps is None else small_steps - 1
    return taken


def test_triggers_are_strict() -> None:
    kept = store()
    assert due(CONFIG, kept, 1, 10_000, True) is None
    assert due(CONFIG, kept, 0, 25, True) == "flush"
    assert due(CONFIG, kept, 0, 54, False) is None
    assert due(CONFIG, kept, 0, 55, False) == "age"
    kept.record(Late(0, 0, "a", 7, 9, 0))
    assert due(CONFIG, kept, 0, 25, False) is None
    kept.record(Late(0, 0, "a", 8, 8, 0))
    assert due(CONFIG, kept, 0, 25, False) == "gamma"


def test_a_correction_writes_every_window_then_clears_its_pairs() -> None:
    kept = store()
    steps = carry_out(kept, plan(CONFIG, kept, history(), 0, 3, "flush", scored(CONFIG)))
    expected: list[Step] = [
        Revision(0, 5, "a", 3, 1, 7.0, 3),
        Revision(0, 10, "a", 3, 1, 3.0, 2),
        # No delay between tuples at 12 and 14: [5, 15) is left out, its index is odd.
        Correlation(0, 10, "a", 3, 1, 2, 0, 0, 2),
        Correction(0, 3, "flush", 2, 2),
        Cleared(0, 5, "a", 1, 3),
        Cleared(0, 10, "a", 1, 3),
    ]
    assert steps == expected
    assert kept.final() == [Final(0, 5, "a", 7.0, 3, 1, True), Final(0, 10, "a", 3.0, 2, 1, True)]


def test_a_pair_that_comes_while_a_correction_is_under_way_stays_pending() -> None:
    kept = store()
    made = plan(CONFIG, kept, history(), 0, 3, "flush", scored(CONFIG))
    kept.record(Late(0, 5, "a", 7, 13, 4))
    carry_out(kept, made)
    assert list(kept.all_pending()) == [Pair(0, 5, "a", 7, 13)]
    assert [final.exact for final in kept.final()] == [False, True]


def test_after_a_crash_between_any_two_steps_another_plan_repairs_everything() -> None:
    for small_steps in range(4):
        kept = store()
        carry_out(kept, plan(CONFIG, kept, history(), 0, 3, "flush", scored(CONFIG)), small_steps)
        if due(CONFIG, kept, 0, 25, True):
            carry_out(kept, plan(CONFIG, kept, history(), 0, 3, "flush", scored(CONFIG)))
        assert kept.final() == [
            Final(0, 5, "a", 7.0, 3, 1, True),
            Final(0, 10, "a", 3.0, 2, 1, True),
        ]


def test_delay_and_value_are_compared_in_the_order_of_arrival() -> None:
    """The delayed tuples of the window have the larger values."""
    kept = History(CONFIG)
    for event in stream_of((14, 1.0), (12, 3.0), (13, 2.0)):
        kept.add(event)
    pending = Store((), (Pair(0, 10, "a", 1, 12),))
    steps = carry_out(pending, plan(CONFIG, pending, kept, 0, 0, "flush", scored(CONFIG)))
    assert steps[1] == Correlation(0, 10, "a", 0, 1, 3, 8, 8, 8)
