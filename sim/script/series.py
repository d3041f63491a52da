"""A timed run over time, as columns of one table.

Rules of this file:

* ``time_us`` is kernel time, which is 0 at the start of the run. A row stands for the interval
  since the row before.
* Where there was nothing to measure stands ``nan``.
"""

from collections.abc import Mapping
from math import ceil
from typing import TypeAlias

import numpy as np

from sim.kernel.columns import ratio, worked_us
from sim.kernel.distributions import FloatArray
from sim.script.summary import known
from sim.script.timed import Room

Series: TypeAlias = Mapping[str, FloatArray]

ROWS_MAX = 100
SECOND_US = 1e6


def series_of(room: Room) -> Series:
    """All columns.

    ``tuples_hz``: tuples that came to workers, a tuple at two workers twice; ``most_hz`` and
    ``least_hz``: the same of the worker with the most and with the least; ``results_hz``: results
    sent to other workers, without notices.

    ``latency_us``: from the stamp of a result, which is where its window ends, until it was there;
    mean over the results of the interval, without those that it took the end of the stream to know.
    ``waiting``: tuples that had come and were not served at its end. ``busiest`` and ``idlest``:
    share of the interval in which that worker worked.
    """
    end_us = max(server.free_us for server in room.servers)
    # Most windows slide by seconds: a row for each, as long as they are not too many.
    rows = min(ROWS_MAX, ceil(end_us / SECOND_US) or 1)
    time_us = np.linspace(0.0, end_us, rows + 1)
    width_us = end_us / rows
    came = np.array([_by(flow.due_us, time_us) for flow in room.flows])
    served = np.array([_by(ended_us, time_us) for ended_us in room.ended_us])
    sent_us = np.array([each.sent_us for each in room.messages if each.stamp_us is not None])
    per_second = SECOND_US / width_us if width_us else 0.0
    tuples_hz = np.diff(came, axis=1) * per_second
    busy = np.array([_busy(room, each, time_us) for each in range(len(room.servers))])
    return {
        "time_us": time_us[1:],
        "tuples_hz": tuples_hz.sum(axis=0),
        "most_hz": tuples_hz.max(axis=0),
        "least_hz": tuples_hz.min(axis=0),
        "results_hz": np.diff(_by(sent_us, time_us)) * per_second,
        "latency_us": _latency_us(room, time_us),
        "waiting": (came - served).sum(axis=0)[1:].astype(np.float64),
        "busiest": busy.max(axis=0),
        "idlest": busy.min(axis=0),
    }


def _by(happened_us: FloatArray, time_us: FloatArray) -> FloatArray:
    """How often something had happened by some times."""
    count: FloatArray = np.searchsorted(np.sort(happened_us), time_us, side="right").astype(
        np.float64
    )
    return count


def _busy(room: Room, worker: int, time_us: FloatArray) -> FloatArray:
    """Share of the intervals in which a worker worked."""
    server, flow, ended_us = room.servers[worker], room.flows[worker], room.ended_us[worker]
    extra_us = np.array(server.extra_us, dtype=np.float64).reshape(-1, 2)
    began_us = ended_us - room.work_us[flow.tuples] / room.crew.speed(worker)
    done_us: FloatArray = worked_us(
        np.concatenate([began_us, extra_us[:, 0]]),
        np.concatenate([ended_us, extra_us[:, 1]]),
        time_us,
    )
    worked: FloatArray = np.diff(done_us)
    return ratio(worked, np.diff(time_us))


def _latency_us(room: Room, time_us: FloatArray) -> FloatArray:
    at_us, late_us = known(room)
    rows = np.searchsorted(time_us, at_us)
    sums: FloatArray = np.bincount(rows, late_us, minlength=len(time_us)).astype(np.float64)
    counts: FloatArray = np.bincount(rows, minlength=len(time_us)).astype(np.float64)
    return ratio(sums, counts)[1 : len(time_us)]
