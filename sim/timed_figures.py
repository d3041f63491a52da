"""Figures of timed runs: what the summaries, series and plots of several rooms share.

Rules of this file:

* Names end in their unit; shares and utilisation are fractions of 1.
* Metrics without observations are omitted from a summary, and are ``nan`` in a series.
* Column ``time_us`` of a series is kernel time, which is 0 at the start of the run. A row stands
  for that moment, or for the interval since the row before.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from sim.kernel.disorder import IntArray
from sim.kernel.distributions import FloatArray
from sim.kernel.link import AnyLink
from sim.kernel.recorder import Summary, ratio
from sim.kernel.run import Arrived
from sim.kernel.station import AnyStation

# ---------------------------------------------------------------------------------- summaries


def mean(name: str, values: ArrayLike) -> Summary:
    """Return the mean as a figure of that name, or nothing if there are no values."""
    array = np.asarray(values, dtype=np.float64)
    return {name: float(array.mean())} if len(array) else {}


def summarise_spread(name: str, values: ArrayLike) -> Summary:
    """Return mean, median (``p50``) and 99th percentile, or nothing if there are no values."""
    array = np.asarray(values, dtype=np.float64)
    if not len(array):
        return {}
    p50, p99 = np.percentile(array, (50, 99)).tolist()
    return {f"mean_{name}": float(array.mean()), f"p50_{name}": p50, f"p99_{name}": p99}


def latency_figures(latency_us: FloatArray) -> Summary:
    """Return mean, median and 99th percentile of latencies, or nothing if there are none."""
    if not len(latency_us):
        return {}
    return {
        "mean_latency_us": float(latency_us.mean()),
        "median_latency_us": float(np.median(latency_us)),
        "p99_latency_us": float(np.percentile(latency_us, 99)),
    }


def nonzero(counts: Mapping[str, int]) -> Summary:
    """Return the counts that are not 0."""
    return {name: count for name, count in counts.items() if count}


def troubles(arrived: Arrived, stations: Iterable[AnyStation], links: Iterable[AnyLink]) -> Summary:
    """Return how often tuples were shed, held back, sent again and served again, if ever."""
    stations = list(stations)
    return nonzero(
        {
            "shed": arrived.counts["shed"],
            "held_back": sum(station.blocked for station in stations),
            "sent_again": sum(link.retried for link in links),
            "served_again": sum(station.repeated for station in stations),
        }
    )


# ------------------------------------------------------------------------------------- series


def number_columns(name: str, columns: Iterable[FloatArray]) -> dict[str, FloatArray]:
    """Return columns of the workers, named ``name_0``, ``name_1``, ..."""
    return {f"{name}_{number}": column for number, column in enumerate(columns)}


def looks_us(time_us: FloatArray) -> FloatArray:
    """Return the times at which levels are sampled; the last one is after the end of the run."""
    return np.append(time_us[:-1], np.nextafter(time_us[-1], np.inf))


def means_by_row(rows: IntArray, values: FloatArray, n: int) -> FloatArray:
    """Return the mean of the values of each of ``n`` rows; ``rows`` says which row has a value.

    Values of later rows are left out.
    """
    sums = np.bincount(rows, weights=values, minlength=n)[:n].astype(np.float64)
    return ratio(sums, np.bincount(rows, minlength=n)[:n].astype(np.float64))


def means(times_us: ArrayLike, values: ArrayLike, grid_us: FloatArray) -> FloatArray:
    """Return the mean of the values within the interval that ends at each time of the grid."""
    rows = np.searchsorted(grid_us, np.asarray(times_us, dtype=np.float64))
    return means_by_row(rows, np.asarray(values, dtype=np.float64), len(grid_us))


# -------------------------------------------------------------------------------------- plots


class PanelLine(NamedTuple):
    """A column of a run's series, drawn as a line."""

    column: str
    label: str
    unit: float = 1.0
    """Value that is drawn as 1; a percentage has the unit 0.01."""


class Panel(NamedTuple):
    """One panel of a room's plot."""

    title: str
    ylabel: str
    lines: tuple[PanelLine, ...]
    is_from_0: bool = True
    """Whether the axis starts at 0."""


LATENCY: Mapping[str, str] = {"latency_us": "mean"}
LAG: Mapping[str, str] = {"watermark_lag_us": "lag"}


class RunPlot(NamedTuple):
    """The plot of a room: its own panels, which stand below those of every room."""

    title: Callable[[Summary], str]
    panels: tuple[Panel, ...]
    latency: Mapping[str, str] = LATENCY
    """Columns (us) of the panel of latencies, each with the label of its line."""
    lag: Mapping[str, str] = LAG
    """Columns (us) of the panel of the watermark's lag, each with the label of its line."""
