"""Which answers a timed run gave, when, and how far from the truth they were.

Rules of this file:

* It looks at what was recorded and decides nothing. Which pairs were late, and which windows
  closed when, is read from the steps.
* The truth about a window is the aggregate over all of its tuples that arrived at any time. An
  answer has told it if nothing came late for its window.
* An answer that only the flush gave came because the stream ended, not because the window closed:
  it counts in no figure about first answers.
"""

from collections.abc import Collection, Iterator
from itertools import count
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from model.vocabulary.answers import Late, Result
from model.windows.query import aggregate_of
from model.windows.state import Window
from sim.kernel.disorder import IntArray
from sim.kernel.distributions import FloatArray
from sim.kernel.recorder import columns_of
from sim.windows.observed import Observed

BoolArray: TypeAlias = NDArray[np.bool_]

# ----------------------------------------------------------------------------- windows


class First(NamedTuple):
    """The stream's own answers, a row an answer; task by task, and of a task in order of time."""

    at_us: FloatArray
    """Kernel time from which it could be seen."""
    window: IntArray
    """Which of :attr:`Answers.windows`."""
    value: FloatArray
    n_rcv: IntArray
    is_flush: BoolArray

    def only(self, rows: BoolArray) -> "First":
        """Some of them."""
        columns: list[NDArray[Any]] = [column[rows] for column in self]
        return First(*columns)


class Given(NamedTuple):
    """Any answers for windows, a row an answer."""

    at_us: FloatArray
    window: IntArray
    value: FloatArray


class Answers:
    """Every window that at least one tuple arrived for."""

    __slots__ = ("by_stream", "corrected", "first", "n", "start_us", "task", "truth", "windows")

    def __init__(self, run: Observed) -> None:
        seen = [task.of(Result) for task in run.tasks]
        results = [step for each in seen for step in each.steps]
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
        self.start_us = np.array(
            [*starts_us, *[each.start_us for each in unanswered]], dtype=np.int64
        )
        """Of each window."""
        self.first = First(
            np.concatenate([each.at_us for each in seen]),
            np.arange(len(results)),
            np.array(values, dtype=np.float64),
            np.array(n_rcv, dtype=np.int64),
            np.array(batches, dtype=np.int64) == run.room.batches,
        )
        self.by_stream = self.first.only(~self.first.is_flush)
        """First answers of the windows that closed before the flush."""
        corrected = [
            (correction.at_us, numbers[Window(*step[:3])], step.value)
            for correction in run.corrected
            for step in correction.revisions
        ]
        self.corrected = Given(*columns_of(corrected, np.float64, np.int64, np.float64))
        self.truth, self.n = np.zeros(len(numbers)), np.zeros(len(numbers), dtype=np.int64)
        """Of each window: the truth, and how many tuples it has."""
        self.truth[self.first.window], self.n[self.first.window] = (
            self.first.value,
            self.first.n_rcv,
        )
        for window, truth, n in _looked_up(run, self.windows, late):
            self.truth[numbers[window]], self.n[numbers[window]] = truth, n

    @property
    def in_force(self) -> Given:
        """The latest answer for each window."""
        at_us, window, value = (
            np.concatenate(parts) for parts in zip(self.first[:3], self.corrected, strict=True)
        )
        # In a dictionary the latest wins, and stays where the first was.
        latest = list({each: row for row, each in enumerate(window.tolist())}.values())
        return Given(at_us[latest], window[latest], value[latest])

    def errors(self, given: First | Given) -> FloatArray:
        """Relative errors of answers; 1 for any wrong answer where the truth is 0."""
        value, truth = given.value, self.truth[given.window]
        errors: FloatArray = (value != truth).astype(np.float64)
        off, size = np.abs(value - truth), np.abs(truth)
        np.divide(off, size, out=errors, where=size > 0)
        return errors

    def coverage(self, first: First) -> FloatArray:
        """Share of the windows' tuples that their first answers contained."""
        coverage: FloatArray = first.n_rcv / self.n[first.window]
        return coverage


def _looked_up(
    run: Observed, windows: Collection[Window], late: Collection[Window]
) -> Iterator[tuple[Window, float, int]]:
    """Truth and number of tuples of the windows whose first answer need not have told them."""
    aggregate = aggregate_of(run.query)
    for task in run.tasks:
        events, columns = task.accepted.events, task.columns
        # An identity that was accepted twice counts once: its first row is what stays.
        row_of: dict[int, int] = {}
        for row, event in enumerate(events):
            row_of.setdefault(event.source_id, row)
        told = late if len(row_of) == len(events) else windows
        wanted = [window for window in told if window.task == task.number]
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
