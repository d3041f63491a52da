"""Costs and misses of waiting rules, computed by hand."""

import pytest

from model.vocabulary import Event, SlackConfig, WatermarkConfig
from straggler.rooms.watermark.measures import measure

SECOND_US = 1_000_000
W10 = 10 * SECOND_US


def stream(*tuples: tuple[int, int]) -> list[Event]:
    """Return a stream with these event times and arrivals, in seconds."""
    return [
        Event(seq, seq, "a", at * SECOND_US, 1.0, came * SECOND_US)
        for seq, (at, came) in enumerate(tuples)
    ]


EVENTS = stream((1, 1), (8, 8), (12, 12), (9, 13), (22, 22))
"""The fourth tuple comes after a later one."""


def test_without_waiting_a_tuple_is_missed() -> None:
    found = measure(WatermarkConfig(W10, W10, 0, reading="fixed"), EVENTS)
    # [0, 10): from 1 s to 12 s, two tuples; [10, 20): from 12 s to 22 s, one; [20, 30): flushed.
    assert found.ratio == pytest.approx((2 + 1) / (11 + 10))
    assert found.coverage == 4 / 5
    assert found.mean_wait_us == 0
    assert found.short_windows == 1 / 3


def test_a_long_wait_misses_nothing_and_answers_late() -> None:
    found = measure(WatermarkConfig(W10, W10, 3 * SECOND_US, reading="fixed"), EVENTS)
    # [0, 10) closes when the watermark is 19 s, at 22 s; nothing closes [10, 20).
    assert found.ratio == pytest.approx(3 / 21)
    assert (found.coverage, found.short_windows) == (1.0, 0.0)
    assert found.mean_wait_us == 3 * SECOND_US


def test_room_slack_is_measured_alike() -> None:
    ours = measure(WatermarkConfig(W10, W10, 3 * SECOND_US, reading="fixed"), EVENTS)
    config = SlackConfig(W10, W10, control="fixed", fixed_slack_us=3 * SECOND_US)
    assert measure(config, EVENTS) == ours


def test_without_an_answer_before_the_flush_the_ratio_is_undefined() -> None:
    found = measure(WatermarkConfig(W10, W10, 0, reading="fixed"), EVENTS[:2])
    assert found.ratio is None
    assert found.coverage == 1.0


def test_windows_that_overlap_count_for_each() -> None:
    found = measure(WatermarkConfig(W10, W10 // 2, 0, reading="fixed"), EVENTS)
    # (12, 12) closes [0, 10) and [-5, 5); (9, 13) is late for one of its windows.
    assert found.coverage == 9 / 10
