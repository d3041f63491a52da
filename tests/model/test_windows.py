"""Windows by hand: aggregates, pairs out of order, corrections, a task of room ``watermark``."""

from fractions import Fraction
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.vocabulary import Event, SlackConfig, Step, Trace, Workload
from model.vocabulary.watermark import Clock
from model.vocabulary.windows import (
    Cleared,
    Correction,
    Final,
    Late,
    Result,
    Revision,
)
from model.watermark import run
from model.windows.aggregates import aggregate_of, as_written, quantile
from model.windows.cluster import READINGS, Cluster, wait_us
from model.windows.correction import advance, due, plan
from model.windows.state import History, Plan, Store
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
    steps = carry_out(kept, plan(CONFIG, kept, history(), 0, 3, "flush"))
    expected: list[Step] = [
        Revision(0, 5, "a", 3, 1, 7.0, 3),
        Revision(0, 10, "a", 3, 1, 3.0, 2),
        Correction(0, 3, "flush", 2, 2),
        Cleared(0, 5, "a", 1, 3),
        Cleared(0, 10, "a", 1, 3),
    ]
    assert steps == expected
    assert kept.final() == [Final(0, 5, "a", 7.0, 3, 1, True), Final(0, 10, "a", 3.0, 2, 1, True)]


# ----------------------------------------------------------------------- one task of room watermark


def events(*event_times_us: int) -> list[Event]:
    return [
        Event(seq, seq, "a", time_us, float(1 << seq), 100 + seq)
        for seq, time_us in enumerate(event_times_us)
    ]


def trace(*event_times_us: int, **settings: Any) -> Trace:
    config = {"size_us": 10, "slide_us": 10, "max_wait_us": 6, "k": 3, **settings}
    arrivals = tuple(events(*event_times_us))
    return run(Workload("watermark", arrivals, config, tuple(range(1, len(arrivals)))))


def test_the_clock_of_a_burst() -> None:
    #      cluster        inv  pairs wait  N - wait  watermark
    #  3                   0     0     6      -3        -3
    #  8   3 8             0     1     0       8         8
    # 14   3 8 14          0     3     0      14        14
    #  9   8 14 9          1     3     2      12        14
    #  7   14 9 7          3     3     6       8        14
    # 15   9 7 15          1     3     2      13        14
    # 16   7 15 16         0     3     0      16        16
    found = trace(3, 8, 14, 9, 7, 15, 16).of(Clock)
    assert [(clock.inv, clock.wait_us, clock.wm_us) for clock in found] == [
        (0, 6, -3),
        (0, 0, 8),
        (0, 0, 14),
        (1, 2, 14),
        (3, 6, 14),
        (1, 2, 14),
        (0, 0, 16),
    ]
    assert [clock.t_max_us for clock in found] == [3, 8, 14, 14, 14, 15, 16]


def test_the_answers_of_a_burst() -> None:
    found = trace(3, 8, 14, 9, 7, 15, 16)
    assert found.of(Result) == (
        Result(0, 0, "a", 2, 3.0, 2, 0, 14),
        Result(0, 10, "a", 7, 100.0, 3, 0, 30),  # the flush: 20 and L after it
    )
    assert [late.source_id for late in found.of(Late)] == [3, 4]
    assert found.of(Final)[0] == Final(0, 0, "a", 3.0, 2, 0, False)


def test_corrections_repair_what_was_late() -> None:
    found = trace(3, 8, 14, 9, 7, 15, 16, corrections=True)
    assert found.of(Revision) == (Revision(0, 0, "a", 7, 1, 27.0, 4),)
    assert found.of(Final)[0] == Final(0, 0, "a", 27.0, 4, 1, True)
