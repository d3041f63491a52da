"""Plots of runs of room ``grouping`` as SVG."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

from sim.drawing import BLACK, BLUE, GREEN, ORANGE, line, over_time, save
from sim.grouping.run import Run
from sim.grouping.series import Series

MILLISECOND_US = 1e3
VIOLET = "#AA4499"


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
    draws = (_latency, _served, _waiting, _busy, _balance)
    return over_time(draws, 9.5, title, run.series)


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


# ------------------------------------------------------------------------------------ many runs


class Sweep(NamedTuple):
    """A figure of policies, by what was varied."""

    title: str
    xlabel: str
    ylabel: str
    at: Sequence[float]
    lines: Mapping[str, Sequence[float]]
    """By policy, one for each of ``at``."""


STYLES: Mapping[str, tuple[str, str, str]] = {
    "tag": (BLUE, "-", "o"),
    "tag-literal": (ORANGE, "--", "s"),
    "cg": (GREEN, "-.", "^"),
    "pkg": (BLACK, ":", "D"),
    "dag": (VIOLET, "--", "v"),
    "key": (ORANGE, ":", "x"),
    "shuffle": (GREEN, ":", "+"),
}
"""Colour, line and mark of a policy, the same in every figure."""


def plot_sweep(sweep: Sweep, path: Path) -> None:
    """Write a sweep as one SVG, with a logarithmic x axis."""
    save(draw_sweep, (sweep,), path)


def draw_sweep(sweep: Sweep) -> Figure:
    """The figure that :func:`plot_sweep` writes."""
    figure = Figure(figsize=(8.0, 4.0), layout="constrained", facecolor="white")
    FigureCanvasSVG(figure)
    axes = figure.subplots()
    axes.set_title(sweep.title)
    axes.set_xlabel(sweep.xlabel)
    axes.set_ylabel(sweep.ylabel)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(list(sweep.at)))
    axes.xaxis.set_major_formatter(FixedFormatter([f"{at:g}" for at in sweep.at]))
    axes.xaxis.set_minor_locator(NullLocator())
    for policy, values in sweep.lines.items():
        colour, style, mark = STYLES[policy]
        axes.plot(
            sweep.at, values, label=policy, color=colour, linestyle=style, marker=mark, ms=4.0
        )
    axes.set_ylim(bottom=0)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure
