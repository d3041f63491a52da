"""A timed run over time, as columns of one table.

Rules of this file:

* ``time_us`` is kernel time, which is 0 at the start of the run. A row stands for the interval
  since the row before.
* Where there was nothing to measure stands ``nan``.
"""

from math import nan

import numpy as np

from model.grouping.balance import rho
from sim.grouping.cluster import GroupingCluster
from sim.grouping.instances import times_us
from sim.grouping.record import Seen
from sim.kernel.distributions import FloatArray
from sim.kernel.recorder import Series, ratio

ROWS = 100


def series_of(room: GroupingCluster, seen: Seen) -> Series:
    """Return all columns.

    ``latency_us``: mean over the tuples served in the interval; ``served_hz``; ``waiting``: tuples
    that had arrived and were not served at its end. ``queue_0``, ...: tuples waiting or in service
    at an instance at its end; ``utilisation_0``, ...: share of the interval in which that instance
    worked; ``busiest`` and ``idlest``: the largest and the least of these. ``rho``: of the window
    that was sent last, by the times that were true when it began; ``wrong``: by how much, on
    average over instances, the times that its senders went by are off.
    """
    end_us = float(seen.ended_us.max(initial=0.0))
    time_us = np.linspace(0.0, end_us, ROWS + 1)
    return {
        "time_us": time_us[1:],
        **_tuples(seen, time_us),
        **_instances(room, time_us[1:]),
        **_windows(room, seen, time_us[1:]),
    }


def _tuples(seen: Seen, time_us: FloatArray) -> Series:
    arrived = np.searchsorted(seen.arrived_us, time_us, side="right")
    rows = np.searchsorted(time_us, seen.ended_us)
    sums_us = np.bincount(rows, seen.ended_us - seen.arrived_us, minlength=len(time_us))
    counts = np.bincount(rows, minlength=len(time_us)).astype(np.float64)
    interval_us = time_us[1]
    return {
        "latency_us": ratio(sums_us.astype(np.float64), counts)[1:],
        "served_hz": counts[1:] / interval_us * 1e6 if interval_us else counts[1:],
        "waiting": (arrived - counts.cumsum())[1:],
    }


def _instances(room: GroupingCluster, time_us: FloatArray) -> Series:
    """Queues and utilisation."""
    # The last look is when everything is over, and nothing happens after it.
    looks_us = np.append(time_us[:-1], np.nextafter(time_us[-1], np.inf))
    stations = [instance.station for instance in room.instances]
    busy = [station.busy.means(time_us) for station in stations]
    return {
        **{f"queue_{n}": each.inside.at(looks_us) for n, each in enumerate(stations)},
        **{f"utilisation_{n}": each for n, each in enumerate(busy)},
        "busiest": np.max(busy, axis=0),
        "idlest": np.min(busy, axis=0),
    }


def _windows(room: GroupingCluster, seen: Seen, time_us: FloatArray) -> Series:
    """Columns that stay the same for a window."""
    n, spans = room.config.instances, room.record.spans
    if not spans:
        return {name: np.full(len(time_us), nan) for name in ("rho", "wrong")}
    true_us = [times_us(room.plan, n, span.began_us) for span in spans]
    pairs = list(zip(spans, true_us, strict=True))
    rhos = np.array([rho(seen.counts(span, n), true) for span, true in pairs])
    wrong = np.array(
        [np.abs(_shares(span.times_us) / _shares(true) - 1).mean() for span, true in pairs]
    )
    at = np.searchsorted([span.began_us for span in spans], time_us, side="right") - 1
    return {"rho": rhos[at.clip(0)], "wrong": wrong[at.clip(0)]}


def _shares(times_us: tuple[int, ...]) -> FloatArray:
    """Of the work that instances get by these times."""
    speeds = 1 / np.array(times_us, dtype=np.float64)
    shares: FloatArray = speeds / speeds.sum()
    return shares
