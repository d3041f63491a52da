"""Plots of runs of room ``join`` as SVG."""

from collections.abc import Mapping
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sim.drawing import BLACK, BLUE, GREEN, ORANGE, SECOND_US, line, panels, save
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
    label = "time since the start of the run (s)"
    figure, axes_below = panels(5, (8.0, 9.5), _title(run.summary), label)
    drawn = (_workers, _utilisation, _held, _blocks, _latency)
    for draw, axes in zip(drawn, axes_below, strict=True):
        draw(axes, run.series)
        axes.set_ylim(bottom=0)
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


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
