"""Observations of a finished run of a windowed room: answers, errors, and (tuple, window) pairs.

Rules of this file:

* Observation decides nothing: the recorded steps say which pairs were late and when windows closed.
* The truth about a window is the aggregate over all of its tuples that arrived at any time. An
  answer is the truth if no tuple came late for its window.
* An answer that only the flush gave came because the stream ended, not because the window closed:
  it counts in no figure about first answers.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from model.vocabulary import Event, Step
from model.vocabulary.trace import StepT
from model.vocabulary.windows import Cleared, Late, Result, WindowQuery
from model.windows.aggregates import aggregate_of
from model.windows.state import Window
from sim.kernel.disorder import IntArray
from sim.kernel.distributions import AnyArray, FloatArray
from sim.kernel.run import Arrived
from sim.windows.cluster import VisibleCorrection, WindowCluster
from sim.windows.machine import QueryT
from sim.windows.record import NO_STEPS, Accepted, TimedSteps

BoolArray: TypeAlias = NDArray[np.bool_]

SAMPLES = 300
"""Largest number of rows of a series."""
BEHIND = 1.05
"""A cluster lags if it takes this many times as long as the arrivals; rows then cover its end."""

# ----------------------------------------------------------------------------------------- tasks


class Columns(NamedTuple):
    """Accepted tuples as columns; if the query ignores keys, all tuples have one key."""

    key: IntArray
    """Number of the key."""
    event_us: IntArray
    came_us: IntArray
    """Time of arrival in the log, since the start of the run."""


@dataclass(frozen=True, slots=True)
class TaskObservation:
    """The accepted tuples and steps of one task."""

    number: int
    accepted: Accepted
    columns: Columns
    steps: dict[type[Step], TimedSteps[Step]]

    def of(self, kind: type[StepT]) -> TimedSteps[StepT]:
        """Return the steps of one kind."""
        return cast("TimedSteps[StepT]", self.steps.get(kind, NO_STEPS))


class FinishedRun:
    """A finished run: its cluster, its arrivals, and the observation of every task."""

    def __init__(self, cluster: WindowCluster[QueryT], arrived: Arrived) -> None:
        self.cluster = cluster
        self.arrived = arrived
        self.query: WindowQuery = cluster.query
        self.keys = self._numbered(arrived.events)
        """Number of each key, by first appearance."""
        self.tasks = [self._task(number) for number in range(len(cluster.tasks))]

    @property
    def corrections(self) -> Sequence[VisibleCorrection]:
        """Corrections, in the order in which they could be seen."""
        return self.cluster.corrector.corrections

    @cached_property
    def grid_us(self) -> FloatArray:
        """Times of the rows of a series: at most one row a slide; the last one is the end."""
        ends_us, end_us = max(self.arrived.ends_us, default=0.0), self.cluster.end_us
        if end_us > BEHIND * ends_us:
            ends_us = end_us
        rows = min(SAMPLES, int(np.ceil(ends_us / self.query.slide_us)))
        grid_us = np.linspace(0.0, ends_us, rows, endpoint=False)[1:]
        return np.append(grid_us, max([end_us, *grid_us[-1:]]))

    def _numbered(self, events: Sequence[Event]) -> dict[str, int]:
        if not self.query.keyed:
            return {"": 0}
        return {key: number for number, key in enumerate(dict.fromkeys(e.key for e in events))}

    def _task(self, number: int) -> TaskObservation:
        record = self.cluster.tasks[number].record
        accepted, steps = record.accepted(dedup=self.query.dedup)
        keys, is_keyed, start_us = self.keys, self.query.keyed, self.cluster.start_us
        columns = Columns(
            np.array([keys[e.key] if is_keyed else 0 for e in accepted.events], dtype=np.int64),
            np.array([event.event_time_us for event in accepted.events], dtype=np.int64),
            np.array([event.arrival_us for event in accepted.events], dtype=np.int64) - start_us,
        )
        return TaskObservation(number, accepted, columns, steps)


# --------------------------------------------------------------------------------------- answers


class FirstAnswers(NamedTuple):
    """The stream's own answers, a row an answer, by task and then by time."""

    at_us: FloatArray
    """Kernel time from which the answer could be seen."""
    window: IntArray
    """Number of the window in :attr:`Answers.windows`."""
    value: FloatArray
    n_rcv: IntArray
    is_flush: BoolArray

    def select(self, rows: BoolArray) -> "FirstAnswers":
        """Return the answers of some rows."""
        columns: list[AnyArray] = [column[rows] for column in self]
        return FirstAnswers(*columns)


class AnswerRows(NamedTuple):
    """Answers for windows, a row an answer."""

    at_us: FloatArray
    window: IntArray
    value: FloatArray


class Answers:
    """All windows with at least one tuple, and their answers."""

    __slots__ = ("by_stream", "corrected", "first", "n", "start_us", "task", "truth", "windows")

    def __init__(self, run: FinishedRun) -> None:
        observed = [task.of(Result) for task in run.tasks]
        results = [step for each in observed for step in each.steps]
        columns = zip(*results, strict=True) if results else [()] * len(Result._fields)
        tasks, starts_us, keys, batches, values, n_rcv, _, _ = columns
        numbers = dict(zip(map(Window, tasks, starts_us, keys), count(), strict=False))
        # A dictionary is a set that keeps its order.
        late = {Window(*step[:3]): None for task in run.tasks for step in task.of(Late).steps}
        for window in late:
            numbers.setdefault(window, len(numbers))
        self.windows = list(numbers)
        unanswered = self.windows[len(results) :]
        self.task = np.array([*tasks, *[each.task for each in unanswered]], dtype=np.int64)
        """Task of each window."""
        self.start_us = np.array(
            [*starts_us, *[each.start_us for each in unanswered]], dtype=np.int64
        )
        """Start of each window."""
        self.first = FirstAnswers(
            np.concatenate([each.at_us for each in observed]),
            np.arange(len(results)),
            np.array(values, dtype=np.float64),
            np.array(n_rcv, dtype=np.int64),
            np.array(batches, dtype=np.int64) == run.cluster.batches,
        )
        self.by_stream = self.first.select(~self.first.is_flush)
        """First answers of the windows that closed before the flush."""
        corrected = [
            (correction.at_us, numbers[Window(*step[:3])], step.value)
            for correction in run.corrections
            for step in correction.revisions
        ]
        rows = np.array(corrected, dtype=np.float64).reshape(-1, 3)
        self.corrected = AnswerRows(rows[:, 0], rows[:, 1].astype(np.int64), rows[:, 2])
        """Corrected answers, in the order in which they could be seen."""
        self.truth, self.n = np.zeros(len(numbers)), np.zeros(len(numbers), dtype=np.int64)
        """Truth, and number of tuples, of each window."""
        self.truth[self.first.window], self.n[self.first.window] = (
            self.first.value,
            self.first.n_rcv,
        )
        for window, truth, n in _truths(run, self.windows, late):
            self.truth[numbers[window]], self.n[numbers[window]] = truth, n

    def errors(self, answers: FirstAnswers | AnswerRows) -> FloatArray:
        """Return the relative errors of answers."""
        return relative_errors(answers.value, self.truth[answers.window])

    def coverage(self, first: FirstAnswers) -> FloatArray:
        """Return the share of the windows' tuples that their first answers contained."""
        coverage: FloatArray = first.n_rcv / self.n[first.window]
        return coverage


def relative_errors(values: FloatArray, truths: FloatArray) -> FloatArray:
    """Return relative errors; 1 for any wrong answer if the truth is 0."""
    off, size = np.abs(values - truths), np.abs(truths)
    errors: FloatArray = (values != truths).astype(np.float64)
    np.divide(off, size, out=errors, where=size > 0)
    return errors


def _truths(
    run: FinishedRun, windows: Collection[Window], late: Collection[Window]
) -> Iterator[tuple[Window, float, int]]:
    """Yield truth and number of tuples of the windows whose first answer may be wrong."""
    aggregate = aggregate_of(run.query)
    for task in run.tasks:
        events, columns = task.accepted.events, task.columns
        # An identity that was accepted twice counts once, by its first row.
        row_of: dict[int, int] = {}
        for row, event in enumerate(events):
            row_of.setdefault(event.source_id, row)
        doubtful = late if len(row_of) == len(events) else windows
        wanted = [window for window in doubtful if window.task == task.number]
        if wanted:
            rows = np.sort(np.fromiter(row_of.values(), np.int64, len(row_of)))
            rows = rows[np.argsort(columns.event_us[rows], kind="stable")]
            event_us, key = columns.event_us[rows], columns.key[rows]
        for window in wanted:
            bounds_us = (window.start_us, window.start_us + run.query.size_us)
            begin, end = np.searchsorted(event_us, bounds_us)
            found = rows[begin:end][key[begin:end] == run.keys[window.key]]
            values = [events[row].value for row in found.tolist()]
            yield window, aggregate(values), len(values)


# ----------------------------------------------------------------------------------------- pairs


class Pairs(NamedTuple):
    """The (tuple, window) pairs of one task; times are kernel microseconds."""

    total: int
    """Pairs of all accepted tuples, late ones included."""
    answered: IntArray
    """Row in :attr:`Answers.first` that answered each pair on time; flush left out."""
    latency_us: FloatArray
    """Time from the tuple's arrival to that answer."""
    entered_us: FloatArray
    """Service time of each tuple that found a window open."""
    left_us: FloatArray
    """Time of the answer to the last of its windows; infinite if there was none."""
    opened_us: FloatArray
    """Service time of the first tuple of each window that the stream answered, by answer."""


def pairs_of(run: FinishedRun, task: TaskObservation, answers: Answers) -> Pairs:
    """Find all pairs of a task, as a matrix with a row per tuple and a column per window of it."""
    accepted, query = task.columns, run.query
    first = (accepted.event_us - query.size_us) // query.slide_us + 1
    last = accepted.event_us // query.slide_us
    index = last[:, None] - np.arange(int((last - first).max(initial=-1)) + 1)
    is_on_time = index >= first[:, None]
    total = int(is_on_time.sum())
    late = task.of(Late)
    rows = late.rows
    start_us = np.array([step.start_us for step in late.steps], dtype=np.int64)
    is_on_time[rows, last[rows] - start_us // query.slide_us] = False

    is_own = answers.task[answers.first.window] == task.number
    closed = answers.first.select(is_own)
    answer = _answered_by(run, accepted, index, answers, closed.window)
    at_us = np.append(closed.at_us, np.inf)[answer]
    served_us = task.accepted.served_us
    rows, columns = np.nonzero(is_on_time & (answer >= 0))
    opened_us = np.full(len(closed.window), np.inf)
    np.minimum.at(opened_us, answer[rows, columns], served_us[rows])
    by_stream = ~closed.is_flush[answer[rows, columns]]
    rows, columns = rows[by_stream], columns[by_stream]
    answered = answer[rows, columns]
    buffered = np.flatnonzero(is_on_time.any(axis=1))
    last_us = np.where(is_on_time, at_us, -np.inf).max(axis=1, initial=-np.inf)
    return Pairs(
        total=total,
        answered=np.flatnonzero(is_own)[answered],
        latency_us=closed.at_us[answered] - accepted.came_us[rows],
        entered_us=served_us[buffered],
        left_us=last_us[buffered],
        opened_us=opened_us[~closed.is_flush],
    )


def _answered_by(
    run: FinishedRun, accepted: Columns, index: IntArray, answers: Answers, closed: IntArray
) -> IntArray:
    """Return the place in ``closed`` of each pair's window, or -1 if it is not there.

    ``index`` has the index of the pair's window, one row per tuple.
    """
    if not len(closed):
        return np.full(index.shape, -1)
    # Window and key as one number, so that all pairs are found in one sorted array.
    low, keys = int(index.min()), len(run.keys)
    code = (index - low) * keys + accepted.key[:, None]
    key = np.array([run.keys[answers.windows[each].key] for each in closed.tolist()])
    known = (answers.start_us[closed] // run.query.slide_us - low) * keys + key
    order = np.argsort(known)
    place = order[np.minimum(np.searchsorted(known, code, sorter=order), len(known) - 1)]
    return np.where(known[place] == code, place, -1)


class LatePairs(NamedTuple):
    """Late pairs as an observer counts them: pending until their correction can be seen."""

    late_us: list[float]
    """Times at which pairs became pending."""
    settled_us: list[float]
    """Times at which corrections of pairs could be seen."""
    waited_us: list[float]
    """Time from the arrival of the tuple to the visible correction."""


def late_pairs_of(run: FinishedRun) -> LatePairs:
    """Find every late pair and, if it was corrected, when the correction could be seen."""
    late_us: list[float] = []
    arrived_us: dict[Cleared, int] = {}
    for task in run.tasks:
        pending: dict[tuple[int, int, str, int], int] = {}
        # A correction at the end of a batch comes after the tuples of the batch.
        changes: list[tuple[float, int, Late | Cleared]] = []
        for observed in (task.of(Late), task.of(Cleared)):
            changes += zip(
                observed.at_us.tolist(), observed.rows.tolist(), observed.steps, strict=True
            )
        changes.sort(key=lambda change: (change[1], isinstance(change[2], Cleared)))
        for at_us, row, step in changes:
            pair = step.task, step.start_us, step.key, step.source_id
            if isinstance(step, Cleared):
                arrived_us[step] = pending.pop(pair)
            # A pair that is pending already is not added again.
            elif pair not in pending:
                late_us.append(at_us)
                pending[pair] = int(task.columns.came_us[row])
    settled = [
        (correction.at_us, correction.at_us - arrived_us[step])
        for correction in run.corrections
        for step in correction.cleared
    ]
    settled_us = [at_us for at_us, _ in settled]
    return LatePairs(late_us, settled_us, [waited_us for _, waited_us in settled])


# -------------------------------------------------------------------------------------- together


@dataclass(frozen=True, slots=True)
class Observations:
    """A finished run with its answers and pairs."""

    run: FinishedRun
    answers: Answers
    pairs: list[Pairs]
    """Pairs of each task."""
    late: LatePairs

    def window_latency_us(self, first: FirstAnswers) -> FloatArray:
        """Return the time from the ends of windows, by the sources' clock, to first answers."""
        end_us = self.answers.start_us[first.window] + self.run.query.size_us
        latency_us: FloatArray = first.at_us + (self.run.cluster.start_us - end_us)
        return latency_us


def observe(run: FinishedRun) -> Observations:
    """Find answers and pairs of a finished run."""
    answers = Answers(run)
    pairs = [pairs_of(run, task, answers) for task in run.tasks]
    return Observations(run, answers, pairs, late_pairs_of(run))
