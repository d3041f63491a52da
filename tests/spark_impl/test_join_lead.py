"""The pace of an epoch, whose arrivals are all there at once: how far a stream may run ahead."""

import pytest

from model.vocabulary import Event, JoinConfig
from model.vocabulary.join import END_US, NO_WATERMARK_US, STREAMS, And, R, S
from spark_impl.join.checkpoint import empty_state
from spark_impl.join.in_process import arrivals_of
from spark_impl.join.lane import RUN, Lane, arrivals_to_admit, open_lane
from spark_impl.join.side import Matcher

WINDOW_US = 80_000
ARRIVALS = 4_000
"""Arrivals of R, 10 us apart; between two of them comes one of S."""
EVENTS = [Event(2 * n, n, "k", 10 * n, 0.0, 0, R) for n in range(ARRIVALS)]


def lanes_of(config: JoinConfig) -> tuple[Lane, Lane]:
    """Return the lanes of R and S at worker 0."""
    right = 1 if config.workers > 1 else None
    matcher = Matcher(config)
    ways = {R: (None, right), S: (right, None)}
    r, s = (open_lane(name, *ways[name], config, matcher, empty_state()) for name in STREAMS)
    return r, s


def admitted(
    workers: int, heard_seq: int, position: int, window_us: int = WINDOW_US, late: int = 0
) -> int:
    """Return how many arrivals of R worker 0 admits; arrival ``late`` is 10 ms older."""
    config = JoinConfig(window_us, (("all", And()),), workers=workers, block_size=4)
    events = [e._replace(event_time_us=e.event_time_us - 10_000 * (e.seq == late)) for e in EVENTS]
    lane, other = lanes_of(config)
    other.next_seq = heard_seq
    return arrivals_to_admit(lane, other, config, arrivals_of(events, R, window_us), position)


@pytest.mark.parametrize("workers", [4, 8, 16, 100])
def test_a_stream_leads_by_half_of_the_window_of_a_worker(workers: int) -> None:
    """1,000 arrivals, and all of a window, would go down the chain as one lump."""
    within = WINDOW_US // (2 * workers) // 10
    assert admitted(workers, 801, 401) == within + 1
    assert admitted(workers, 801, 401 + within) == 1
    assert admitted(workers, 801, 402 + within) == 0


def test_a_stream_leads_by_a_few_blocks_at_least() -> None:
    assert admitted(8, 801, 401, window_us=10) == 16
    assert admitted(2, NO_WATERMARK_US, 0, window_us=0) == 16


@pytest.mark.parametrize("window_us", [0, 10, WINDOW_US, 10**9])
def test_the_stream_with_the_earlier_next_arrival_never_waits(window_us: int) -> None:
    for position in (0, 399, 400):
        assert admitted(8, 801, position, window_us) > 0
    assert admitted(8, END_US, ARRIVALS - 1, window_us) == 1
    assert admitted(8, END_US, 0, window_us) == RUN


def test_one_late_arrival_does_not_end_the_lead() -> None:
    assert admitted(4, 801, 401, late=1000) == admitted(4, 801, 401)
