"""One task of room ``watermark``, with numbers worked out by hand."""

from typing import Any

from model.vocabulary import Event, Trace, WatermarkConfig, Workload
from model.vocabulary.watermark import Clock
from model.vocabulary.windows import Final, Late, Rejected, Result, Revision
from model.watermark import run
from model.watermark.machine import Task

W10 = WatermarkConfig(10, 10, 6, k=3)


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


def test_a_fixed_watermark_waits_in_calm_streams_and_misses_nothing() -> None:
    found = trace(3, 8, 14, 9, 7, 15, 16, reading="fixed", max_wait_us=7)
    assert not found.of(Late)
    assert [clock.inv for clock in found.of(Clock)] == [0, 0, 0, 1, 3, 1, 0]


def test_refused_and_redelivered_tuples_do_not_enter_the_cluster() -> None:
    task = Task(W10, 0)
    first, second, third = events(3, 8, 9)
    task.arrive(first, 0)
    assert task.arrive(second._replace(value=float("nan")), 0)[0] == Rejected(
        0, 1, 1, 0, "value is not a finite number"
    )
    assert task.arrive(first._replace(seq=1), 0) == []
    (clock,) = task.arrive(third, 0)
    assert clock == Clock(0, 2, 0, 9, 0, 0, 9)
    assert list(task.cluster.times_us) == [3, 9]


def test_a_forgotten_redelivery_is_late_and_enters_the_cluster() -> None:
    task = Task(WatermarkConfig(10, 10, 6, k=3, feedback_us=0), 0)
    first, second, third = events(3, 19, 20)
    for event in (first, second, third):
        task.arrive(event, 0)
    clock, late = task.arrive(first._replace(seq=3), 1)
    assert clock == Clock(0, 3, 1, 20, 2, 4, 20)
    assert late == Late(0, 0, "a", 0, 3, 1)


def test_arrivals_may_follow_a_flush() -> None:
    task = Task(W10, 0)
    task.arrive(events(3)[0], 0)
    task.flush(1)
    assert task.wm_us == 20
    clock, late = task.arrive(Event(1, 1, "a", 12, 1.0, 200), 2)
    assert clock == Clock(0, 1, 2, 12, 0, 0, 20)
    assert late == Late(0, 10, "a", 1, 12, 2)
