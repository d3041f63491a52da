"""The (tuple, window) pairs of a timed run: which waited how long, which came late and are owed.

Rules of this file:

* It looks at what was recorded and decides nothing, as in ``sim/windows/answers.py``.
"""

from typing import NamedTuple

import numpy as np

from model.vocabulary.answers import Cleared, Late
from sim.kernel.disorder import IntArray
from sim.kernel.distributions import FloatArray
from sim.windows.answers import Answers
from sim.windows.observed import Columns, Observed, TaskSeen


class Pairs(NamedTuple):
    """The (tuple, window) pairs of one task; times are kernel microseconds."""

    total: int
    """Pairs of all accepted tuples, late ones included."""
    answered: IntArray
    """Which of :attr:`Answers.first` answered each pair that was on time; flush left out."""
    latency_us: FloatArray
    """From the tuple's arrival to that answer."""
    entered_us: FloatArray
    """When each tuple that found a window open was served."""
    left_us: FloatArray
    """When the last of its windows was answered; infinite if that never happened."""
    opened_us: FloatArray
    """When the first tuple was served of each window that the stream answered, in their order."""


def pairs_of(run: Observed, task: TaskSeen, answers: Answers) -> Pairs:
    """Find all pairs of a task: a matrix with a row a tuple and a column a window of it."""
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
    closed = answers.first.only(is_own)
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
    run: Observed, accepted: Columns, index: IntArray, answers: Answers, closed: IntArray
) -> IntArray:
    """Which of these closed windows is that of each pair; -1: none.

    ``index`` has the index of the pair's window, a row a tuple.
    """
    if not len(closed):
        return np.full(index.shape, -1)
    # Window and key as one number, so that all pairs are found in one table or sorted array.
    low, keys = int(index.min()), len(run.keys)
    code = (index - low) * keys + accepted.key[:, None]
    key = np.array([run.keys[answers.windows[each].key] for each in closed.tolist()])
    known = (answers.start_us[closed] // run.query.slide_us - low) * keys + key
    if (most := int(code.max())) <= code.size:
        # So few that there may be a table of all numbers.
        table = np.full(most + 1, -1)
        table[known] = np.arange(len(known))
        found: IntArray = table[code]
        return found
    order = np.argsort(known)
    place = order[np.minimum(np.searchsorted(known, code, sorter=order), len(known) - 1)]
    return np.where(known[place] == code, place, -1)


# -------------------------------------------------------------------------- late pairs


class Owed(NamedTuple):
    """Pending pairs as an onlooker counts them: until the correction can be seen."""

    late_us: list[float]
    """When each pair became pending."""
    settled_us: list[float]
    """When its correction could be seen."""
    waited_us: list[float]
    """From the arrival of the tuple to then."""


def owed_by(run: Observed) -> Owed:
    """Find every late pair and, if it was corrected, when that could be seen."""
    late_us: list[float] = []
    arrived_us: dict[Cleared, int] = {}
    for task in run.tasks:
        pending: dict[tuple[int, int, str, int], int] = {}
        # A correction at the end of a batch comes after the tuples of the batch.
        changes: list[tuple[float, int, Late | Cleared]] = []
        for seen in (task.of(Late), task.of(Cleared)):
            changes += zip(seen.at_us.tolist(), seen.rows.tolist(), seen.steps, strict=True)
        changes.sort(key=_by_row)
        for at_us, row, step in changes:
            pair = step.task, step.start_us, step.key, step.source_id
            if isinstance(step, Cleared):
                arrived_us[step] = pending.pop(pair)
            # A set: a pair that is pending already is not added again.
            elif pair not in pending:
                late_us.append(at_us)
                pending[pair] = int(task.columns.came_us[row])
    settled = [
        (correction.at_us, correction.at_us - arrived_us[step])
        for correction in run.corrected
        for step in correction.cleared
    ]
    settled_us = [at_us for at_us, _ in settled]
    return Owed(late_us, settled_us, [waited_us for _, waited_us in settled])


def _by_row(seen: tuple[float, int, Late | Cleared]) -> tuple[int, bool]:
    return seen[1], isinstance(seen[2], Cleared)
