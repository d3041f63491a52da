"""Plots of runs of room ``grouping`` as SVG."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

from sim.kernel.run import TimedRun
from sim.report.drawing import BLACK, BLUE, GREEN, ORANGE, Panel, PanelLine, draw_timed_run, save

VIOLET = "#AA4499"


def plot_run(run: TimedRun, path: Path) -> None:
    """Write a run as one SVG.

    Faults, instances, latency, tuples served and waiting, balance and measured times, all over the
    time since the start of the run.
    """
    save(draw_run, (run,), path)


PANELS = (
    Panel("Tuples served", "thousand a second", (PanelLine("served_hz", "all instances", 1e3),)),
    Panel(
        "Tuples that have arrived and are not served",
        "tuples",
        (PanelLine("waiting", "at senders, under way\nand at instances"),),
    ),
    Panel(
        "Time in which an instance works",
        "%",
        (PanelLine("busiest", "busiest", 0.01), PanelLine("idlest", "idlest", 0.01)),
    ),
    Panel(
        "Makespan of a window over that of a fluid, and what times are known",
        "%",
        (PanelLine("rho", "rho", 0.01), PanelLine("wrong", "times off by", 0.01)),
    ),
)


def draw_run(run: TimedRun) -> Figure:
    """Return the figure that :func:`plot_run` writes."""
    summary = run.summary
    title = (
        f"{summary['input']}\n"
        f"{summary['policy']}, {summary['instances']} instances, seed {summary['seed']}"
    )
    return draw_timed_run(run, title, PANELS)


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
