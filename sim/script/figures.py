"""Plots of runs of room ``script`` as SVG."""

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sim.drawing import BLUE, GREEN, ORANGE, SECOND_US, line, over_time, save
from sim.script.run import Run
from sim.script.series import Series


def plot_run(run: Run, path: Path) -> None:
    """Write a run as one SVG.

    What workers are sent, results between them, how late results are, what waits, and how busy
    workers are, all over the time since the start of the run.
    """
    save(draw_run, (run,), path)


def draw_run(run: Run) -> Figure:
    """The figure that :func:`plot_run` writes."""
    summary = run.summary
    workers = "1 worker" if summary["workers"] == 1 else f"{summary['workers']} workers"
    title = (
        f"{summary['input']}\n"
        f"{workers}, placement {summary['placement']}: {summary['way']}, seed {summary['seed']}"
    )
    return over_time((_tuples, _results, _latency, _waiting, _busy), 9.5, title, run.series)


def _tuples(axes: Axes, series: Series) -> None:
    axes.set_title("Tuples of sensors that workers are sent")
    axes.set_ylabel("a second")
    line(axes, series, "tuples_hz", 1, "all workers", BLUE, "-")
    line(axes, series, "most_hz", 1, "most", ORANGE, "--")
    line(axes, series, "least_hz", 1, "least", GREEN, ":")


def _results(axes: Axes, series: Series) -> None:
    axes.set_title("Results that workers send each other")
    axes.set_ylabel("a second")
    line(axes, series, "results_hz", 1, "all workers", BLUE, "-")


def _latency(axes: Axes, series: Series) -> None:
    axes.set_title("From the end of a window to its result")
    axes.set_ylabel("seconds")
    line(axes, series, "latency_us", SECOND_US, "mean", BLUE, "-")


def _waiting(axes: Axes, series: Series) -> None:
    axes.set_title("Tuples that have come and are not served")
    axes.set_ylabel("tuples")
    line(axes, series, "waiting", 1, "all workers", ORANGE, "-")


def _busy(axes: Axes, series: Series) -> None:
    axes.set_title("Share of the time in which a worker works")
    axes.set_ylabel("%")
    line(axes, series, "busiest", 0.01, "busiest", ORANGE, "-")
    line(axes, series, "idlest", 0.01, "idlest", BLUE, "--")
