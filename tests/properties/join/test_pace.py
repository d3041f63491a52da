"""The pace of a chain on Spark is that of docs/join.md, section 5, block by block."""

from collections import Counter
from itertools import accumulate, chain, repeat
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from model.vocabulary import JoinConfig
from model.vocabulary.join import NO_WATERMARK_US, And, R, S
from properties.promised import Reached, promised
from spark_impl.join import driving
from spark_impl.join.admission import Arrivals
from spark_impl.join.checkpoint import empty_state
from spark_impl.join.lane import Lane, arrivals_to_admit, blocks_to_send, open_lane
from spark_impl.join.matching import Tuples
from spark_impl.join.side import Matcher
from spark_impl.join.worker import Worker

RUN = 1_024
"""Most arrivals that are admitted at once, and by which a stream runs ahead."""
RUN_MIN = 16
"""Most arrivals that a worker admits at once, however busy it is."""
CREDIT, LAST, BALANCE, OVERDUE = (
    "credit decides",
    "the last watermark is sent",
    "balance decides",
    "overdue tuples decide",
)
HELD_UP, DUE, EARLIER, LEAD, BLOCKS, RUNS = (
    "overdue tuples stop the intake",
    "a tuple is due and not overdue",
    "the earlier stream is free",
    "the window decides",
    "four blocks are more than the window",
    "a run is full",
)


class Moment(NamedTuple):
    """A stream at a worker, what its store holds, and what is heard of the other stream."""

    config: JoinConfig
    lane: Lane
    other: Lane
    times: list[int]


def tuples_of(times: list[int]) -> Tuples:
    """Return tuples with some event times."""
    ranks = np.arange(len(times))
    keys = np.array(["a"] * len(times), object)
    return Tuples(ranks, ranks, np.array(times, np.int64), np.zeros(len(times)), keys)


def due_us(config: JoinConfig, times: list[int]) -> int:
    """Return the time behind which the oldest tuple meets nothing new by waiting."""
    return min(times, default=0) + config.window_us


@st.composite
def moments(draw: st.DrawFn) -> Moment:
    """Draw small numbers, so that sizes, times and credit are often equal or off by one."""
    config = JoinConfig(
        draw(st.sampled_from([0, 3, 8, 40])),
        (("all", And()),),
        workers=draw(st.integers(1, 4)),
        block_size=draw(st.integers(1, 3)),
        credit=draw(st.sampled_from([1, 2, 2, 9])),
    )
    ahead, few = draw(st.sampled_from([1, 1, 1, None])), st.integers(0, 3)
    lane = open_lane(R, None, ahead, config, Matcher(config), empty_state())
    other = open_lane(S, ahead, None, config, Matcher(config), empty_state())
    times = draw(st.lists(st.integers(0, 9), max_size=14))
    lane.store.append(tuples_of(times))
    lane.unacknowledged = draw(st.integers(0, config.credit))
    lane.on_the_way, lane.est, lane.passed_us = draw(few), draw(few), draw(st.integers(0, 12))
    lane.sent_wm_us = draw(st.sampled_from([NO_WATERMARK_US, 0, 3, 9, 12]))
    # At a gap in time the other stream has moved on.
    far = st.sampled_from([NO_WATERMARK_US, *range(0, 60, 4)])
    other.source_us = draw(far | st.just(due_us(config, times)))
    lane.over, other.over = draw(st.sampled_from([(False, False)] * 3 + [(True, True)] * 2))
    lane.ended = draw(st.sampled_from([False] * 9 + [True]))
    return Moment(config, lane, other, times)


def overdue(moment: Moment) -> list[int]:
    """Return the positions in the store of tuples that meet nothing new by waiting."""
    window_us, source_us = moment.config.window_us, moment.other.source_us
    return [at for at, ts in enumerate(moment.times) if ts + window_us < source_us]


def expected_blocks(moment: Moment, met: Counter[str]) -> int:
    """Return how many blocks section 5 asks for, sending them one by one."""
    config, lane, other, times = moment
    zeta, sent, size = config.block_size, 0, len(times)
    until = max(overdue(moment), default=-1) + 1
    watermark_us = min([lane.passed_us, *times])
    if lane.ahead is None or lane.ended:
        return 0
    credit, there, reason = config.credit - lane.unacknowledged, lane.est + lane.on_the_way, ""
    while True:
        left = max(size - sent * zeta, 0)
        if sent * zeta < until:
            reason = OVERDUE
        elif lane.over and other.over:
            if sent or watermark_us <= lane.sent_wm_us:
                break
            reason = LAST
        elif left >= zeta and left - (there + sent * zeta) >= zeta:
            reason = BALANCE
        else:
            break
        if sent == credit:
            met[CREDIT] += 1
            return sent
        sent += 1
    met[reason] += 1
    return sent


class Intake(NamedTuple):
    """The arrivals of an epoch, and the position of the next one."""

    seqs: list[int]
    times: list[int]
    position: int


@st.composite
def intakes(draw: st.DrawFn) -> tuple[Moment, Intake]:
    """Draw arrivals with gaps and disorder, of which some were admitted."""
    moment = draw(moments())
    steps = draw(st.lists(st.sampled_from([0, 1, 1, 2, 9]), max_size=30))
    steps += [draw(st.sampled_from([0, 1]))] * draw(st.sampled_from([0, 0, 0, 2 * RUN]))
    times = list(accumulate(steps, initial=0))
    late = draw(st.sets(st.integers(0, 40), max_size=3))
    times = [ts - 6 * (at in late) for at, ts in enumerate(times)]
    moment.other.next_seq = draw(st.integers(0, 60) | st.just(1 << 62))
    position = draw(st.integers(0, min(len(times), 40)))
    return moment, Intake([2 * at for at in range(len(times))], times, position)


def expected_arrivals(moment: Moment, given: Intake, met: Counter[str]) -> int:
    """Return how many arrivals section 5 permits, admitting them one by one."""
    config, lane, other, times = moment
    is_full = lane.ahead is not None and lane.unacknowledged >= config.credit
    if is_full and overdue(moment):
        met[HELD_UP] += 1
        return 0
    level = sum(seq < other.next_seq for seq in given.seqs)
    lead_us, reasons = config.window_us / (2 * config.workers), Counter[str]()
    for count, at in enumerate(range(given.position, len(given.seqs))):
        if count == RUN:
            reasons[RUNS] += 1
            break
        if at < level:
            reasons[EARLIER] += 1
            continue
        is_near = max(given.times[level : at + 1]) - given.times[level] <= lead_us
        if at < level + 4 * config.block_size:
            reasons[BLOCKS] += not is_near
        elif not is_near or at >= level + RUN:
            reasons[LEAD] += at > given.position
            break
    else:
        count = len(given.seqs) - given.position
    met.update(reasons.keys())
    is_due = bool(times) and due_us(config, times) == other.source_us
    met[DUE] += is_full and is_due and count > 0
    return count


def admitted(moment: Moment, intake: Intake) -> int:
    """Return how many arrivals a worker admits."""
    arrivals = Arrivals(np.array(intake.seqs, np.int64), tuples_of(intake.times))
    config, lane, other, _ = moment
    return arrivals_to_admit(lane, other, config, arrivals, intake.position)


@promised(CREDIT, LAST, BALANCE, OVERDUE, HELD_UP, DUE, EARLIER, LEAD, BLOCKS, RUNS, examples=250)
@given(drawn=intakes())
def test_a_worker_sends_and_admits_at_the_pace_of_the_page(
    reached: Reached, drawn: tuple[Moment, Intake]
) -> None:
    (moment, intake), met = drawn, Counter[str]()
    asked = expected_blocks(moment, met)
    assert blocks_to_send(moment.lane, moment.other, moment.config) == asked
    assert admitted(moment, intake) == expected_arrivals(moment, intake, met)
    reached.add(met)


class SlowLinks:
    """Connections of a worker without neighbours, whose turns take some quarters of a second."""

    def __init__(self, turns: list[int], most: int) -> None:
        self.now_s = self.waited_s = 0.0
        self._turns = iter(turns)
        self._left = most

    def exchange(self, outgoing: list[object], wait_s: float) -> list[object]:
        """Let time pass; fail if the worker goes on for ever."""
        assert not outgoing
        self._left -= 1
        assert self._left, "the worker stands still"
        self.now_s += next(self._turns, 1) / 4
        return []

    def part(self) -> None:
        """Do nothing: there is nobody."""


@given(st.integers(0, 5 * RUN), st.lists(st.sampled_from([0, 0, 1, 4])))
def test_a_busy_worker_looks_at_messages_more_often_and_never_stops(
    arrivals: int, turns: list[int]
) -> None:
    config = JoinConfig(0, (("all", And()),), workers=1)
    worker = Worker(config, 0, Matcher(config), empty_state(), 0)
    seqs = {R: range(arrivals), S: range(0)}
    given = {
        stream: Arrivals(np.array(own, np.int64), tuples_of([*own])) for stream, own in seqs.items()
    }
    links: Any = SlowLinks(turns, arrivals + 10)
    runs, expected, at_most = list[int](), list[int](), RUN
    for busy in chain(turns, repeat(1)):
        if sum(expected) == arrivals:
            break
        expected.append(min(at_most, arrivals - sum(expected)))
        at_most = max(at_most // 2, RUN_MIN) if busy else min(2 * at_most, RUN)
    admit = worker.admit

    def noted(stream: str, run: Arrivals, next_seq: int) -> None:
        runs.append(len(run.seq))
        admit(stream, run, next_seq)

    clock = SimpleNamespace(monotonic=lambda: links.now_s)
    with patch.object(driving, "time", clock), patch.object(worker, "admit", noted):
        driving.drive(worker, given, links)
    assert [run for run in runs if run] == expected
