"""A timed run over time, as columns of one table.

Rules of this file:

* ``time_us`` is kernel time, which is 0 at the start of the run. A row stands for that moment, or
  for the interval since the row before.
* Where there was nothing to measure stands ``nan``.
"""

from itertools import pairwise
from math import nan

import numpy as np
from numpy.typing import ArrayLike

from sim.kernel.disorder import IntArray
from sim.kernel.distributions import FloatArray
from sim.kernel.recorder import Series, ratio
from sim.windows.answers import Answers, Given
from sim.windows.seen import SeenRun


def series_of(run: SeenRun, wait: str, share: str) -> Series:
    """Return all columns.

    Columns called ``wait`` (what tasks waited) and ``share`` (of the longest wait, from which that
    follows): mean over the tasks, from their first tuple until they are flushed.
    ``watermark_lag_us``: how far the last of their watermarks is behind the time. ``queue`` (all
    tasks), ``queue_0``, ... and ``queue_corrector``: what waits or is in service, marks and
    corrections included. ``utilisation`` (mean over the tasks), ``utilisation_0``, ... and
    ``utilisation_corrector``: of the workers, in the interval.

    ``latency_us``: from a tuple's arrival to the first answer of its windows, and
    ``window_latency_us``: from a window's end to its first answer, and ``coverage``: share of the
    window's tuples in it; means over the answers of the interval.

    ``buffered``: tuples in open windows. ``late_pairs``, ``corrections``: so far;
    ``pending_pairs``: late and not visibly corrected. ``first_error``, ``current_error``: mean
    relative error, over all windows answered so far, of the stream's own answers and of those in
    force.
    """
    grid_us = run.observed.grid_us
    return {
        "time_us": grid_us,
        **_sampled(run, grid_us, wait, share),
        **_answered(run, grid_us),
        **_owed(run, grid_us),
        **_errors(run.answers, grid_us),
    }


def _sampled(run: SeenRun, grid_us: FloatArray, wait: str, share: str) -> dict[str, FloatArray]:
    """Where tasks and workers stood."""
    # The last look is when everything is over, and nothing happens after it.
    looks_us = np.append(grid_us[:-1], np.nextafter(grid_us[-1], np.inf))
    room = run.observed.room
    records = [task.record for task in room.tasks]
    # Each has a row a moment and a column a task.
    is_streaming = np.column_stack([each.is_streaming.at(looks_us) for each in records])
    wait_us = np.column_stack([each.wait_us.at(looks_us) for each in records])
    marks_us = np.column_stack([each.watermark_us.at(looks_us) for each in records])
    shares = np.column_stack([each.share.at(looks_us) for each in records])
    streaming = is_streaming.sum(axis=1)
    # Before the first tuple the watermark is further away than can be told.
    behind_us = room.start_us - np.where(is_streaming > 0, marks_us, 0)
    lag_us = np.where(is_streaming > 0, grid_us[:, None] + behind_us, -np.inf).max(axis=1)
    queues = [task.station.inside.at(looks_us) for task in room.tasks]
    busy = [task.station.busy.means(grid_us) for task in room.tasks]
    return {
        wait: ratio((wait_us * is_streaming).sum(axis=1), streaming),
        "watermark_lag_us": np.where(streaming > 0, lag_us, nan),
        share: ratio((shares * is_streaming).sum(axis=1), streaming),
        "queue": np.sum(queues, axis=0),
        **{f"queue_{task}": queue for task, queue in enumerate(queues)},
        "queue_corrector": room.corrector.station.inside.at(looks_us),
        "utilisation": np.mean(busy, axis=0),
        **{f"utilisation_{task}": each for task, each in enumerate(busy)},
        "utilisation_corrector": room.corrector.station.busy.means(grid_us),
    }


def _answered(run: SeenRun, grid_us: FloatArray) -> dict[str, FloatArray]:
    """Average over first answers, by the interval in which they came."""
    first = run.answers.by_stream
    # Many pairs share an answer.
    intervals = np.searchsorted(grid_us, run.answers.first.at_us)
    answered = np.concatenate([pairs.answered for pairs in run.pairs])
    latency_us = np.concatenate([pairs.latency_us for pairs in run.pairs])
    return {
        "latency_us": _means_of(intervals[answered], latency_us, len(grid_us)),
        "window_latency_us": means(first.at_us, run.window_latency_us(first), grid_us),
        "coverage": means(first.at_us, run.answers.coverage(first), grid_us),
    }


def _owed(run: SeenRun, grid_us: FloatArray) -> dict[str, FloatArray]:
    """Tuples kept, pairs owed, corrections made."""
    entered_us = np.concatenate([pairs.entered_us for pairs in run.pairs])
    left_us = np.concatenate([pairs.left_us for pairs in run.pairs])
    late = _so_far(run.owed.late_us, grid_us)
    return {
        "buffered": _so_far(entered_us, grid_us) - _so_far(left_us[np.isfinite(left_us)], grid_us),
        "late_pairs": late,
        "pending_pairs": late - _so_far(run.owed.settled_us, grid_us),
        "corrections": _so_far([each.at_us for each in run.observed.corrected], grid_us),
    }


def _errors(answers: Answers, grid_us: FloatArray) -> dict[str, FloatArray]:
    """Errors of all windows answered so far."""
    stream = Given(*answers.by_stream[:3])
    ever = [
        np.concatenate(parts) for parts in zip(answers.first[:3], answers.corrected, strict=True)
    ]
    return {
        "first_error": _mean_errors(answers, stream, grid_us),
        "current_error": _mean_errors(answers, Given(*ever), grid_us),
    }


def _mean_errors(answers: Answers, given: Given, grid_us: FloatArray) -> FloatArray:
    """Mean over the latest answers of all windows, row by row."""
    # A stable sort: a correction that can be seen at once still comes after what it corrects.
    order = np.argsort(given.at_us, kind="stable")
    so_far = np.searchsorted(given.at_us[order], grid_us, side="right").tolist()
    window, latest = given.window[order], answers.errors(given)[order]
    # Windows keep the place of their first answer, whatever corrects it.
    _, firsts, which = np.unique(window, return_index=True, return_inverse=True)
    place = np.argsort(np.argsort(firsts))[which]
    answered = np.searchsorted(np.sort(firsts), so_far).tolist()
    errors, means = np.zeros(len(firsts)), np.full(len(grid_us), nan)
    for row, (before, now) in enumerate(pairwise((0, *so_far))):
        errors[place[before:now]] = latest[before:now]
        if answered[row]:
            means[row] = np.add.reduce(errors[: answered[row]]) / answered[row]
    return means


def _so_far(times_us: ArrayLike, grid_us: FloatArray) -> FloatArray:
    """How many of the times have come, row by row."""
    times = np.sort(np.asarray(times_us, dtype=np.float64))
    return np.searchsorted(times, grid_us, side="right").astype(np.float64)


def means(times_us: ArrayLike, values: ArrayLike, grid_us: FloatArray) -> FloatArray:
    """Mean of the values within each row's interval."""
    intervals = np.searchsorted(grid_us, np.asarray(times_us, dtype=np.float64))
    return _means_of(intervals, np.asarray(values, dtype=np.float64), len(grid_us))


def _means_of(intervals: IntArray, values: FloatArray, rows: int) -> FloatArray:
    """Mean of the values of each row, one after the other; ``intervals`` are their rows."""
    sums = np.bincount(intervals, weights=values, minlength=rows).astype(np.float64)
    return ratio(sums, np.bincount(intervals, minlength=rows).astype(np.float64))
