"""A timed run in figures.

Rules of this file:

* Names end in their unit; shares, coverage, errors and utilisation are fractions of 1.
* A figure of which nothing was seen is left out; a mean of nothing is not 0.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from model.vocabulary.answers import Rejected
from sim.distributions import FloatArray
from sim.windows.observed import Observed
from sim.windows.task import TaskT

Figure: TypeAlias = float | int | str
Summary: TypeAlias = dict[str, Figure]


def summary_of(run: Observed[TaskT], wait: str) -> Summary:
    """All figures; those about first answers leave out what only the flush answered.

    ``wait`` is the name of what tasks waited.
    """
    return {**_counts(run), **_latencies(run, wait), **_quality(run), **_load(run)}


def _counts(run: Observed[TaskT]) -> Summary:
    room, answers = run.room, run.answers
    accepted = sum(len(task.accepted) for task in room.tasks)
    rejected = sum(len(task.of(Rejected).steps) for task in room.tasks)
    pairs, late = sum(pairs.total for pairs in run.pairs), len(run.owed.late_us)
    windows, closed, by_stream = (
        len(each) for each in (answers.windows, answers.first.window, answers.by_stream.window)
    )
    plans = [plan for _, plan in room.corrected]
    return {
        "arrivals": len(room.workload.arrivals),
        "rejected": rejected,
        "redelivered": len(room.workload.arrivals) - accepted - rejected,
        "batches": len(room.batches),
        "windows": windows,
        "answered_by_stream": by_stream,
        "answered_by_flush": closed - by_stream,
        "answered_by_correction": windows - closed,
        "pairs": pairs,
        "late_pairs": late,
        **({"late_share": late / pairs} if pairs else {}),
        "corrections": len(plans),
        "corrected_windows": sum(len(plan.answers) for plan in plans),
        "history_rows_read": sum(n for plan in plans for _window, _value, n in plan.answers),
    }


def _latencies(run: Observed[TaskT], wait: str) -> Summary:
    """Waiting times."""
    latency_us = np.concatenate([pairs.latency_us for pairs in run.pairs])
    waits_us = np.concatenate([task.waits_us for task in run.room.tasks])
    return {
        **_spread("latency_us", latency_us),
        **_spread("window_latency_us", run.window_latency_us(run.answers.by_stream)),
        **_spread("correction_latency_us", run.owed.waited_us),
        **_spread(wait, waits_us),
    }


def _quality(run: Observed[TaskT]) -> Summary:
    answers = run.answers
    first = answers.by_stream
    # A window that the stream never answered had its chance and covered nothing.
    missed = np.zeros(len(answers.windows) - len(answers.first.window))
    return {
        **mean("mean_coverage", np.concatenate((answers.coverage(first), missed))),
        **mean("mean_first_error", answers.errors(first)),
        **mean("final_error", answers.errors(answers.in_force)),
    }


def _load(run: Observed[TaskT]) -> Summary:
    """Buffers, queues and workers."""
    room, now_us = run.room, run.room.end_us
    lines = [task.line for task in room.tasks]
    entered_us = np.concatenate([pairs.entered_us for pairs in run.pairs])
    left_us = np.concatenate([pairs.left_us for pairs in run.pairs]).clip(max=now_us)
    return {
        "duration_us": now_us,
        # Little's law: the time that tuples were kept is the area under their number.
        **({"mean_buffered": float((left_us - entered_us).sum()) / now_us} if now_us else {}),
        "peak_buffered": _peak(entered_us, left_us),
        "mean_queue": sum(line.mean_inside(now_us) for line in lines),
        "peak_queue": max(line.peak_inside for line in lines),
        **{f"utilisation_{n}": line.utilisation(now_us) for n, line in enumerate(lines)},
        "utilisation_batch_worker": room.batch_line.utilisation(now_us),
    }


def _peak(entered_us: FloatArray, left_us: FloatArray) -> int:
    """The most tuples kept at any time; one that leaves makes room for one that enters then."""
    times_us = np.concatenate([left_us, entered_us])
    changes = np.repeat([-1, 1], [len(left_us), len(entered_us)])
    return int(changes[np.argsort(times_us, kind="stable")].cumsum().max(initial=0))


def mean(name: str, values: ArrayLike) -> Summary:
    """The mean as a figure of that name, if there are values."""
    array = np.asarray(values, dtype=np.float64)
    return {name: float(array.mean())} if len(array) else {}


def _spread(name: str, values: ArrayLike) -> Summary:
    array = np.asarray(values, dtype=np.float64)
    if not len(array):
        return {}
    p99, peak = float(np.percentile(array, 99)), float(array.max())
    return {f"mean_{name}": float(array.mean()), f"p99_{name}": p99, f"peak_{name}": peak}
