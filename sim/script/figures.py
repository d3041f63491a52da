"""Summary and series of a run of sensor scripts; see :mod:`sim.timed_figures` for their rules.

Rules of this file:

* The prediction of a placement stands beside the tuples and results that were sent: tuples of
  sensors, each to every worker that hosts it, and results with a stamp within the period.
  ``predicted`` follows from the rates; for results it is an upper bound. After a failure a worker
  sends its results again, and they count again.
"""

from math import ceil

import numpy as np
from numpy.typing import ArrayLike

from model.vocabulary import Trace
from model.vocabulary.script.config import REASON_LATE, Rejected
from sim.kernel.distributions import FloatArray
from sim.kernel.recorder import Series, Summary
from sim.kernel.run import Arrived
from sim.script.cluster import ScriptCluster
from sim.script.placements import predict_load
from sim.timed_figures import looks_us, means, number_columns, summarise_spread, troubles

SECOND_US, HOUR_US = 1e6, 3_600_000_000
ROWS_MAX = 100

# --------------------------------------------------------------------------------------- summary


def summary_of(cluster: ScriptCluster, arrived: Arrived, trace: Trace) -> Summary:
    """Return the figures of a run; those per hour only if the run has a period."""
    return {
        **predict_load(cluster.placed, cluster.config),
        **_counts(cluster, arrived, trace),
        **_measured(cluster),
        **_times(cluster),
        "duration_us": cluster.end_us,
        "busiest": max(host.station.busy.mean(cluster.end_us) for host in cluster.hosts),
    }


def _counts(cluster: ScriptCluster, arrived: Arrived, trace: Trace) -> Summary:
    messages = [*cluster.sent()]
    results = sum(len(sent.stamps_us) for sent in messages)
    notices = sum(not sent.stamps_us for sent in messages)
    tuples = sum(len(host.came_us) for host in cluster.hosts)
    tuning, asked_for = cluster.tuning, cluster.config.asked_for
    return {
        "tuples": len(arrived.events),
        "tuples_dropped": sum(event.key not in asked_for for event in arrived.events),
        "late": sum(each.reason == REASON_LATE for each in trace.of(Rejected)),
        "results": sum(len(host.record.results) for host in cluster.hosts),
        **troubles(arrived, cluster.workers.values(), cluster.links.values()),
        "tuples_sent": tuples,
        "results_sent": results,
        "notices": notices,
        "bytes_sent": tuples * cluster.plan.cluster.tuple_bytes
        + (results + notices) * tuning.result_bytes,
    }


def _measured(cluster: ScriptCluster) -> Summary:
    """Return tuples and results sent per hour, the unit of the prediction."""
    period_us = cluster.tuning.period_us
    if period_us is None:
        return {}
    hours, until_us = period_us / HOUR_US, cluster.plan.epoch_us + period_us
    tuples = sum(len(host.came_us) for host in cluster.hosts)
    results = sum(stamp_us < until_us for sent in cluster.sent() for stamp_us in sent.stamps_us)
    return {
        "measured_per_hour": (tuples + results) / hours,
        "measured_tuples_per_hour": tuples / hours,
    }


def answer_times(cluster: ScriptCluster) -> tuple[FloatArray, FloatArray]:
    """Return the times of results, and how long after their stamps they came.

    Results that only the end of the stream made known are left out.
    """
    results = [each for host in cluster.hosts for each in host.record.results if not each.is_last]
    at_us = np.array([each.at_us for each in results], dtype=np.float64)
    stamps_us = [each.stamp_us - cluster.plan.epoch_us for each in results]
    return at_us, at_us - np.array(stamps_us, dtype=np.float64)


def _times(cluster: ScriptCluster) -> Summary:
    """Return latencies of tuples and results."""
    waited_us = np.concatenate([host.record.waited_us for host in cluster.hosts])
    return {
        **summarise_spread("tuple_latency_us", waited_us),
        **summarise_spread("result_latency_us", answer_times(cluster)[1]),
    }


# ---------------------------------------------------------------------------------------- series


def series_of(cluster: ScriptCluster) -> Series:
    """Return the columns of a run by name, with a row for each second, or fewer in a long run.

    ``tuples_hz``: tuples that came to workers, a tuple at two workers twice; ``most_hz`` and
    ``least_hz``: the same of the worker with the most and with the least; ``results_hz``: results
    sent to other workers, without notices.

    ``latency_us``: from the stamp of a result, which is where its window ends, until it was there;
    mean over the results of the interval, without those that only the end of the stream made known.
    ``watermark_lag_us``: how far the stamp before which no result was missing is behind the clock;
    0 if it is ahead, because a result is known until the end of the next window.

    ``queue_0``, ...: what was waiting or in service at a worker: tuples, messages of other workers
    and marks; ``waiting``: at all of them. ``utilisation_0``, ...: share of the interval in which
    the worker worked; ``busiest`` and ``idlest``: the same of the worker with the most and with the
    least.
    """
    end_us = cluster.end_us
    # Most windows slide by seconds: a row a second, up to a limit.
    rows = min(ROWS_MAX, ceil(end_us / SECOND_US) or 1)
    edges_us = np.linspace(0.0, end_us, rows + 1)
    time_us = edges_us[1:]
    per_second = SECOND_US * rows / end_us if end_us else 0.0
    came_hz = np.array([_counts_in(host.came_us, edges_us) for host in cluster.hosts]) * per_second
    sent_us = [sent.at_us for sent in cluster.sent() for _ in sent.stamps_us]
    looks = looks_us(time_us)
    queues = np.array([host.station.inside.at(looks) for host in cluster.hosts])
    busy = np.array([host.station.busy.means(time_us) for host in cluster.hosts])
    known_us = np.array([host.record.known_us.at(looks) for host in cluster.hosts]).min(axis=0)
    return {
        "time_us": time_us,
        "tuples_hz": came_hz.sum(axis=0),
        "most_hz": came_hz.max(axis=0),
        "least_hz": came_hz.min(axis=0),
        "results_hz": _counts_in(sent_us, edges_us) * per_second,
        "latency_us": means(*answer_times(cluster), time_us),
        # The stamp lies before the run at first, and is infinite in the end.
        "watermark_lag_us": np.where(
            (known_us >= 0) & np.isfinite(known_us), np.maximum(time_us - known_us, 0.0), np.nan
        ),
        "waiting": queues.sum(axis=0),
        **number_columns("queue", queues),
        "busiest": busy.max(axis=0),
        "idlest": busy.min(axis=0),
        **number_columns("utilisation", busy),
    }


def _counts_in(happened_us: ArrayLike, edges_us: FloatArray) -> FloatArray:
    """Return the number of events in each interval; the first one includes its start."""
    so_far = np.searchsorted(np.sort(happened_us), edges_us, side="right")
    so_far[0] = 0
    return np.diff(so_far).astype(np.float64)
