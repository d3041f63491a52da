"""A timed run over time, as columns of one table.

Rules of this file:

* ``time_us`` is kernel time, which is 0 at the start of the run. A row stands for that moment, or
  for the interval since the row before.
* Where there was nothing to measure stands ``nan``.
"""

from collections.abc import Mapping, Sequence
from math import nan
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from model.windows.correction import Window
from sim.columns import ratio
from sim.distributions import FloatArray
from sim.windows.answers import Answers, Given, Observed
from sim.windows.timed import TaskT

Series: TypeAlias = Mapping[str, FloatArray]


def series_of(run: Observed[TaskT], wait: str, share: str) -> Series:
    """All columns.

    Columns called ``wait`` (what tasks waited) and ``share`` (of the longest wait, from which that
    follows): mean over the tasks, from their first tuple until they are flushed.
    ``watermark_lag_us``: how far the last of their watermarks is behind the time. ``queue`` (all
    tasks), ``queue_0``, ...: tuples waiting or in service. ``utilisation``: of the tasks' workers,
    in the interval.

    ``latency_us``: from a tuple's arrival to the first answer of its windows, and
    ``window_latency_us``: from a window's end to its first answer, and ``coverage``: share of the
    window's tuples in it; means over the answers of the interval.

    ``buffered``: tuples in open windows. ``late_pairs``, ``corrections``: so far;
    ``pending_pairs``: late and not visibly corrected. ``first_error``, ``current_error``: mean
    relative error, over all windows answered so far, of the stream's own answers and of those in
    force.
    """
    grid_us = np.array([at_us for at_us, _ in run.room.samples], dtype=np.float64)
    return {
        "time_us": grid_us,
        **_sampled(run, grid_us, wait, share),
        **_answered(run, grid_us),
        **_owed(run, grid_us),
        **_errors(run.answers, grid_us),
    }


def _sampled(
    run: Observed[TaskT], grid_us: FloatArray, wait: str, share: str
) -> dict[str, FloatArray]:
    """What was looked at while the run went on."""
    samples, start_us = run.room.samples, run.room.start_us
    # Axes: row, task, field of Sample.
    table = np.array([tasks for _, tasks in samples], dtype=np.float64)
    is_streaming, wait_us, _, shares, queue, busy_us = np.moveaxis(table, 2, 0)
    streaming = is_streaming.sum(axis=1)
    # Not from the table: times since the epoch lose their microseconds as floats.
    lag_us = [
        max((at_us + (start_us - task.wm_us) for task in tasks if task.is_streaming), default=nan)
        for at_us, tasks in samples
    ]
    worked_us = np.diff(busy_us.mean(axis=1), prepend=0.0)
    return {
        wait: ratio((wait_us * is_streaming).sum(axis=1), streaming),
        "watermark_lag_us": np.array(lag_us, dtype=np.float64),
        share: ratio((shares * is_streaming).sum(axis=1), streaming),
        "queue": queue.sum(axis=1),
        **{f"queue_{task}": queue[:, task] for task in range(queue.shape[1])},
        "utilisation": ratio(worked_us, np.diff(grid_us, prepend=0.0)),
    }


def _answered(run: Observed[TaskT], grid_us: FloatArray) -> dict[str, FloatArray]:
    """First answers, by the interval in which they came."""
    first = run.answers.by_stream()
    first_us = [answer.at_us for answer in first]
    latency_us = [run.window_latency_us(answer) for answer in first]
    coverage = [run.answers.coverage(answer) for answer in first]
    return {
        "latency_us": means(
            np.concatenate([pairs.answered_us for pairs in run.pairs]),
            np.concatenate([pairs.latency_us for pairs in run.pairs]),
            grid_us,
        ),
        "window_latency_us": means(first_us, latency_us, grid_us),
        "coverage": means(first_us, coverage, grid_us),
    }


def _owed(run: Observed[TaskT], grid_us: FloatArray) -> dict[str, FloatArray]:
    """Tuples kept, pairs owed, corrections made."""
    entered_us = np.concatenate([pairs.entered_us for pairs in run.pairs])
    left_us = np.concatenate([pairs.left_us for pairs in run.pairs])
    late = _so_far(run.owed.late_us, grid_us)
    return {
        "buffered": _so_far(entered_us, grid_us) - _so_far(left_us[np.isfinite(left_us)], grid_us),
        "late_pairs": late,
        "pending_pairs": late - _so_far(run.owed.settled_us, grid_us),
        "corrections": _so_far([at_us for at_us, _ in run.room.corrected], grid_us),
    }


def _errors(answers: Answers, grid_us: FloatArray) -> dict[str, FloatArray]:
    """Errors of all windows answered so far."""
    stream = [Given(first.at_us, first.window, first.value) for first in answers.by_stream()]
    ever = [Given(first.at_us, first.window, first.value) for first in answers.first]
    return {
        "first_error": _mean_errors(answers, stream, grid_us),
        "current_error": _mean_errors(answers, ever + answers.corrected, grid_us),
    }


def _mean_errors(answers: Answers, given: Sequence[Given], grid_us: FloatArray) -> FloatArray:
    """Mean over the latest answers of all windows, row by row."""
    slots: dict[Window, int] = {}
    errors = np.zeros(len(answers.truth))
    means = np.full(len(grid_us), nan)
    # A stable sort: a correction that can be seen at once still comes after what it corrects.
    left = iter(sorted(given, key=lambda answer: answer.at_us))
    answer = next(left, None)
    for row, now_us in enumerate(grid_us.tolist()):
        while answer is not None and answer.at_us <= now_us:
            slot = slots.setdefault(answer.window, len(slots))
            errors[slot] = answers.error(answer.window, answer.value)
            answer = next(left, None)
        if slots:
            means[row] = errors[: len(slots)].mean()
    return means


def _so_far(times_us: ArrayLike, grid_us: FloatArray) -> FloatArray:
    """How many of the times have come, row by row."""
    times = np.sort(np.asarray(times_us, dtype=np.float64))
    return np.searchsorted(times, grid_us, side="right").astype(np.float64)


def means(times_us: ArrayLike, values: ArrayLike, grid_us: FloatArray) -> FloatArray:
    """Mean of the values within each row's interval."""
    rows = np.searchsorted(grid_us, np.asarray(times_us, dtype=np.float64))
    sums, counts = np.zeros(len(grid_us)), np.zeros(len(grid_us))
    np.add.at(sums, rows, np.asarray(values, dtype=np.float64))
    np.add.at(counts, rows, 1.0)
    return ratio(sums, counts)
