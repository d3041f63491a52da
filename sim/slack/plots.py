"""A plot of runs of room ``slack`` under several controls, as SVG."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from sim.report.drawing import (
    BLACK,
    BLUE,
    GREEN,
    ORANGE,
    line,
    panels,
    save,
)
from sim.slack import TimedRun

AXIS_UNITS_US: Mapping[str, float] = {"s": 1e6, "min": 60e6, "h": 3_600e6, "days": 86_400e6}


def plot_controls(
    runs: Sequence[TimedRun], path: Path, *, unit: str = "s", time_unit: str = "min"
) -> None:
    """Write runs of the same arrivals under different controls as one SVG.

    Slack, latency, coverage and error of the first answers; ``unit`` is that of slack and latency,
    ``time_unit`` that of the time since the start, both of :data:`AXIS_UNITS_US`.
    """
    save(draw_controls, (runs, unit, time_unit), path)


STYLES = ((BLUE, "-"), (ORANGE, "--"), (BLACK, ":"))


def draw_controls(runs: Sequence[TimedRun], unit: str, time_unit: str) -> Figure:
    """Return the figure that :func:`plot_controls` writes, of at most three runs."""
    summary = runs[0].summary
    title = f"{summary['input']}\n{summary['aggregate']}, seed {summary['seed']}"
    label = f"time since the start of the run ({time_unit})"
    figure, axes_below = panels(4, (8.0, 8.0), title, label)
    long = {"s": "seconds", "min": "minutes", "h": "hours", "days": "days"}[unit]
    drawn = (
        ("Slack K", long, "slack_us", AXIS_UNITS_US[unit]),
        (
            "From the end of a window to its first answer",
            long,
            "window_latency_us",
            AXIS_UNITS_US[unit],
        ),
        ("Tuples that first answers contained", "% of the window's tuples", "coverage", 0.01),
        ("Error, mean over all windows answered so far", "relative error (%)", "first_error", 0.01),
    )
    time_us = AXIS_UNITS_US[time_unit]
    for axes, (heading, label, name, scale) in zip(axes_below, drawn, strict=True):
        axes.set_title(heading)
        axes.set_ylabel(label)
        for run, (colour, style) in zip(runs, STYLES, strict=False):
            control = str(run.summary["control"])
            line(axes, run.series, name, scale, control, colour, style, time_us)
    required, corrected = axes_below[2:]
    line(required, runs[0].series, "required_coverage", 0.01, "required", GREEN, "-.", time_us)
    label = f"{runs[0].summary['control']},\ncorrected"
    line(corrected, runs[0].series, "current_error", 0.01, label, GREEN, "-.", time_us)
    for axes in axes_below:
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    for axes in (axes_below[0], axes_below[1], axes_below[3]):
        axes.set_ylim(bottom=0)
    return figure
