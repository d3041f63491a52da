"""Plots of runs of room ``join`` as SVG."""

from collections.abc import Mapping
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sim.drawing import BLACK, BLUE, GREEN, ORANGE, SECOND_US, line, over_time, save
from sim.join.run import Run
from sim.join.series import Series


def plot_run(run: Run, path: Path) -> None:
    """Write a run as one SVG.

    Workers and their utilisation, tuples held and arrivals waiting, block size and share shed, and
    latency of results, all over the time since the start of the run.
    """
    save(draw_run, (run,), path)


def draw_run(run: Run) -> Figure:
    """The figure that :func:`plot_run` writes."""
    draws = (_workers, _utilisation, _held, _blocks, _latency)
    return over_time(draws, 9.5, _title(run.summary), run.series)


def _title(summary: Mapping[str, float | int | str]) -> str:
    return f"{summary['input']}\n{summary['workers']} workers at the start, seed {summary['seed']}"


def _workers(axes: Axes, series: Series) -> None:
    axes.set_title("Workers in the chain")
    axes.set_ylabel("workers")
    line(axes, series, "workers", 1, "workers", BLACK, "-")


def _utilisation(axes: Axes, series: Series) -> None:
    axes.set_title("Utilisation: tuples held by a worker, of its capacity")
    axes.set_ylabel("%")
    line(axes, series, "fullest", 0.01, "fullest worker", ORANGE, ":")
    line(axes, series, "utilisation", 0.01, "mean", BLUE, "-")


def _held(axes: Axes, series: Series) -> None:
    axes.set_title("Tuples held by all workers")
    axes.set_ylabel("tuples")
    line(axes, series, "held", 1, "held", BLUE, "-")
    line(axes, series, "waiting", 1, "waiting\nat the sources", ORANGE, "--")


def _blocks(axes: Axes, series: Series) -> None:
    axes.set_title("Largest block, and share of arrivals that is shed")
    axes.set_ylabel("tuples, %")
    line(axes, series, "block_size", 1, "block (tuples)", BLUE, "-")
    line(axes, series, "shed", 0.01, "shed (%)", GREEN, "-.")


def _latency(axes: Axes, series: Series) -> None:
    axes.set_title("From the arrival of the later tuple to the result")
    axes.set_ylabel("seconds")
    line(axes, series, "latency_us", SECOND_US, "mean", BLUE, "-")
