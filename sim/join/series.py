"""A timed run of a chain over time, as columns of one table.

Rules of this file:

* ``time_us`` is kernel time, which is 0 at the start of the run. A row stands for that moment, or
  for the interval since the row before.
* Where there was nothing to measure stands ``nan``.
"""

from math import ceil, nan

import numpy as np

from model.join.load_claims import Moment
from sim.join.load import Sample
from sim.join.observed import Observed
from sim.kernel.distributions import FloatArray
from sim.kernel.recorder import Series, ratio

ROWS = 300
"""At most so many rows; of a longer run every second sample, every third, ... is one."""


def series_of(run: Observed) -> Series:
    """Return all columns.

    ``workers``; ``utilisation`` (mean), ``fullest``, ``smoothed``: tuples held by a worker divided
    by the capacity; ``held``: tuples in all stores; ``waiting``: arrivals not handed over yet;
    ``block_size``; ``shed``: share; ``watermark_lag_us``: how far the lower watermark of the two
    streams is behind the time; ``busy``: share of the interval in which workers worked;
    ``latency_us``: mean over the results of the interval. Of each worker ``queue_0``, ...: what
    waits or is in service; ``utilisation_0``, ...: share of the interval in which it worked.
    """
    room = run.room
    samples = room.load.samples[:: ceil(len(room.load.samples) / ROWS)]
    moments = np.array([sample.moment for sample in samples], dtype=np.float64).T
    moment = dict(zip(Moment._fields, moments, strict=True))
    time_us, workers = np.array([sample.at_us for sample in samples]), moment["workers"]
    stations = room.line.stations
    busy = [station.busy.means(time_us) for station in stations]
    columns: Series = {
        "time_us": time_us,
        "workers": workers,
        "utilisation": moment["mean"],
        "fullest": moment["fullest"],
        "smoothed": moment["smoothed"],
        "held": _column(samples, "held"),
        "waiting": _column(samples, "waiting"),
        "block_size": _column(samples, "block_size"),
        "shed": moment["share"],
        "watermark_lag_us": time_us + room.plan.epoch_us - _column(samples, "watermark_us"),
        "busy": ratio(np.sum(busy, axis=0), workers),
        "latency_us": _latency_us(run, time_us),
    }
    return {
        **columns,
        **{f"queue_{n}": station.inside.at(time_us) for n, station in enumerate(stations)},
        **{f"utilisation_{n}": each for n, each in enumerate(busy)},
    }


def _column(samples: list[Sample], name: str) -> FloatArray:
    found = [getattr(sample, name) for sample in samples]
    return np.array([nan if each is None else each for each in found], dtype=np.float64)


def _latency_us(run: Observed, time_us: FloatArray) -> FloatArray:
    rows = np.searchsorted(time_us, run.results.at_us)
    inside = rows < len(time_us)
    sums, counts = np.zeros(len(time_us)), np.zeros(len(time_us))
    np.add.at(sums, rows[inside], run.latencies_us[inside])
    np.add.at(counts, rows[inside], 1.0)
    return ratio(sums, counts)
