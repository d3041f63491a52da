"""Figures of timed runs: what the summaries, series and plots of several rooms share.

Rules of this file:

* Names end in their unit; shares and utilisation are fractions of 1.
* Metrics without observations are omitted from a summary, and are ``nan`` in a series.
* Column ``time_us`` of a series is kernel time, which is 0 at the start of the run. A row stands
  for that moment, or for the interval since the row before.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from sim.kernel.disorder import IntArray
from sim.kernel.distributions import FloatArray
from sim.kernel.link import AnyLink
from sim.kernel.recorder import Series, Summary, ratio
from sim.kernel.run import Arrived, TimedRun
from sim.kernel.station import AnyStation

# ---------------------------------------------------------------------------------- summaries


def mean(name: str, values: ArrayLike) -> Summary:
    """Return the mean of values as a figure named ``name``, or nothing if there are no values."""
    array = np.asarray(values, dtype=np.float64)
    return {name: float(array.mean())} if len(array) else {}


def summarise_spread(name: str, values: ArrayLike) -> Summary:
    """Return mean, median (``p50``) and 99th percentile, or nothing if there are no values."""
    array = np.asarray(values, dtype=np.float64)
    if not len(array):
        return {}
    p50, p99 = np.percentile(array, (50, 99)).tolist()
    return {f"mean_{name}": float(array.mean()), f"p50_{name}": p50, f"p99_{name}": p99}


def nonzero(counts: Mapping[str, int]) -> Summary:
    """Return the counts that are not 0."""
    return {name: count for name, count in counts.items() if count}


def troubles(arrived: Arrived, stations: Iterable[AnyStation], links: Iterable[AnyLink]) -> Summary:
    """Return how often tuples were shed, held back, sent again and served again, without zeros."""
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
    """Return the times at which levels are sampled; the last is just after the end of the run."""
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


MOST_LINES = 4
"""Most workers that are drawn as lines; more of them are rows of a map."""
ENDINGS = (".svg", ".png")
"""Endings of files in which a figure can be written."""
UNITS_OF_TIME = (
    (86_400e6, "days", 3.0),
    (3_600e6, "hours", 3.0),
    (60e6, "minutes", 3.0),
    (1e6, "seconds", 0.5),
    (1e3, "milliseconds", 0.5),
    (1.0, "microseconds", 0.0),
)
"""Units of a time on an axis: size (us), name, and least number of it that the axis reaches."""


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
    """True if the axis starts at 0."""
    is_by_worker: bool = False
    """True if each column belongs to one worker."""

    @property
    def is_map(self) -> bool:
        """Return whether each worker is a row of a map because there are too many for lines."""
        workers = sum(line.label.startswith("worker") for line in self.lines)
        return self.is_by_worker and workers > MOST_LINES


LATENCY: Mapping[str, str] = {"latency_us": "mean"}
LAG: Mapping[str, str] = {"watermark_lag_us": "lag"}


class RunPlot(NamedTuple):
    """The plot of a room: its own panels, which stand below those of every room."""

    title: Callable[[TimedRun], str]
    panels: tuple[Panel, ...]
    latency: Mapping[str, str] = LATENCY
    """Columns (us) of the panel of latencies, each with the label of its line."""
    lag: Mapping[str, str] = LAG
    """Columns (us) of the panel of the watermark's lag, each with the label of its line."""


def run_panels(
    series: Series,
    own: Iterable[Panel],
    latency: Mapping[str, str],
    lag: Mapping[str, str],
) -> Iterator[Panel]:
    """Yield the panels of a run: those of every room, and then the room's ``own``.

    The panels of every room are queue length and utilisation of each worker, from the columns
    ``queue_0``, ..., ``utilisation_0``, ...; the lag of the watermark; and latency. Columns that
    the series lacks are omitted, and so is a panel without columns.
    """
    for prefix, title, ylabel, unit in (
        ("queue_", "Tuples and messages at each worker", "waiting or in service", 1.0),
        ("utilisation_", "Time in which each worker works", "%", 0.01),
    ):
        lines = [PanelLine(name, label, unit) for name, label in _workers(series, prefix).items()]
        if lines:
            yield Panel(title, ylabel, tuple(lines), is_by_worker=True)
    for title, columns in (("Watermark behind the clock", lag), ("Latency", latency)):
        known = {column: label for column, label in columns.items() if column in series}
        if known:
            longest_us = max(float(np.nanmax(series[name], initial=0.0)) for name in known)
            unit, ylabel = unit_of_time(longest_us)  # which makes the times readable
            yield Panel(title, ylabel, tuple([PanelLine(*each, unit) for each in known.items()]))
    yield from own


def unit_of_time(longest_us: float) -> tuple[float, str]:
    """Return the size (us) and the name of the unit for times of up to ``longest_us``."""
    return next(
        (size_us, name) for size_us, name, least in UNITS_OF_TIME if longest_us >= least * size_us
    )


def _workers(series: Series, prefix: str) -> dict[str, str]:
    """Return the columns of workers, each with the name of its worker."""
    names = {name: name.removeprefix(prefix) for name in series if name.startswith(prefix)}
    return {
        name: f"worker {worker}" if worker.isdigit() else worker
        for name, worker in names.items()
        if "_" not in worker
    }
