"""Summary and series of a run of room ``grouping``; see :mod:`sim.timed_figures` for their rules.

Rules of this file:

* Balance is computed from full windows with the true times at their beginning, whatever times the
  senders used, so that policies and measurements can be compared. The first window, in which
  nothing is known yet, has a figure of its own.
"""

from math import nan

import numpy as np

from model.grouping.balance import imbalance, rho
from model.vocabulary import Trace
from model.vocabulary.grouping import Answer, Partial
from sim.grouping.cluster import GroupingCluster
from sim.grouping.instances import ideal_hz, times_us
from sim.grouping.record import Passages, Span
from sim.kernel.distributions import FloatArray
from sim.kernel.recorder import Series, Summary
from sim.kernel.run import Arrived
from sim.timed_figures import looks_us, means_by_row, nonzero, number_columns, summarise_spread

ROWS = 100
"""Rows of a series."""

# --------------------------------------------------------------------------------------- summary


def summary_of(
    cluster: GroupingCluster, passed: Passages, arrived: Arrived, trace: Trace
) -> Summary:
    """Return all figures."""
    spans = cluster.record.spans
    counts = _counts(cluster, spans, arrived, trace)
    if not len(passed.ended_us):
        return counts
    rates, balance = _rates(cluster, passed, spans), _balance(cluster, passed, spans)
    duration_us = float(passed.ended_us.max())
    busy = [instance.station.busy.mean(duration_us) for instance in cluster.instances]
    return {**counts, **rates, **balance, "busiest": max(busy)}


def _counts(cluster: GroupingCluster, spans: list[Span], arrived: Arrived, trace: Trace) -> Summary:
    config, windows, keys = cluster.config, len(spans), len(trace.of(Answer))
    troubles = {
        "shed": arrived.counts["shed"],
        "sent_again": sum(link.retried for link in cluster.links.values()),
        "served_again": sum(passage.services - 1 for passage in cluster.record.passages),
    }
    return {
        "instances": config.instances,
        "senders": config.senders,
        "tuples": cluster.arrivals,
        **nonzero(troubles),
        "windows": windows,
        **({"instances_a_key": len(trace.of(Partial)) / keys} if keys else {}),
        "measurements": len(config.times_us) - 1,
    }


def _rates(cluster: GroupingCluster, passed: Passages, spans: list[Span]) -> Summary:
    """Return throughput (tuples a second) and latency."""
    latency_us = passed.ended_us - passed.arrived_us
    came_us = float(passed.arrived_us[-1])
    # In the first half of the tuples, queues of the first window run dry.
    settled_us = latency_us[len(latency_us) // 2 :]
    return {
        "duration_us": float(passed.ended_us.max()),
        "ideal_hz": ideal_hz(cluster.plan, cluster.config.instances),
        **({"offered_hz": len(latency_us) / came_us * 1e6} if came_us else {}),
        "served_hz": _served_hz(passed, spans),
        "settled_latency_us": float(settled_us.mean()),
        "settled_p99_latency_us": float(np.percentile(settled_us, 99)),
        **summarise_spread("latency_us", latency_us),
    }


def _served_hz(passed: Passages, spans: list[Span]) -> float:
    """Return tuples served a second, from the second window until there is nothing to send.

    The first window fills the queues, and at the end some instances have nothing to do. If nothing
    remains, return the rate of the whole run.
    """
    from_us, until_us = 0.0, float(passed.sent_us.max())
    if len(spans) > 1:
        from_us = spans[1].began_us
    if until_us <= from_us:
        from_us, until_us = 0.0, float(passed.ended_us.max())
    served = np.count_nonzero((from_us < passed.ended_us) & (passed.ended_us <= until_us))
    return float(served / (until_us - from_us) * 1e6)


def _balance(cluster: GroupingCluster, passed: Passages, spans: list[Span]) -> Summary:
    n = cluster.config.instances
    found = []
    for span in spans:
        if span.end - span.first >= cluster.config.window_tuples:
            counts, true_us = passed.counts(span, n), times_us(cluster.plan, n, span.began_us)
            found.append((rho(counts, true_us), imbalance(counts, true_us)))
    figures: Summary = {}
    if found:
        figures["first_rho"] = found[0][0]
    if len(found) > 1:
        rhos, imbalances = zip(*found[1:], strict=True)
        figures |= {"mean_rho": float(np.mean(rhos)), "largest_rho": max(rhos)}
        figures["mean_imbalance"] = float(np.mean(imbalances))
    return figures


# ---------------------------------------------------------------------------------------- series


def series_of(cluster: GroupingCluster, passed: Passages) -> Series:
    """Return all columns.

    ``latency_us``: mean over the tuples served in the interval; ``served_hz``; ``waiting``: tuples
    that had arrived and were not served at its end. ``queue_0``, ...: tuples waiting or in service
    at an instance at its end; ``utilisation_0``, ...: share of the interval in which that instance
    worked; ``busiest`` and ``idlest``: the largest and the least of these. ``rho``: of the window
    that was sent last, with the true times at its beginning; ``wrong``: relative error, on average
    over instances, of the shares that follow from the times that its senders used.
    """
    end_us = float(passed.ended_us.max(initial=0.0))
    time_us = np.linspace(0.0, end_us, ROWS + 1)
    return {
        "time_us": time_us[1:],
        **_tuples(passed, time_us),
        **_instances(cluster, time_us[1:]),
        **_windows(cluster, passed, time_us[1:]),
    }


def _tuples(passed: Passages, time_us: FloatArray) -> Series:
    arrived = np.searchsorted(passed.arrived_us, time_us, side="right")
    rows = np.searchsorted(time_us, passed.ended_us)
    counts = np.bincount(rows, minlength=len(time_us)).astype(np.float64)
    interval_us = time_us[1]
    latency_us = passed.ended_us - passed.arrived_us
    return {
        "latency_us": means_by_row(rows, latency_us, len(time_us))[1:],
        "served_hz": counts[1:] / interval_us * 1e6 if interval_us else counts[1:],
        "waiting": (arrived - counts.cumsum())[1:],
    }


def _instances(cluster: GroupingCluster, time_us: FloatArray) -> Series:
    """Return queues and utilisation."""
    looks = looks_us(time_us)
    stations = [instance.station for instance in cluster.instances]
    busy = [station.busy.means(time_us) for station in stations]
    return {
        **number_columns("queue", [each.inside.at(looks) for each in stations]),
        **number_columns("utilisation", busy),
        "busiest": np.max(busy, axis=0),
        "idlest": np.min(busy, axis=0),
    }


def _windows(cluster: GroupingCluster, passed: Passages, time_us: FloatArray) -> Series:
    """Return columns that stay the same for a window."""
    n, spans = cluster.config.instances, cluster.record.spans
    if not spans:
        return {name: np.full(len(time_us), nan) for name in ("rho", "wrong")}
    true_us = [times_us(cluster.plan, n, span.began_us) for span in spans]
    pairs = list(zip(spans, true_us, strict=True))
    rhos = np.array([rho(passed.counts(span, n), true) for span, true in pairs])
    wrong = np.array(
        [np.abs(_shares(span.times_us) / _shares(true) - 1).mean() for span, true in pairs]
    )
    at = np.searchsorted([span.began_us for span in spans], time_us, side="right") - 1
    return {"rho": rhos[at.clip(0)], "wrong": wrong[at.clip(0)]}


def _shares(times_us: tuple[int, ...]) -> FloatArray:
    """Return each instance's share of the work by these times."""
    speeds = 1 / np.array(times_us, dtype=np.float64)
    shares: FloatArray = speeds / speeds.sum()
    return shares
