"""A timed run of sensor scripts in figures.

Rules of this file:

* Names end in their unit; shares and utilisation are fractions of 1.
* A figure of which nothing was seen is left out.
* What a placement predicts stands beside what was sent: tuples of sensors, each to every worker
  that hosts it, and results with a stamp within the period. ``predicted`` is by the rates, for
  results at most. After a failure a worker sends its results again, and they count again.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from model.script.placement import Placement
from model.vocabulary import Trace
from model.vocabulary.script import REASON_LATE, Rejected
from sim.kernel.distributions import FloatArray
from sim.kernel.recorder import Summary
from sim.kernel.run import Arrived
from sim.script.cluster import ScriptCluster
from sim.script.placements import predicted

HOUR_US = 3_600_000_000


def summary_of(room: ScriptCluster, arrived: Arrived, trace: Trace, placed: Placement) -> Summary:
    """Return all figures; without a period those by the hour are left out.

    ``placed`` says what is predicted.
    """
    return {
        **predicted(placed, room.config),
        **_counts(room, arrived, trace),
        **_measured(room),
        **_times(room),
        **_load(room),
    }


def _counts(room: ScriptCluster, arrived: Arrived, trace: Trace) -> Summary:
    messages = [*room.sent()]
    results = sum(len(sent.stamps_us) for sent in messages)
    notices = sum(not sent.stamps_us for sent in messages)
    tuples = sum(len(host.came_us) for host in room.hosts)
    tuning, asked_for = room.tuning, room.config.asked_for
    return {
        "tuples": len(arrived.events),
        "tuples_dropped": sum(event.key not in asked_for for event in arrived.events),
        "late": sum(each.reason == REASON_LATE for each in trace.of(Rejected)),
        "results": sum(len(host.record.results) for host in room.hosts),
        **_troubles(room, arrived),
        "tuples_sent": tuples,
        "results_sent": results,
        "notices": notices,
        "bytes_sent": tuples * room.plan.cluster.tuple_bytes
        + (results + notices) * tuning.result_bytes,
    }


def _troubles(room: ScriptCluster, arrived: Arrived) -> Summary:
    """Return what the cluster had trouble with: of each kind, only if there was any."""
    stations, links = [host.station for host in room.hosts], room.links.values()
    found = {
        "shed": arrived.counts["shed"],
        "held_back": sum(station.blocked for station in stations),
        "sent_again": sum(link.retried for link in links),
        "served_again": sum(station.repeated for station in stations),
    }
    return {name: count for name, count in found.items() if count}


def _measured(room: ScriptCluster) -> Summary:
    """Return what was sent, in the unit in which it is predicted."""
    period_us = room.tuning.period_us
    if period_us is None:
        return {}
    hours, until_us = period_us / HOUR_US, room.plan.epoch_us + period_us
    loads = [len(host.came_us) for host in room.hosts]
    results = sum(stamp_us < until_us for sent in room.sent() for stamp_us in sent.stamps_us)
    return {
        "measured_per_hour": (sum(loads) + results) / hours,
        "measured_tuples_per_hour": sum(loads) / hours,
        "measured_results_per_hour": results / hours,
        "measured_largest_load_per_hour": max(loads) / hours,
    }


class Share(NamedTuple):
    """What one worker was sent, and did."""

    worker: int
    predicted_per_hour: float
    """Tuples of sensors, by the rates."""
    measured_per_hour: float | None
    """``None``: nobody knows how long sensors should have sent."""
    bytes_received: int
    """With results and notices of other workers."""
    results_sent: int
    busy: float
    """Share of the time in which it worked."""


def shares_of(room: ScriptCluster, placed: Placement) -> tuple[Share, ...]:
    """Return every worker's part; ``placed`` says what is predicted."""
    plan, end_us, period_us = room.plan, room.end_us, room.tuning.period_us
    found = []
    for host, load in zip(room.hosts, placed.loads, strict=True):
        tuples, station = len(host.came_us), host.station
        received = tuples * plan.cluster.tuple_bytes + host.heard * room.tuning.result_bytes
        found.append(
            Share(
                host.number,
                float(load),
                None if period_us is None else tuples / (period_us / HOUR_US),
                received,
                sum(len(sent.stamps_us) for sent in host.sent),
                station.busy.mean(end_us),
            )
        )
    return tuple(found)


def answered(room: ScriptCluster) -> tuple[FloatArray, FloatArray]:
    """Return when results were there, and how long after their stamps.

    Those that it took the end of the stream to know are left out.
    """
    results = [each for host in room.hosts for each in host.record.results if not each.is_last]
    at_us = np.array([each.at_us for each in results], dtype=np.float64)
    stamps_us = [each.stamp_us - room.plan.epoch_us for each in results]
    return at_us, at_us - np.array(stamps_us, dtype=np.float64)


def _times(room: ScriptCluster) -> Summary:
    """Return how long tuples and results took."""
    waited_us = np.concatenate([host.record.waited_us for host in room.hosts])
    return {
        **_spread("tuple_latency_us", waited_us),
        **_spread("result_latency_us", answered(room)[1]),
    }


def _spread(name: str, times_us: ArrayLike) -> Summary:
    values = np.asarray(times_us, dtype=np.float64)
    if not len(values):
        return {}
    p50, p99 = np.percentile(values, (50, 99)).tolist()
    return {f"mean_{name}": float(values.mean()), f"p50_{name}": p50, f"p99_{name}": p99}


def _load(room: ScriptCluster) -> Summary:
    """Return how much of the time workers work."""
    busy = [host.station.busy.mean(room.end_us) for host in room.hosts]
    return {"duration_us": room.end_us, "busiest": max(busy), "idlest": min(busy)}
