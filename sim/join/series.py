"""A timed run of a chain over time, as columns of one table.

Rules of this file:

* ``time_us`` is kernel time, which is 0 at the start of the run. A row stands for that moment, or
  for the interval since the row before.
* Where there was nothing to measure stands ``nan``.
"""

from collections.abc import Mapping
from math import ceil, nan
from typing import TypeAlias

import numpy as np

from model.join.load_claims import Moment
from sim.join.timed import Room, Sample
from sim.kernel.distributions import FloatArray

Series: TypeAlias = Mapping[str, FloatArray]

ROWS = 300
"""At most so many rows; of a longer run every second sample, every third, ... is one."""


def series_of(room: Room) -> Series:
    """All columns.

    ``workers``; ``utilisation`` (mean), ``fullest``, ``smoothed``: tuples held by a worker divided
    by the capacity; ``held``: tuples in all stores; ``waiting``: arrivals not taken yet;
    ``block_size``; ``shed``: share; ``busy``: share of the interval in which workers worked;
    ``latency_us``: mean over the results of the interval.
    """
    samples = room.samples[:: ceil(len(room.samples) / ROWS)]
    rows = [(*moment, *rest) for moment, *rest in samples]
    names = (*Moment._fields, *Sample._fields[1:])
    table = np.array(rows, dtype=np.float64).reshape(-1, len(names))
    columns = dict(zip(names, table.T, strict=True))
    time_us, busy_us = columns["at_us"], np.diff(columns["busy_us"], prepend=0.0)
    return {
        "time_us": time_us,
        "workers": columns["workers"],
        "utilisation": columns["mean"],
        "fullest": columns["fullest"],
        "smoothed": columns["smoothed"],
        "held": columns["held"],
        "waiting": columns["waiting"],
        "block_size": columns["block_size"],
        "shed": columns["share"],
        "busy": _ratio(busy_us, np.diff(time_us, prepend=0.0) * columns["workers"]),
        "latency_us": _latency_us(room, time_us),
    }


def _latency_us(room: Room, time_us: FloatArray) -> FloatArray:
    at_us, latency_us = room.latencies_us
    rows = np.searchsorted(time_us, at_us)
    inside = rows < len(time_us)
    sums, counts = np.zeros(len(time_us)), np.zeros(len(time_us))
    np.add.at(sums, rows[inside], latency_us[inside])
    np.add.at(counts, rows[inside], 1.0)
    return _ratio(sums, counts)


def _ratio(dividend: FloatArray, divisor: FloatArray) -> FloatArray:
    quotient: FloatArray = np.full(len(divisor), nan)
    return np.divide(dividend, divisor, out=quotient, where=divisor != 0)
