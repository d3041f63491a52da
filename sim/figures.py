"""Plots of runs, as SVG: the same run gives the same bytes.

Rules of this file:

* No global state: figures are built without pyplot, settings hold for one file.
* A figure has a white ground of its own, so that it is readable on a dark page, too. Lines differ
  in more than their colour.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from sim.slack import Run
from sim.slack.series import Series

SECOND_US = 1e6
UNITS_US: Mapping[str, float] = {"s": 1e6, "min": 60e6, "h": 3_600e6, "days": 86_400e6}
# Okabe and Ito: told apart by most people who do not see all colours.
BLUE, ORANGE, BLACK, GREEN = "#0072B2", "#D55E00", "#333333", "#009E73"
SETTINGS: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.0,
    "axes.grid": True,
    "axes.titlesize": 10.0,
    "axes.titlelocation": "left",
    "grid.color": "#dddddd",
    "legend.frameon": False,
    "lines.linewidth": 1.3,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "straggler",  # names of parts depend on nothing but the figure
}


def plot_run(run: Run, path: Path) -> None:
    """Write a run of room ``slack`` as one SVG.

    Slack and watermark lag, latency, coverage of the first answers, and error before and after
    corrections, all over the time since the start of the run.
    """
    _save(draw_run, (run,), path)


def plot_controls(
    runs: Sequence[Run], path: Path, *, unit: str = "s", time_unit: str = "min"
) -> None:
    """Write runs of the same arrivals under different controls as one SVG.

    Slack, latency, coverage and error of the first answers; ``unit`` is that of slack and latency,
    ``time_unit`` that of the time since the start, both of :data:`UNITS_US`.
    """
    _save(draw_controls, (runs, unit, time_unit), path)


def _save(draw: Callable[..., Figure], arguments: Sequence[object], path: Path) -> None:
    with rc_context(SETTINGS):
        draw(*arguments).savefig(path, format="svg", metadata={"Date": None, "Creator": None})


def draw_run(run: Run) -> Figure:
    """The figure that :func:`plot_run` writes."""
    figure = Figure(figsize=(8.0, 9.0), layout="constrained", facecolor="white")
    FigureCanvasSVG(figure)
    figure.suptitle(_title(run.summary), fontsize=10.0, x=0.01, ha="left")
    panels = figure.subplots(4, 1, sharex=True)
    for draw, axes in zip((_slack, _latency, _coverage, _error), panels, strict=True):
        draw(axes, run.series)
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    panels[-1].set_xlabel("time since the start of the run (s)")
    return figure


def _title(summary: Mapping[str, float | int | str]) -> str:
    tasks = "1 task" if summary["tasks"] == 1 else f"{summary['tasks']} tasks"
    query = f"{summary['aggregate']}, control {summary['control']}, {tasks}"
    return f"{summary['input']}\n{query}, seed {summary['seed']}"


def _slack(axes: Axes, series: Series) -> None:
    axes.set_title("Waiting for stragglers")
    axes.set_ylabel("seconds")
    _line(axes, series, "watermark_lag_us", SECOND_US, "watermark behind\nthe time", ORANGE, "-")
    _line(axes, series, "slack_us", SECOND_US, "slack K", BLUE, "--")
    axes.set_ylim(bottom=0)


def _latency(axes: Axes, series: Series) -> None:
    axes.set_title("Latency of first answers")
    axes.set_ylabel("seconds")
    _line(axes, series, "latency_us", SECOND_US, "from a tuple's arrival", ORANGE, "-")
    _line(axes, series, "window_latency_us", SECOND_US, "from the window's end", BLUE, "--")
    axes.set_ylim(bottom=0)


def _coverage(axes: Axes, series: Series) -> None:
    axes.set_title("Tuples that first answers contained")
    axes.set_ylabel("% of the window's tuples")
    _line(axes, series, "coverage", 0.01, "contained", BLUE, "-")
    _line(axes, series, "required_coverage", 0.01, "required", BLACK, ":")
    axes.margins(y=0.1)


def _error(axes: Axes, series: Series) -> None:
    axes.set_title("Error, mean over all windows answered so far")
    axes.set_ylabel("relative error (%)")
    _line(axes, series, "first_error", 0.01, "first answers", ORANGE, "-")
    _line(
        axes, series, "current_error", 0.01, "current answers,\ncorrected from history", BLUE, "--"
    )
    axes.set_ylim(bottom=0)


# ------------------------------------------------------------------------- several controls

STYLES = ((BLUE, "-"), (ORANGE, "--"), (BLACK, ":"))


def draw_controls(runs: Sequence[Run], unit: str, time_unit: str) -> Figure:
    """The figure that :func:`plot_controls` writes, of at most three runs."""
    figure = Figure(figsize=(8.0, 8.0), layout="constrained", facecolor="white")
    FigureCanvasSVG(figure)
    summary = runs[0].summary
    title = f"{summary['input']}\n{summary['aggregate']}, seed {summary['seed']}"
    figure.suptitle(title, fontsize=10.0, x=0.01, ha="left")
    panels = figure.subplots(4, 1, sharex=True)
    long = {"s": "seconds", "min": "minutes", "h": "hours", "days": "days"}[unit]
    drawn = (
        ("Slack K", long, "slack_us", UNITS_US[unit]),
        ("From the end of a window to its first answer", long, "window_latency_us", UNITS_US[unit]),
        ("Tuples that first answers contained", "% of the window's tuples", "coverage", 0.01),
        ("Error, mean over all windows answered so far", "relative error (%)", "first_error", 0.01),
    )
    time_us = UNITS_US[time_unit]
    for axes, (heading, label, name, scale) in zip(panels, drawn, strict=True):
        axes.set_title(heading)
        axes.set_ylabel(label)
        for run, (colour, style) in zip(runs, STYLES, strict=False):
            control = str(run.summary["control"])
            _line(axes, run.series, name, scale, control, colour, style, time_us)
    required, corrected = panels[2], panels[3]
    _line(required, runs[0].series, "required_coverage", 0.01, "required", GREEN, "-.", time_us)
    label = f"{runs[0].summary['control']},\ncorrected"
    _line(corrected, runs[0].series, "current_error", 0.01, label, GREEN, "-.", time_us)
    for axes in panels:
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    for axes in (panels[0], panels[1], panels[3]):
        axes.set_ylim(bottom=0)
    panels[-1].set_xlabel(f"time since the start of the run ({time_unit})")
    return figure


def _line(
    axes: Axes,
    series: Series,
    name: str,
    unit: float,
    label: str,
    colour: str,
    style: str,
    time_us: float = SECOND_US,
) -> None:
    """A column as a line; rows in which nothing was measured are bridged."""
    column = series[name]
    known = ~np.isnan(column)
    times = series["time_us"][known] / time_us
    axes.plot(times, column[known] / unit, label=label, color=colour, linestyle=style)
