"""Plots of runs of room ``grouping`` as SVG."""

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sim.drawing import BLACK, BLUE, GREEN, ORANGE, line, panels, save
from sim.grouping.run import Run
from sim.grouping.series import Series

MILLISECOND_US = 1e3


def plot_run(run: Run, path: Path) -> None:
    """Write a run as one SVG.

    Latency, tuples served and waiting, how busy instances are, balance and measured times, all
    over the time since the start of the run.
    """
    save(draw_run, (run,), path)


def draw_run(run: Run) -> Figure:
    """The figure that :func:`plot_run` writes."""
    summary = run.summary
    title = (
        f"{summary['input']}\n"
        f"{summary['policy']}, {summary['instances']} instances, seed {summary['seed']}"
    )
    figure, axes_below = panels(5, (8.0, 9.5), title, "time since the start of the run (s)")
    drawn = (_latency, _served, _waiting, _busy, _balance)
    for draw, axes in zip(drawn, axes_below, strict=True):
        draw(axes, run.series)
        axes.set_ylim(bottom=0)
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def _latency(axes: Axes, series: Series) -> None:
    axes.set_title("From arrival at a sender until served")
    axes.set_ylabel("milliseconds")
    line(axes, series, "latency_us", MILLISECOND_US, "mean", BLUE, "-")


def _served(axes: Axes, series: Series) -> None:
    axes.set_title("Tuples served")
    axes.set_ylabel("thousand a second")
    line(axes, series, "served_hz", 1e3, "all instances", BLUE, "-")


def _waiting(axes: Axes, series: Series) -> None:
    axes.set_title("Tuples that have arrived and are not served")
    axes.set_ylabel("tuples")
    line(axes, series, "waiting", 1, "at senders and\ninstances", ORANGE, "-")


def _busy(axes: Axes, series: Series) -> None:
    axes.set_title("Share of the time in which an instance works")
    axes.set_ylabel("%")
    line(axes, series, "busiest", 0.01, "busiest", ORANGE, "-")
    line(axes, series, "idlest", 0.01, "idlest", BLUE, "--")


def _balance(axes: Axes, series: Series) -> None:
    axes.set_title("Makespan of a window over that of a fluid, and what times are known")
    axes.set_ylabel("%")
    line(axes, series, "rho", 0.01, "rho", BLACK, "-")
    line(axes, series, "wrong", 0.01, "times off by", GREEN, "-.")
