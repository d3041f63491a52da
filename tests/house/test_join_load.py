"""The figures of the case study, without Spark."""

import pytest

from benchmarks.join_load import CONFIG, PHASES, RATE, arrivals, epochs_of, figures_of, pairs_of
from model.vocabulary.join_load import Measured


def test_the_load_is_that_of_its_phases() -> None:
    given = arrivals()
    assert given.num_rows == sum(seconds * RATE * times for seconds, times in PHASES.values())
    first_us, last_us = (given.column("event_time_us")[place].as_py() for place in (0, -1))
    assert (last_us - first_us) / 1e6 == pytest.approx(
        sum(seconds for seconds, _ in PHASES.values()), abs=1.1 / RATE
    )


def test_pairs_are_those_of_a_nested_loop() -> None:
    given = arrivals().slice(0, 3_000)
    gone = set(range(0, 3_000, 7))
    kept = [row for row in given.to_pylist() if row["seq"] not in gone]
    r, s = ([row for row in kept if row["stream"] == name] for name in "RS")
    by_key: dict[str, list[int]] = {}
    for row in s:
        by_key.setdefault(row["key"], []).append(row["event_time_us"])
    found = sum(
        abs(row["event_time_us"] - ts) <= CONFIG.window_us
        for row in r
        for ts in by_key.get(row["key"], [])
    )
    assert pairs_of(given, gone) == found > 1_000


def test_an_epoch_has_its_own_arrivals() -> None:
    given = arrivals().slice(0, 15 * RATE)
    measured = [
        Measured(0, 5_000_000, (1_000_000, 2_000_000), 10 * RATE, RATE, 10),
        Measured(1, 5_000_000, (5_000_000,), 5 * RATE, 0, 10),
    ]
    first, second = epochs_of(given, [11.0, 16.0], measured, [20, 5, 1])
    assert (first.workers, first.utilisation, first.shed) == (2, 30.0, 10.0)
    assert first.latency_s == pytest.approx(6.0, abs=0.6 / RATE)
    assert (second.workers, second.utilisation, second.block_size) == (1, 100.0, 5)
    assert second.latency_s == pytest.approx(16 - 12.5, abs=0.6 / RATE)
    assert figures_of([first, second], "start")["mean share shed, %"] == 5.0
    assert figures_of([first, second], "burst") == {}
