"""A timed run of sensor scripts in figures.

Rules of this file:

* Names end in their unit; shares and utilisation are fractions of 1.
* A figure of which nothing was seen is left out.
* What a placement predicts stands beside what was sent: tuples of sensors, each to every worker
  that hosts it, and results with a stamp within the period. ``predicted`` is by the rates, for
  results at most.
"""

from collections import Counter
from typing import NamedTuple, TypeAlias

import numpy as np

from model.vocabulary.script import REASON_LATE
from sim.kernel.distributions import FloatArray
from sim.script.placements import predicted
from sim.script.timed import Room

Figure: TypeAlias = float | int | str
Summary: TypeAlias = dict[str, Figure]

HOUR_US = 3_600_000_000


def summary_of(room: Room, period_us: int | None) -> Summary:
    """All figures; without a period those by the hour are left out."""
    return {
        **predicted(room.placement, room.config),
        **_counts(room),
        **(_measured(room, period_us) if period_us else {}),
        **_times(room),
        **_load(room),
    }


def _counts(room: Room) -> Summary:
    rejected = room.intake.rejected
    results = sum(message.stamp_us is not None for message in room.messages)
    tuples = sum(len(flow.tuples) for flow in room.flows)
    return {
        "tuples": len(room.workload.arrivals),
        "tuples_dropped": len(room.workload.arrivals) - len(room.sent.sensors),
        "late": sum(each.reason == REASON_LATE for each in rejected),
        "results": len(room.told),
        "tuples_sent": tuples,
        "results_sent": results,
        "notices": len(room.messages) - results,
        "bytes_sent": tuples * room.crew.tuple_bytes + len(room.messages) * room.crew.result_bytes,
    }


def _measured(room: Room, period_us: int) -> Summary:
    """What was sent, in the same unit."""
    hours = period_us / HOUR_US
    loads = [len(flow.tuples) for flow in room.flows]
    until_us = room.start_us + period_us
    results = sum(each.stamp_us is not None and each.stamp_us < until_us for each in room.messages)
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
    """Nothing without a period."""
    bytes_received: int
    """With results and notices of other workers."""
    results_sent: int
    busy: float
    """Share of the time in which it worked."""


def shares_of(room: Room, period_us: int | None) -> tuple[Share, ...]:
    """Every worker's part."""
    crew, workers = room.crew, range(len(room.servers))
    came = Counter(message.reader for message in room.messages)
    went = Counter(message.sender for message in room.messages if message.stamp_us is not None)
    duration_us = max(server.free_us for server in room.servers)
    found = []
    for each, load in zip(workers, room.placement.loads, strict=True):
        tuples = len(room.flows[each].tuples)
        measured = tuples / (period_us / HOUR_US) if period_us else None
        size = tuples * crew.tuple_bytes + came[each] * crew.result_bytes
        busy = worked_us(room, each) / duration_us if duration_us else 0.0
        found.append(Share(each, float(load), measured, size, went[each], busy))
    return tuple(found)


def served(room: Room) -> tuple[FloatArray, FloatArray]:
    """Of all tuples at all workers: when they arrived, and when they had been served."""
    arrived_us = [room.sent.arrived_us[flow.tuples] for flow in room.flows]
    return np.concatenate(arrived_us), np.concatenate(room.ended_us)


def known(room: Room) -> tuple[FloatArray, FloatArray]:
    """When results were there, and how long after their stamps.

    Without those that it took the end of the stream to know.
    """
    told = [each for each in room.told if not each.is_last]
    at_us = np.array([each.at_us for each in told], dtype=np.float64)
    stamps_us = np.array([each.stamp_us - room.start_us for each in told], dtype=np.float64)
    return at_us, at_us - stamps_us


def _times(room: Room) -> Summary:
    """How long tuples and results took."""
    arrived_us, ended_us = served(room)
    return {
        **_spread("tuple_latency_us", ended_us - arrived_us),
        **_spread("result_latency_us", known(room)[1]),
    }


def _spread(name: str, times_us: FloatArray) -> Summary:
    if not len(times_us):
        return {}
    p99_us = float(np.percentile(times_us, 99))
    return {f"mean_{name}": float(times_us.mean()), f"p99_{name}": p99_us}


def _load(room: Room) -> Summary:
    """How much of the time workers work."""
    duration_us = max(server.free_us for server in room.servers)
    busy = [share.busy for share in shares_of(room, None)]
    return {"duration_us": duration_us, "busiest": max(busy), "idlest": min(busy)}


def worked_us(room: Room, worker: int) -> float:
    """How long a worker has worked."""
    tuples_us = room.work_us[room.flows[worker].tuples].sum() / room.crew.speed(worker)
    return float(tuples_us) + sum(end - begin for begin, end in room.servers[worker].extra_us)
