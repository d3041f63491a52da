"""Which answers a timed run gave, when, and how far from the truth they were.

Rules of this file:

* It looks at what was recorded and decides nothing. Which pairs were late, and which windows
  closed when, is read from the steps.
* The truth about a window is the aggregate over all of its tuples that arrived at any time.
* An answer that only the flush gave came because the stream ended, not because the window closed:
  it counts in no figure about first answers.
"""

from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from model.vocabulary.answers import Cleared, Late, Result
from model.windows.aggregates import aggregate_of
from model.windows.correction import Window
from sim.disorder import IntArray
from sim.distributions import FloatArray
from sim.windows.timed import Room, TaskT, TimedTask

BoolArray: TypeAlias = NDArray[np.bool_]

# ----------------------------------------------------------------------------- windows


class Given(NamedTuple):
    """An answer for a window."""

    at_us: float
    """Kernel time from which it could be seen."""
    window: Window
    value: float


class First(NamedTuple):
    """The stream's own answer for a window."""

    at_us: float
    window: Window
    value: float
    n_rcv: int
    is_flush: bool


class Truth(NamedTuple):
    """All that arrived for a window."""

    value: float
    n: int


class Answers:
    """Every window that at least one tuple arrived for."""

    __slots__ = ("corrected", "first", "truth")

    def __init__(self, room: Room[TaskT]) -> None:
        self.truth: dict[Window, Truth] = {}
        self.first: list[First] = []
        """In the order of the tasks, and of time within a task."""
        self.corrected = [
            Given(at_us, window, value)
            for at_us, plan in room.corrected
            for window, value, _n in plan.answers
        ]
        aggregate = aggregate_of(room.config)
        flush_batch = len(room.batches)
        for task in room.tasks:
            windows: dict[Window, None] = {}  # a set that keeps its order
            for at_us, _row, step in task.seen:
                if isinstance(step, Result | Late):
                    window = Window(step.task, step.start_us, step.key)
                    windows[window] = None
                    if isinstance(step, Result):
                        is_flush = step.batch == flush_batch
                        first = First(at_us, window, step.value, step.n_rcv, is_flush)
                        self.first.append(first)
            for window in windows:
                tuples = task.history.tuples(window.start_us, window.key)
                values = [event.value for event in tuples]
                self.truth[window] = Truth(aggregate(values), len(values))

    def by_stream(self) -> list[First]:
        """First answers of the windows that closed before the flush."""
        return [first for first in self.first if not first.is_flush]

    def error(self, window: Window, value: float) -> float:
        """Relative error of an answer; 1 for any wrong answer where the truth is 0."""
        truth = self.truth[window].value
        if value == truth:
            return 0.0
        return abs(value - truth) / abs(truth) if truth else 1.0

    def coverage(self, first: First) -> float:
        """Share of the window's tuples that its first answer contained."""
        return first.n_rcv / self.truth[first.window].n


# ------------------------------------------------------------------------------- pairs


class Pairs(NamedTuple):
    """The (tuple, window) pairs of one task; times are kernel microseconds."""

    total: int
    """Pairs of all accepted tuples, late ones included."""
    answered_us: FloatArray
    """When the window of each pair that was on time was answered; flush left out."""
    latency_us: FloatArray
    """From the tuple's arrival to that answer."""
    entered_us: FloatArray
    """When each tuple that found a window open was served."""
    left_us: FloatArray
    """When the last of its windows was answered; infinite if that never happened."""


def pairs_of(room: Room[TaskT], task: TimedTask[TaskT], answers: Answers) -> Pairs:
    """All pairs of a task at once: a matrix with a row a tuple and a column a window of it."""
    config, accepted = room.config, task.accepted
    event_us = np.array([event.event_time_us for event in accepted], dtype=np.int64)
    arrival_us = np.array([event.arrival_us - room.start_us for event in accepted], dtype=np.int64)
    first = (event_us - config.size_us) // config.slide_us + 1
    last = event_us // config.slide_us
    index = last[:, None] - np.arange(int((last - first).max(initial=-1)) + 1)
    is_on_time = index >= first[:, None]
    total = int(is_on_time.sum())
    for _at_us, row, step in task.seen:
        if isinstance(step, Late):
            is_on_time[row, last[row] - step.start_us // config.slide_us] = False

    at_us, by_flush = _answer_times(room, task, index, answers)
    rows, columns = np.nonzero(is_on_time & ~by_flush & np.isfinite(at_us))
    buffered = np.flatnonzero(is_on_time.any(axis=1))
    last_us = np.where(is_on_time, at_us, -np.inf).max(axis=1, initial=-np.inf)
    return Pairs(
        total=total,
        answered_us=at_us[rows, columns],
        latency_us=at_us[rows, columns] - arrival_us[rows],
        entered_us=np.array(task.served_us, dtype=np.float64)[buffered],
        left_us=last_us[buffered],
    )


def _answer_times(
    room: Room[TaskT], task: TimedTask[TaskT], index: IntArray, answers: Answers
) -> tuple[FloatArray, BoolArray]:
    """When the window of each pair was answered (infinite: never), and whether by the flush.

    ``index`` has the index of the pair's window, a row a tuple.
    """
    closed = [first for first in answers.first if first.window.task == task.task.number]
    if not closed:
        return np.full(index.shape, np.inf), np.zeros(index.shape, dtype=np.bool_)
    numbers: dict[str, int] = {}
    keys = [event.key if room.config.keyed else "" for event in task.accepted]
    key = np.array([numbers.setdefault(each, len(numbers)) for each in keys], dtype=np.int64)
    # Window and key as one number, so that all pairs are found in one sorted array.
    low = int(index.min(initial=0))
    span = int(index.max(initial=low)) - low + 1
    code = key[:, None] * span + (index - low)
    slide_us = room.config.slide_us
    coded = sorted(
        (numbers[first.window.key] * span + first.window.start_us // slide_us - low, first)
        for first in closed
    )
    known = np.array([each for each, _ in coded], dtype=np.int64)
    at_us = np.array([first.at_us for _, first in coded], dtype=np.float64)
    is_flush = np.array([first.is_flush for _, first in coded], dtype=np.bool_)
    place = np.minimum(np.searchsorted(known, code), len(known) - 1)
    return np.where(known[place] == code, at_us[place], np.inf), is_flush[place]


# -------------------------------------------------------------------------- late pairs


class Owed(NamedTuple):
    """Pending pairs as an onlooker counts them: until the correction can be seen."""

    late_us: list[float]
    """When each pair became pending."""
    settled_us: list[float]
    """When its correction could be seen."""
    waited_us: list[float]
    """From the arrival of the tuple to then."""


def owed_by(room: Room[TaskT]) -> Owed:
    """Every late pair and, if it was corrected, when that could be seen."""
    late_us: list[float] = []
    arrived_us: dict[Cleared, int] = {}
    for task in room.tasks:
        pending: dict[tuple[int, int, str, int], int] = {}
        for at_us, row, step in task.seen:
            if isinstance(step, Late):
                pair = step.task, step.start_us, step.key, step.source_id
                # A set: a pair that is pending already is not added again.
                if pair not in pending:
                    late_us.append(at_us)
                    pending[pair] = task.accepted[row].arrival_us - room.start_us
            elif isinstance(step, Cleared):
                pair = step.task, step.start_us, step.key, step.source_id
                arrived_us[step] = pending.pop(pair)
    settled = [
        (at_us, at_us - arrived_us[Cleared(*pair[:4], plan.batch)])
        for at_us, plan in room.corrected
        for pair in plan.pairs
    ]
    settled_us = [at_us for at_us, _ in settled]
    return Owed(late_us, settled_us, [waited_us for _, waited_us in settled])


# ---------------------------------------------------------------------------- together


@dataclass(frozen=True, slots=True)
class Observed(Generic[TaskT]):
    """A finished run, looked at from outside."""

    room: Room[TaskT]
    answers: Answers
    pairs: list[Pairs]
    """One element a task."""
    owed: Owed

    def window_latency_us(self, first: First) -> float:
        """From the end of the window, by the sources' clock, to its first answer."""
        end_us = first.window.start_us + self.room.config.size_us
        return first.at_us + (self.room.start_us - end_us)


def observe(room: Room[TaskT]) -> Observed[TaskT]:
    """Look at a finished run."""
    answers = Answers(room)
    pairs = [pairs_of(room, task, answers) for task in room.tasks]
    return Observed(room, answers, pairs, owed_by(room))
