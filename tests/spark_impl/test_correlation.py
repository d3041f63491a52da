"""Correlation of delay and value in windows, and the status that follows from many."""

import random

import numpy as np
import pytest

from model.vocabulary import Event, SlackConfig, Workload
from model.vocabulary.settings import PlainData
from model.vocabulary.windows import Correlation
from spark_impl.slack.query import SLACK
from spark_impl.windows import correlation
from spark_impl.windows.records import Rows
from tests.spark_impl import brute


def rows(events: list[tuple[int, int, float]], place: int = 0) -> Rows:
    """Return rows of (arrival number, event time, value)."""
    seq, ts, value = (np.array(each) for each in zip(*events, strict=True))
    zeros = np.zeros(len(seq), np.int64)
    return Rows(seq, seq, zeros + place, ts, value.astype(float), zeros, zeros)


def measured(config: SlackConfig, given: Rows) -> correlation.Figures:
    asked = SLACK.settings(config)
    return correlation.correlate(asked, given.key, given.seq, given.event_time_us, given.value)


def figures(config: SlackConfig, given: Rows) -> list[tuple[int, ...]]:
    columns = measured(config, given)
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


def test_figures_by_hand() -> None:
    # delays 0, 0, 4 (behind 7), 1 and values 1, 2, 9, 2
    given = rows([(0, 5, 1.0), (1, 7, 2.0), (2, 3, 9.0), (3, 6, 2.0)])
    x, y = [-2, -2, 3, 1], [-3, 0, 3, 0]
    cross = sum(a * b for a, b in zip(x, y, strict=True))
    spreads = sum(a * a for a in x), sum(b * b for b in y)
    config = SlackConfig(size_us=10, slide_us=10)
    assert figures(config, given) == [(0, 0, cross, *spreads)]


def test_arrival_order_counts_and_not_the_order_of_rows() -> None:
    config = SlackConfig(size_us=10, slide_us=10)
    given = rows([(0, 5, 1.0), (1, 7, 2.0), (2, 3, 9.0), (3, 6, 2.0)])
    assert figures(config, given.take(np.array([2, 0, 3, 1]))) == figures(config, given)


@pytest.mark.parametrize(("size", "slide"), [(10, 10), (10, 3), (7, 5), (3, 10), (1, 1)])
def test_figures_equal_the_specification(size: int, slide: int) -> None:
    draw = random.Random(size * 100 + slide)
    settings: dict[str, PlainData] = {"size_us": size, "slide_us": slide, "control": "fixed"}
    found: list[tuple[int, ...]] = []
    for _ in range(20):
        events = tuple(
            Event(i, i, "a", draw.randint(-20, 30), float(draw.randint(0, 4)), 0)
            for i in range(draw.randint(1, 40))
        )
        task = brute.Task(SlackConfig(**settings), 0)
        task.accepted = {event.source_id: event for event in events}
        starts = {end - size for event in events for end in task.ends(event.event_time_us)}
        for start in starts:
            task.correlate(start, "a", 0, 1)
        expected = sorted(
            (0, c.start_us // slide, c.cross, c.delay_spread, c.value_spread) for c in task.steps
        )
        given = rows([(e.seq, e.event_time_us, e.value) for e in events])
        found = figures(SlackConfig(**settings), given)
        assert found == expected
    assert found


def test_places_do_not_mix() -> None:
    config = SlackConfig(size_us=10, slide_us=10)
    one = rows([(0, 5, 1.0), (2, 3, 9.0)])
    two = rows([(1, 9, 4.0), (3, 1, 3.0)], place=1)
    both = Rows._make(np.concatenate(columns) for columns in zip(one, two, strict=True))
    assert figures(config, both) == sorted([*figures(config, one), *figures(config, two)])


def test_very_large_windows_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(correlation, "MAX_CORRELATED", 2)
    config = SlackConfig(size_us=10, slide_us=10)
    given = rows([(0, 1, 1.0), (1, 2, 1.0), (2, 3, 1.0), (3, 11, 1.0), (4, 12, 1.0)])
    assert [row[1] for row in figures(config, given)] == [1]


def test_sums_of_a_large_window_are_exact() -> None:
    n = 200_000
    given = rows([(i, i, float(i)) for i in range(n)])
    config = SlackConfig(size_us=n, slide_us=n)
    (_, _, cross, delays, values) = figures(config, given)[0]
    # in order: no delays; values with ranks -(n-1), -(n-3), ..., n-1: (n^3 - n) / 3
    assert (cross, delays, values) == (0, 0, (n**3 - n) // 3)


# -- the status ------------------------------------------------------------------------------------


def status(cross: list[float], spread: float = 100.0) -> correlation.AssumptionStatus:
    size = len(cross)
    return correlation.assess(np.array(cross), np.full(size, spread), np.full(size, spread))


def test_status_by_hand() -> None:
    # 20 windows, 10 with 5 and 10 with -3: rho = 20 / 2000; var = 16 * 20 / 19,
    # error = sqrt(20 * 16 * 20 / 19) / 2000, Student's 0.9995 quantile with 19 degrees is 3.883406
    found = status([5.0, -3.0] * 10)
    reach = 3.8834059 * (20 * 16 * 20 / 19) ** 0.5 / 2000
    assert (found.status, found.windows) == ("not contradicted", 20)
    assert found.rho == pytest.approx(0.01)
    assert (found.low, found.high) == pytest.approx((0.01 - reach, 0.01 + reach))


def test_the_status_needs_twenty_informative_windows() -> None:
    assert status([50.0] * 20).status == "contradicted"
    few = status([50.0] * 19)
    assert (few.status, few.windows, few.low, few.high) == ("untested", 19, None, None)
    assert few.rho == pytest.approx(0.5)
    assert status([50.0] * 20, spread=0.0) == ("untested", 0, None, None, None)
    assert status([]) == ("untested", 0, None, None, None)
    flat = np.array([100.0] * 19 + [0.0])
    assert correlation.assess(np.full(20, 50.0), flat, np.full(20, 100.0)).windows == 19


def test_independent_values_are_rarely_contradicted_and_dependent_ones_are() -> None:
    draw = np.random.default_rng(1)
    config = SlackConfig(size_us=1000, slide_us=1000)

    def one(strength: float) -> str:
        ts = np.arange(5_000) * 10
        delay = draw.exponential(100, 5_000)
        value = draw.lognormal(size=5_000) + strength * delay
        order = np.argsort(ts + delay, kind="stable")
        events = zip(range(5_000), ts[order].tolist(), value[order].tolist(), strict=True)
        found = measured(config, rows(list(events)))
        floats = (each.astype(float) for each in found[2:])
        return correlation.assess(*floats).status

    # each is contradicted with probability 0.001: two of 40 with less than 0.001
    assert sum(one(0.0) == "contradicted" for _ in range(40)) < 2
    assert one(0.01) == "contradicted"


def test_corrections_record_the_correlation_of_every_revision() -> None:
    config = {"size_us": 10, "slide_us": 5, "control": "fixed", "gamma_us": 0}
    times = [3, 12, 26, 12, 17, 46, 13]
    events = tuple(Event(i, i, "a", ts, float(i), 0) for i, ts in enumerate(times))
    trace = brute.run(Workload("slack", events, config, cuts=(5,)))
    assert {(c.start_us, c.revision) for c in trace.of(Correlation)} >= {(10, 1), (10, 2)}
