"""Summary and series of a run of a windowed room; see :mod:`sim.timed_figures` for their rules."""

from itertools import pairwise
from math import nan

import numpy as np
from numpy.typing import ArrayLike

from model.vocabulary.windows import Rejected
from sim.kernel.distributions import FloatArray
from sim.kernel.recorder import Series, Summary, ratio
from sim.timed_figures import (
    looks_us,
    mean,
    means,
    means_by_row,
    number_columns,
    summarise_spread,
    troubles,
)
from sim.windows.observations import AnswerRows, Answers, Observations

# --------------------------------------------------------------------------------------- summary


def summary_of(observed: Observations, wait: str) -> Summary:
    """Return all figures; those about first answers leave out what only the flush answered.

    ``wait`` is the name of the tasks' wait.
    """
    counts, latencies = _counts(observed), _latencies(observed, wait)
    return {**counts, **latencies, **_quality(observed), **_load(observed)}


def _counts(observed: Observations) -> Summary:
    run, answers = observed.run, observed.answers
    cluster, arrivals = run.cluster, len(run.arrived.events)
    accepted = sum(len(task.accepted.events) for task in run.tasks)
    rejected = sum(len(task.of(Rejected).steps) for task in run.tasks)
    pairs, late = sum(pairs.total for pairs in observed.pairs), len(observed.late.late_us)
    windows, closed, by_stream = (
        len(each) for each in (answers.windows, answers.first.window, answers.by_stream.window)
    )
    revisions = [step for each in run.corrections for step in each.revisions]
    return {
        "arrivals": arrivals,
        "rejected": rejected,
        "redelivered": arrivals - accepted - rejected,
        **troubles(run.arrived, cluster.workers.values(), cluster.links.values()),
        "batches": cluster.batches,
        "windows": windows,
        "answered_by_stream": by_stream,
        "answered_by_flush": closed - by_stream,
        "pairs": pairs,
        "late_pairs": late,
        **({"late_share": late / pairs} if pairs else {}),
        "corrections": len(run.corrections),
        "history_rows_read": sum(step.n for step in revisions),
    }


def _latencies(observed: Observations, wait: str) -> Summary:
    latency_us = np.concatenate([pairs.latency_us for pairs in observed.pairs])
    waits_us = np.concatenate([task.accepted.wait_us for task in observed.run.tasks])
    first = observed.answers.by_stream
    return {
        **summarise_spread("latency_us", latency_us),
        **summarise_spread("window_latency_us", observed.window_latency_us(first)),
        **summarise_spread("correction_latency_us", observed.late.waited_us),
        **summarise_spread(wait, waits_us),
    }


def _quality(observed: Observations) -> Summary:
    answers = observed.answers
    first = answers.by_stream
    # A window that the stream never answered counts with coverage 0.
    missed = np.zeros(len(answers.windows) - len(answers.first.window))
    return {
        **mean("mean_coverage", np.concatenate((answers.coverage(first), missed))),
        **mean("mean_first_error", answers.errors(first)),
    }


def _load(observed: Observations) -> Summary:
    """Return figures about buffers, queues and workers."""
    cluster, now_us = observed.run.cluster, observed.run.cluster.end_us
    stations = [task.station for task in cluster.tasks]
    entered_us = np.concatenate([pairs.entered_us for pairs in observed.pairs])
    left_us = np.concatenate([pairs.left_us for pairs in observed.pairs]).clip(max=now_us)
    workers = {str(number): station.busy for number, station in enumerate(stations)}
    workers["corrector"] = cluster.corrector.station.busy
    return {
        "duration_us": now_us,
        # Little's law: the total time in the buffer is the area under the number of tuples in it.
        **({"mean_buffered": float((left_us - entered_us).sum()) / now_us} if now_us else {}),
        "peak_queue": max(station.inside.peak for station in stations),
        **{f"utilisation_{name}": busy.mean(now_us) for name, busy in workers.items()},
    }


# ---------------------------------------------------------------------------------------- series


def series_of(observed: Observations, wait: str, share: str) -> Series:
    """Return all columns.

    Columns called ``wait`` (wait of the tasks) and ``share`` (of the longest wait, from which the
    wait follows): mean over the tasks, from their first tuple until they are flushed.
    ``watermark_lag_us``: how far the lowest of their watermarks is behind the clock. ``queue`` (all
    tasks), ``queue_0``, ... and ``queue_corrector``: items waiting or in service, marks and
    corrections included. ``utilisation`` (mean over the tasks), ``utilisation_0``, ... and
    ``utilisation_corrector``: share of the interval in which workers worked.

    ``latency_us``: from a tuple's arrival to the first answer of its windows, and
    ``window_latency_us``: from a window's end to its first answer, and ``coverage``: share of the
    window's tuples in it; means over the answers of the interval.

    ``buffered``: tuples in open windows. ``late_pairs``, ``corrections``: so far;
    ``pending_pairs``: late and not visibly corrected. ``first_error``, ``current_error``: mean
    relative error, over all windows answered so far, of the stream's own answers and of those in
    force.
    """
    grid_us = observed.run.grid_us
    return {
        "time_us": grid_us,
        **_levels(observed, grid_us, wait, share),
        **_answered(observed, grid_us),
        **_counts_so_far(observed, grid_us),
        **_errors(observed.answers, grid_us),
    }


def _levels(
    observed: Observations, grid_us: FloatArray, wait: str, share: str
) -> dict[str, FloatArray]:
    """Return the gauges of tasks and workers."""
    looks = looks_us(grid_us)
    cluster = observed.run.cluster
    records = [task.record for task in cluster.tasks]
    # Each array has a row per moment and a column per task.
    is_streaming = np.column_stack([each.is_streaming.at(looks) for each in records])
    wait_us = np.column_stack([each.wait_us.at(looks) for each in records])
    marks_us = np.column_stack([each.watermark_us.at(looks) for each in records])
    shares = np.column_stack([each.share.at(looks) for each in records])
    streaming = is_streaming.sum(axis=1)
    # Before the first tuple there is no watermark.
    behind_us = cluster.start_us - np.where(is_streaming > 0, marks_us, 0)
    lag_us = np.where(is_streaming > 0, grid_us[:, None] + behind_us, -np.inf).max(axis=1)
    queues = [task.station.inside.at(looks) for task in cluster.tasks]
    busy = [task.station.busy.means(grid_us) for task in cluster.tasks]
    return {
        wait: ratio((wait_us * is_streaming).sum(axis=1), streaming),
        "watermark_lag_us": np.where(streaming > 0, lag_us, nan),
        share: ratio((shares * is_streaming).sum(axis=1), streaming),
        "queue": np.sum(queues, axis=0),
        **number_columns("queue", queues),
        "queue_corrector": cluster.corrector.station.inside.at(looks),
        "utilisation": np.mean(busy, axis=0),
        **number_columns("utilisation", busy),
        "utilisation_corrector": cluster.corrector.station.busy.means(grid_us),
    }


def _answered(observed: Observations, grid_us: FloatArray) -> dict[str, FloatArray]:
    """Return means over first answers, by the interval in which they came."""
    first = observed.answers.by_stream
    # Many pairs share an answer.
    rows = np.searchsorted(grid_us, observed.answers.first.at_us)
    answered = np.concatenate([pairs.answered for pairs in observed.pairs])
    latency_us = np.concatenate([pairs.latency_us for pairs in observed.pairs])
    return {
        "latency_us": means_by_row(rows[answered], latency_us, len(grid_us)),
        "window_latency_us": means(first.at_us, observed.window_latency_us(first), grid_us),
        "coverage": means(first.at_us, observed.answers.coverage(first), grid_us),
    }


def _counts_so_far(observed: Observations, grid_us: FloatArray) -> dict[str, FloatArray]:
    """Return numbers of buffered tuples, late and pending pairs, and corrections."""
    entered_us = np.concatenate([pairs.entered_us for pairs in observed.pairs])
    left_us = np.concatenate([pairs.left_us for pairs in observed.pairs])
    late = _so_far(observed.late.late_us, grid_us)
    return {
        "buffered": _so_far(entered_us, grid_us) - _so_far(left_us[np.isfinite(left_us)], grid_us),
        "late_pairs": late,
        "pending_pairs": late - _so_far(observed.late.settled_us, grid_us),
        "corrections": _so_far([each.at_us for each in observed.run.corrections], grid_us),
    }


def _errors(answers: Answers, grid_us: FloatArray) -> dict[str, FloatArray]:
    """Return mean errors over all windows answered so far."""
    stream = AnswerRows(*answers.by_stream[:3])
    ever = [
        np.concatenate(parts) for parts in zip(answers.first[:3], answers.corrected, strict=True)
    ]
    return {
        "first_error": _mean_errors(answers, stream, grid_us),
        "current_error": _mean_errors(answers, AnswerRows(*ever), grid_us),
    }


def _mean_errors(answers: Answers, given: AnswerRows, grid_us: FloatArray) -> FloatArray:
    """Return the mean error over the latest answers of all windows, row by row."""
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
    """Return how many of the times have come, row by row."""
    times = np.sort(np.asarray(times_us, dtype=np.float64))
    return np.searchsorted(times, grid_us, side="right").astype(np.float64)
