"""A timed run over time, as columns of one table.

Rules of this file:

* ``time_us`` is kernel time, which is 0 at the start of the run. A row stands for that moment, or
  for the interval since the row before.
* Where there was nothing to measure stands ``nan``.
"""

from math import ceil

import numpy as np
from numpy.typing import ArrayLike

from sim.kernel.distributions import FloatArray
from sim.kernel.recorder import Series, ratio
from sim.script.cluster import ScriptCluster
from sim.script.summary import answered

ROWS_MAX = 100
SECOND_US = 1e6


def series_of(room: ScriptCluster) -> Series:
    """Return all columns.

    ``tuples_hz``: tuples that came to workers, a tuple at two workers twice; ``most_hz`` and
    ``least_hz``: the same of the worker with the most and with the least; ``results_hz``: results
    sent to other workers, without notices.

    ``latency_us``: from the stamp of a result, which is where its window ends, until it was there;
    mean over the results of the interval, without those that it took the end of the stream to know.
    ``watermark_lag_us``: how far the stamp before which no result was missing is behind the time;
    0 where it was ahead, for a window is known until the next one ends.

    ``queue_0``, ...: what was waiting or in service at a worker: tuples, messages of other workers
    and marks; ``waiting``: at all of them. ``utilisation_0``, ...: share of the interval in which
    the worker worked; ``busiest`` and ``idlest``: the same of the worker with the most and with the
    least.
    """
    end_us = room.end_us
    # Most windows slide by seconds: a row for each, as long as they are not too many.
    rows = min(ROWS_MAX, ceil(end_us / SECOND_US) or 1)
    edges_us = np.linspace(0.0, end_us, rows + 1)
    time_us = edges_us[1:]
    per_second = SECOND_US * rows / end_us if end_us else 0.0
    came_hz = np.array([_counts(host.came_us, edges_us) for host in room.hosts]) * per_second
    sent_us = [sent.at_us for sent in room.sent() for _ in sent.stamps_us]
    # The last look is when everything is over, and nothing happens after it.
    looks_us = np.append(time_us[:-1], np.nextafter(end_us, np.inf))
    queues = np.array([host.station.inside.at(looks_us) for host in room.hosts])
    busy = np.array([host.station.busy.means(time_us) for host in room.hosts])
    known_us = np.array([host.record.known_us.at(looks_us) for host in room.hosts]).min(axis=0)
    return {
        "time_us": time_us,
        "tuples_hz": came_hz.sum(axis=0),
        "most_hz": came_hz.max(axis=0),
        "least_hz": came_hz.min(axis=0),
        "results_hz": _counts(sent_us, edges_us) * per_second,
        "latency_us": _latency_us(room, edges_us),
        # What is known at first lies before the run, and what is known in the end has no end.
        "watermark_lag_us": np.where(
            (known_us >= 0) & np.isfinite(known_us), np.maximum(time_us - known_us, 0.0), np.nan
        ),
        "waiting": queues.sum(axis=0),
        **{f"queue_{worker}": queue for worker, queue in enumerate(queues)},
        "busiest": busy.max(axis=0),
        "idlest": busy.min(axis=0),
        **{f"utilisation_{worker}": each for worker, each in enumerate(busy)},
    }


def _counts(happened_us: ArrayLike, edges_us: FloatArray) -> FloatArray:
    """Count what happened in each interval; the first one has what happened at its start, too."""
    so_far = np.searchsorted(np.sort(happened_us), edges_us, side="right")
    so_far[0] = 0
    return np.diff(so_far).astype(np.float64)


def _latency_us(room: ScriptCluster, edges_us: FloatArray) -> FloatArray:
    at_us, late_us = answered(room)
    intervals = np.searchsorted(edges_us[1:], at_us)
    rows = len(edges_us) - 1
    sums: FloatArray = np.bincount(intervals, late_us, minlength=rows).astype(np.float64)
    counts: FloatArray = np.bincount(intervals, minlength=rows).astype(np.float64)
    return ratio(sums, counts)
