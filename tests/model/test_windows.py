"""Windows by hand: a rank, and a task of room ``watermark``."""

from fractions import Fraction
from typing import Any

from model.vocabulary import Event, SlackConfig, Trace, Workload
from model.vocabulary.watermark import Clock
from model.vocabulary.windows import Final, Late, Result, Revision
from model.watermark import run
from model.windows.aggregates import as_written, quantile
from model.windows.state import History


def test_a_rank_uses_the_decimal_that_was_written() -> None:
    # In float64 0.07 * 100 is 7.000000000000001, whose ceiling is 8.
    assert quantile(as_written(0.07))([float(n) for n in range(1, 101)]) == 7.0
    assert as_written(0.1) == Fraction(1, 10)


# ----------------------------------------------------------------------- one task of room watermark


def events(*event_times_us: int) -> list[Event]:
    return [
        Event(seq, seq, "a", time_us, float(1 << seq), 100 + seq)
        for seq, time_us in enumerate(event_times_us)
    ]


def test_a_window_of_a_history_ends_before_its_end() -> None:
    history = History(SlackConfig(11, 10))  # its last tuple is the first of a slide
    for event in events(9, 10, 20, 21):
        history.add(event)
    assert history.values(10, "a") == [2.0, 4.0]


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
