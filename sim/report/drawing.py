"""Plots of timed runs as SVG or PNG files; the same run gives the same bytes.

Rules of this file:

* No global state: figures are built without pyplot, and settings apply to one file.
* A figure has its own white background, so that it is readable on a dark page, too. Lines differ
  in more than their colour.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from sim.kernel.distributions import FloatArray
from sim.kernel.faults import Congest, Duplicate, Fail, Fault, Lose, Pause, Replay, Schedule, Slow
from sim.kernel.run import Course
from sim.timed_figures import Panel, RunPlot, run_panels, unit_of_time

Columns: TypeAlias = Mapping[str, FloatArray]

LineStyle: TypeAlias = str | tuple[int, tuple[int, ...]]
# Palette of Okabe and Ito, whose colours most people with colour blindness can tell apart.
BLUE, ORANGE, BLACK, GREEN = "#0072B2", "#D55E00", "#333333", "#009E73"
PURPLE, YELLOW, GREY = "#CC79A7", "#E69F00", "#777777"
STYLES: tuple[tuple[str, LineStyle], ...] = (
    (BLUE, "-"),
    (ORANGE, "--"),
    (GREEN, "-."),
    (BLACK, ":"),
    (PURPLE, (0, (5, 1, 1, 1))),
)
FAULT_COLOURS = {"pause": GREY, "slow": YELLOW, "fail": ORANGE, "congest": BLUE}
MARKED_MAX = 16
"""Most numbered workers of a map that have a label; every other row has one."""
FORMATS: Mapping[str, dict[str, Any]] = {
    ".svg": {"format": "svg", "metadata": {"Date": None, "Creator": None}},
    ".png": {"format": "png", "metadata": {"Software": None}, "dpi": 160},
}
"""Options for writing a figure, by the ending of its file. They keep date and version out."""
SETTINGS: dict[Any, Any] = {  # Matplotlib types each key as a literal
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
    "svg.hashsalt": "straggler",  # ids depend on the figure alone
}


def save(draw: Callable[..., Figure], arguments: Sequence[object], path: Path) -> None:
    """Write the figure that ``draw`` returns for its arguments, in the format of the file's name.

    The name ends in one of :data:`sim.timed_figures.ENDINGS`.
    """
    with rc_context(SETTINGS):
        draw(*arguments).savefig(path, **FORMATS[path.suffix.lower()])


def panels(
    count: int,
    size: tuple[float, float],
    title: str,
    xlabel: str,
    heights: Sequence[float] | None = None,
) -> tuple[Figure, list[Axes]]:
    """Return a titled figure of ``size`` inches, and ``count`` panels above a common x axis."""
    figure = Figure(figsize=size, layout="constrained", facecolor="white")
    FigureCanvasSVG(figure)
    figure.suptitle(title, fontsize=10.0, x=0.01, ha="left")
    below = figure.subplots(count, 1, sharex=True, squeeze=False, height_ratios=heights)
    axes: list[Axes] = list(below[:, 0])
    axes[-1].set_xlabel(xlabel)
    return figure, axes


def line(
    axes: Axes,
    series: Columns,
    name: str,
    unit: float,
    label: str,
    colour: str,
    style: LineStyle,
    time_us: float,
) -> None:
    """Draw a column, divided by ``unit``, as a line that bridges rows without a value.

    ``time_us`` is the unit of the axis of time.
    """
    column = series[name]
    known = ~np.isnan(column)
    times = series["time_us"][known] / time_us
    axes.plot(times, column[known] / unit, label=label, color=colour, linestyle=style)


# ------------------------------------------------------------------------- runs of every room


def draw_timed_run(course: Course, plot: RunPlot) -> Figure:
    """Draw a timed run over time: its faults, the panels of every room, and the room's own ones.

    A panel without a single value, such as the latency of a run without answers, is omitted.
    """
    title, own, latency, lag = plot
    series, faults = course.series, course.faults
    end_us = float(series["time_us"][-1])
    time_us, unit = unit_of_time(end_us)
    draws: list[tuple[Callable[[Axes], None], float]] = []
    if faults:
        height = 0.4 + 0.2 * len(faults)
        draws.append((lambda axes: _draw_faults(axes, faults, end_us, time_us), height))
    draws += [
        (partial(_draw_panel, course, panel, time_us), _height(panel))
        for panel in run_panels(series, own, latency, lag)
        if any(np.isfinite(series[each.column]).any() for each in panel.lines)
    ]
    heights = [height for _, height in draws]
    size = 8.0, sum(heights) + 0.35 * len(heights) + 0.7
    label = f"time since the start of the run ({unit})"
    figure, axes_below = panels(len(draws), size, title(course.summary), label, heights)
    for (draw, _), axes in zip(draws, axes_below, strict=True):
        draw(axes)
        _shade_faults(axes, faults, end_us, time_us)
    if end_us > 0:
        axes_below[-1].set_xlim(0, end_us / time_us)
    return figure


def _height(panel: Panel) -> float:
    return min(max(1.6, 0.13 * len(panel.lines)), 4.5) if panel.is_by_worker else 1.6


def _draw_panel(course: Course, panel: Panel, time_us: float, axes: Axes) -> None:
    if panel.is_map:
        _draw_map(course, panel, time_us, axes)
        return
    series = course.series
    axes.set_title(panel.title)
    axes.set_ylabel(panel.ylabel)
    for (name, label, unit), style in zip(panel.lines, cycle(STYLES), strict=False):
        line(axes, series, name, unit, label, *style, time_us)
    if panel.is_from_0:
        highest = max(float(np.nanmax(series[each.column], initial=0)) for each in panel.lines)
        axes.set_ylim(0, None if highest > 0 else 1)
    else:
        axes.margins(y=0.1)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))


def _draw_map(course: Course, panel: Panel, time_us: float, axes: Axes) -> None:
    """Draw the column of each worker as a row."""
    series, unit = course.series, panel.lines[0].unit
    edges = np.append(0.0, series["time_us"]) / time_us
    rows = np.array([series[each.column] for each in panel.lines]) / unit
    # Rasterized: one shape per worker and moment would make a file of megabytes.
    shown = axes.pcolormesh(
        edges,
        np.arange(len(rows) + 1) - 0.5,
        np.ma.masked_invalid(rows),
        cmap="viridis",
        vmin=0.0,
        rasterized=True,
    )
    axes.set_title(panel.title)
    axes.set_ylabel("worker")
    axes.grid(visible=False)
    names = [each.label.removeprefix("worker ") for each in panel.lines]
    step = -(-len(names) // MARKED_MAX)
    kept = [n for n in range(len(names)) if n % step == 0 or not names[n].isdigit()]
    axes.set_yticks(kept, [names[n] for n in kept], fontsize=7.0)
    axes.invert_yaxis()
    workers = [each.label.replace(" ", "-") for each in panel.lines]
    _frame_faults(axes, course.faults, workers, time_us)
    bar = axes.inset_axes((1.02, 0.05, 0.02, 0.9))
    axes.figure.colorbar(shown, cax=bar, label=panel.ylabel)


# ------------------------------------------------------------------------------------ faults


def _draw_faults(axes: Axes, faults: Schedule, end_us: float, time_us: float) -> None:
    """Draw each fault as a bar in its own row, with its description beside the row."""
    axes.set_title("Faults")
    axes.set_yticks([])
    axes.set_ylim(len(faults) - 0.5, -0.5)
    for row, fault in enumerate(faults):
        span_us = fault_span_us(fault)
        if span_us is not None:
            start, end = (each / time_us for each in span_us)
            colour = FAULT_COLOURS[fault.kind]
            axes.barh(row, end - start, 0.7, start, color=colour, zorder=3)
        is_over = span_us is not None and span_us[0] > end_us
        text = f"{describe_fault(fault)}, after the end" if is_over else describe_fault(fault)
        axes.annotate(
            text,
            (1.0, row),
            (6.0, 0.0),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            va="center",
            fontsize=8.0,
        )


def _shade_faults(axes: Axes, faults: Schedule, end_us: float, time_us: float) -> None:
    """Shade the times of the faults until ``end_us``; a map hides the shade."""
    for fault in faults:
        span_us = fault_span_us(fault)
        if span_us is not None and span_us[0] <= end_us:
            start, end = (each / time_us for each in span_us)
            axes.axvspan(
                start, end, color=FAULT_COLOURS[fault.kind], alpha=0.15, linewidth=0, zorder=0
            )


def _frame_faults(axes: Axes, faults: Schedule, workers: Sequence[str], time_us: float) -> None:
    """Frame each fault on a map, in the row of its worker if there is one."""
    for fault in faults:
        span_us = fault_span_us(fault)
        target = fault[0].rpartition(">")[2]
        if span_us is not None and target in workers:
            start, end = (each / time_us for each in span_us)
            corner = start, workers.index(target) - 0.5
            axes.add_patch(Rectangle(corner, end - start, 1.0, fill=False, edgecolor="white"))


def fault_span_us(fault: Fault) -> tuple[int, int] | None:
    """Return the start and end (us) of a fault; ``None`` for a fault of one message or tuple."""
    if isinstance(fault, Pause | Slow | Fail | Congest):
        return fault.at_us, fault.at_us + fault.for_us
    return None


def describe_fault(fault: Fault) -> str:
    """Return the kind, the target and the extent of a fault as words."""
    match fault:
        case Pause() | Fail():
            return f"{fault.kind} {fault.worker}"
        case Slow():
            return f"slow {fault.worker}, factor {fault.factor:g}"
        case Congest():
            return f"congest {fault.link}, {fault.share:.0%} left"
        case Lose() | Replay():
            return f"{fault.kind} message {fault.nth} of {fault.link}"
        case Duplicate():
            return f"duplicate tuple {fault.nth} of {fault.source}"
