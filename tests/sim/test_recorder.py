import statistics

import pytest

from sim.kernel.recorder import Digest, Level, Recorder, Series, Tally


def test_tally() -> None:
    values = [3.0, 1.0, 4.0, 1.0, 5.0]
    tally = Tally()
    assert tally.deviation == 0.0
    for value in values:
        tally.add(value)
    assert (tally.count, tally.low, tally.high) == (5, 1.0, 5.0)
    assert tally.mean == pytest.approx(statistics.mean(values))
    assert tally.deviation == pytest.approx(statistics.stdev(values))


def test_level_is_weighted_by_time() -> None:
    level = Level()
    assert level.mean(0.0) == 0.0
    level.set(2.0, 10.0)
    level.set(5.0, 20.0)
    level.set(0.0, 22.0)
    assert level.integral_us(40.0) == 30.0
    assert level.mean(40.0) == 0.75
    assert level.peak == 5.0


def test_series_keeps_samples_apart() -> None:
    series = Series(every_us=10.0)
    for now_us in range(0, 50, 4):
        series.add(now_us * 2, now_us)
    assert series.times_us == [0, 12, 24, 36, 48]
    assert series.values == [0, 24, 48, 72, 96]


def test_digest_depends_on_content_and_order() -> None:
    def digest(*events: tuple[int | str, ...]) -> str:
        result = Digest()
        for event in events:
            result.add(*event)
        return result.hex()

    assert digest((1, "a"), (2, "b")) == digest((1, "a"), (2, "b"))
    assert digest((1, "a"), (2, "b")) != digest((2, "b"), (1, "a"))
    assert digest((1, "2")) != digest((1, 2))
    assert len(digest()) == 64


def test_recorder() -> None:
    recorder = Recorder(series={"buffer": 0.0}, keep_events=True)
    recorder.count("late")
    recorder.count("late", 2)
    recorder.observe("latency_us", 4.0, 1.0)
    recorder.observe("latency_us", 6.0, 2.0)
    recorder.level("buffer", 3.0, 0.0)
    recorder.level("buffer", 1.0, 2.0)
    recorder.event("closed", 7)
    assert recorder.summary(4.0) == {
        "buffer.mean": 2.0,
        "buffer.peak": 3.0,
        "late": 3,
        "latency_us.count": 2,
        "latency_us.high": 6.0,
        "latency_us.low": 4.0,
        "latency_us.mean": 5.0,
    }
    assert recorder.series["buffer"].values == [3.0, 1.0]
    assert recorder.events == [("closed", 7)]


def test_events_are_not_kept_unless_asked_for() -> None:
    kept, not_kept = Recorder(keep_events=True), Recorder()
    for recorder in (kept, not_kept):
        recorder.event("x", 1.5)
    assert not_kept.events == []
    assert kept.digest.hex() == not_kept.digest.hex()


def test_a_series_of_observations() -> None:
    recorder = Recorder(series={"latency_us": 10.0})
    for now_us in (0.0, 5.0, 10.0):
        recorder.observe("latency_us", now_us, now_us)
    assert recorder.series["latency_us"].values == [0.0, 10.0]
