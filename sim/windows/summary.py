"""A timed run in figures.

Rules of this file:

* Names end in their unit; shares, coverage, errors and utilisation are fractions of 1.
* A figure of which nothing was seen is left out; a mean of nothing is not 0.
"""

import numpy as np
from numpy.typing import ArrayLike

from model.vocabulary.answers import Rejected
from sim.kernel.distributions import FloatArray
from sim.kernel.recorder import Summary
from sim.windows.seen import SeenRun


def summary_of(run: SeenRun, wait: str) -> Summary:
    """All figures; those about first answers leave out what only the flush answered.

    ``wait`` is the name of what tasks waited.
    """
    return {**_counts(run), **_latencies(run, wait), **_quality(run), **_load(run)}


def _counts(run: SeenRun) -> Summary:
    observed, answers = run.observed, run.answers
    arrivals = len(observed.arrived.events)
    accepted = sum(len(task.accepted.events) for task in observed.tasks)
    rejected = sum(len(task.of(Rejected).steps) for task in observed.tasks)
    pairs, late = sum(pairs.total for pairs in run.pairs), len(run.owed.late_us)
    windows, closed, by_stream = (
        len(each) for each in (answers.windows, answers.first.window, answers.by_stream.window)
    )
    revisions = [step for each in observed.corrected for step in each.revisions]
    return {
        "arrivals": arrivals,
        "rejected": rejected,
        "redelivered": arrivals - accepted - rejected,
        **_troubles(run),
        "batches": observed.room.batches,
        "windows": windows,
        "answered_by_stream": by_stream,
        "answered_by_flush": closed - by_stream,
        "answered_by_correction": windows - closed,
        "pairs": pairs,
        "late_pairs": late,
        **({"late_share": late / pairs} if pairs else {}),
        "corrections": len(observed.corrected),
        "corrected_windows": len(revisions),
        "history_rows_read": sum(step.n for step in revisions),
    }


def _troubles(run: SeenRun) -> Summary:
    """What the cluster had trouble with: of each kind, only if there was any."""
    room, counts = run.observed.room, run.observed.arrived.counts
    stations, links = room.workers.values(), room.links.values()
    found = {
        "shed": counts["shed"],
        "held_back": sum(station.blocked for station in stations),
        "sent_again": sum(link.retried for link in links),
        "served_again": sum(station.repeated for station in stations),
    }
    return {name: count for name, count in found.items() if count}


def _latencies(run: SeenRun, wait: str) -> Summary:
    """Waiting times."""
    latency_us = np.concatenate([pairs.latency_us for pairs in run.pairs])
    waits_us = np.concatenate([task.accepted.wait_us for task in run.observed.tasks])
    return {
        **_spread("latency_us", latency_us),
        **_spread("window_latency_us", run.window_latency_us(run.answers.by_stream)),
        **_spread("correction_latency_us", run.owed.waited_us),
        **_spread(wait, waits_us),
    }


def _quality(run: SeenRun) -> Summary:
    answers = run.answers
    first = answers.by_stream
    # A window that the stream never answered had its chance and covered nothing.
    missed = np.zeros(len(answers.windows) - len(answers.first.window))
    return {
        **mean("mean_coverage", np.concatenate((answers.coverage(first), missed))),
        **mean("mean_first_error", answers.errors(first)),
        **mean("final_error", answers.errors(answers.in_force)),
    }


def _load(run: SeenRun) -> Summary:
    """Buffers, queues and workers."""
    room, now_us = run.observed.room, run.observed.room.end_us
    stations = [task.station for task in room.tasks]
    entered_us = np.concatenate([pairs.entered_us for pairs in run.pairs])
    left_us = np.concatenate([pairs.left_us for pairs in run.pairs]).clip(max=now_us)
    workers = {str(number): station.busy for number, station in enumerate(stations)}
    workers["corrector"] = room.corrector.station.busy
    return {
        "duration_us": now_us,
        # Little's law: the time that tuples were kept is the area under their number.
        **({"mean_buffered": float((left_us - entered_us).sum()) / now_us} if now_us else {}),
        "peak_buffered": _peak(entered_us, left_us),
        "mean_queue": sum(station.inside.mean(now_us) for station in stations),
        "peak_queue": max(station.inside.peak for station in stations),
        **{f"utilisation_{name}": busy.mean(now_us) for name, busy in workers.items()},
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
    p50, p99 = np.percentile(array, (50, 99)).tolist()
    means = {f"mean_{name}": float(array.mean()), f"p50_{name}": p50, f"p99_{name}": p99}
    return {**means, f"peak_{name}": float(array.max())}
