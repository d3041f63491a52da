"""Figures of the benchmarks of timed rooms, tested on work that takes no time."""

from collections.abc import Mapping

import pytest

from benchmarks import sim as timed_rooms
from benchmarks.sim import bare_events_per_s, paces, standard
from sim.watermark import TimedRun, from_settings


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate a machine that is sometimes half as fast: 1,000 bare events a second, then 500."""
    rates = iter([1_000.0, 1_000.0, 500.0, 500.0] * timed_rooms.ROUNDS)
    monkeypatch.setattr(timed_rooms, "bare_events_per_s", lambda: next(rates))
    monkeypatch.setattr(timed_rooms, "AT_LEAST_S", 0.0)


@pytest.mark.usefixtures("bare")
def test_a_slower_machine_changes_seconds_and_not_the_ratio() -> None:
    seconds = iter([0.1, 0.2] * timed_rooms.ROUNDS)

    def once() -> Mapping[str, float]:
        took_s = next(seconds)
        return {"": took_s, "timed_": took_s / 2}

    found = paces(10, once)
    assert found["bare_events_a_tuple"] == pytest.approx(10.0)
    assert found["timed_bare_events_a_tuple"] == pytest.approx(5.0)
    assert found["timed_tuples_per_s"] == 2 * found["tuples_per_s"]


def test_bare_events_take_time() -> None:
    assert bare_events_per_s() > 0


@pytest.mark.usefixtures("bare")
def test_a_standard_run_is_counted_and_weighed() -> None:
    def simulate(seed: int) -> TimedRun:
        return from_settings({"messages": "200"}, seed)

    figures = standard(simulate)
    assert set(figures) == {
        "standard_tuples",
        "standard_tuples_per_s",
        "standard_bare_events_a_tuple",
        "standard_timed_tuples_per_s",
        "standard_timed_bare_events_a_tuple",
        "standard_peak_bytes_a_tuple",
    }
    assert figures["standard_tuples"] == 200
    # The timed part lies between the first and the last event, and is shorter than the whole run.
    assert figures["standard_timed_tuples_per_s"] > figures["standard_tuples_per_s"]
    # A run keeps at least its arrivals.
    assert figures["standard_peak_bytes_a_tuple"] > 100
