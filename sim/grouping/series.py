"""A timed run over time, as columns of one table.

Rules of this file:

* ``time_us`` is kernel time, which is 0 at the start of the run. A row stands for the interval
  since the row before.
* Where there was nothing to measure stands ``nan``.
"""

from collections.abc import Mapping
from math import nan
from typing import TypeAlias

import numpy as np

from model.grouping.balance import rho
from sim.grouping.summary import counts_of
from sim.grouping.timed import Room, Seen
from sim.kernel.columns import ratio, worked_us
from sim.kernel.distributions import FloatArray

Series: TypeAlias = Mapping[str, FloatArray]

ROWS = 100


def series_of(room: Room) -> Series:
    """All columns.

    ``latency_us``: mean over the tuples served in the interval; ``served_hz``; ``waiting``: tuples
    that had arrived and were not served at its end; ``busiest`` and ``idlest``: share of the
    interval in which that instance worked; ``rho``: of the window that was sent last, by the times
    that were true when it began; ``wrong``: by how much, on the mean over instances, the times that
    its senders went by are off.
    """
    seen = room.seen
    end_us = float(seen.ended_us.max(initial=0.0))
    time_us = np.linspace(0.0, end_us, ROWS + 1)
    arrived = np.searchsorted(seen.arrived_us, time_us, side="right")
    rows = np.searchsorted(time_us, seen.ended_us)
    sums_us = np.bincount(rows, seen.ended_us - seen.arrived_us, minlength=ROWS + 1)
    counts = np.bincount(rows, minlength=ROWS + 1).astype(np.float64)
    served = counts.cumsum()
    interval_us = end_us / ROWS
    busy = _busy(room, seen, time_us)
    return {
        "time_us": time_us[1:],
        "latency_us": ratio(sums_us.astype(np.float64), counts)[1:],
        "served_hz": counts[1:] / interval_us * 1e6 if interval_us else counts[1:],
        "waiting": (arrived - served)[1:],
        "busiest": busy.max(axis=0),
        "idlest": busy.min(axis=0),
        **_windows(room, seen, time_us[1:]),
    }


def _busy(room: Room, seen: Seen, time_us: FloatArray) -> FloatArray:
    """Share of the intervals in which instances worked: a row an instance."""
    n = room.config.instances
    found = np.zeros((n, len(time_us) - 1))
    width_us = time_us[1] - time_us[0]
    for i in range(n if width_us else 0):
        here = seen.instances == i
        done_us = worked_us(seen.began_us[here], seen.ended_us[here], time_us)
        found[i] = np.diff(done_us) / width_us
    return found


def _windows(room: Room, seen: Seen, time_us: FloatArray) -> Series:
    """Columns that stay the same for a window."""
    n, spans = room.config.instances, room.spans
    if not spans:
        return {name: np.full(len(time_us), nan) for name in ("rho", "wrong")}
    true_us = [room.crew.times_us(n, span.began_us) for span in spans]
    rhos = np.array(
        [
            rho(counts_of(room, seen, span), times)
            for span, times in zip(spans, true_us, strict=True)
        ]
    )
    wrong = np.array(
        [
            np.abs(_shares(span.times_us) / _shares(times) - 1).mean()
            for span, times in zip(spans, true_us, strict=True)
        ]
    )
    at = np.searchsorted([span.began_us for span in spans], time_us, side="right") - 1
    return {"rho": rhos[at.clip(0)], "wrong": wrong[at.clip(0)]}


def _shares(times_us: tuple[int, ...]) -> FloatArray:
    """Of the work that instances get by these times."""
    speeds = 1 / np.array(times_us, dtype=np.float64)
    shares: FloatArray = speeds / speeds.sum()
    return shares
