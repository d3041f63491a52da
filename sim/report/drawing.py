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
from sim.kernel.faults import Schedule
from sim.kernel.run import TimedRun
from sim.report.marks import (
    BLACK,
    BLUE,
    COLOURS,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SHADED,
    Mark,
    fault_span_us,
    marks_of,
    name_worker,
    title_of,
    union_us,
)
from sim.timed_figures import Panel, RunPlot, run_panels, unit_of_time

Columns: TypeAlias = Mapping[str, FloatArray]

LineStyle: TypeAlias = str | tuple[int, tuple[int, ...]]
STYLES: tuple[tuple[str, LineStyle], ...] = (
    (BLUE, "-"),
    (ORANGE, "--"),
    (GREEN, "-."),
    (BLACK, ":"),
    (PURPLE, (0, (5, 1, 1, 1))),
)
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
        figure = draw(*arguments)
        # The solver of the layout sums in an order that may differ, and ids are digests of places.
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        for axes in figure.axes:
            axes.set_position(np.round(axes.get_position(original=True).bounds, 6).tolist())
        figure.savefig(path, **FORMATS[path.suffix.lower()])


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


def draw_timed_run(timed: TimedRun, plot: RunPlot) -> Figure:
    """Draw a timed run over time: bursts, gaps and faults; panels of every room; the room's own.

    A panel without a single value, such as the latency of a run without answers, is omitted.
    """
    title, own, latency, lag = plot
    series, arrivals = timed.series, timed.workload.arrivals
    end_us = float(series["time_us"][-1])
    time_us, unit = unit_of_time(end_us)
    draws: list[tuple[Callable[[Axes], None], float]] = []
    rows = marks_of(timed.plan, end_us)
    if rows:
        lines = sum(mark.text.count("\n") + 1 for mark in rows)
        draws.append((lambda axes: _draw_marks(axes, rows, time_us), 0.4 + 0.2 * lines))
    draws += [
        (partial(_draw_panel, timed, panel, time_us), _height(panel, series))
        for panel in run_panels(series, own, latency, lag)
        if any(np.isfinite(series[each.column]).any() for each in panel.lines)
    ]
    heights = [height for _, height in draws]
    size = 8.0, sum(heights) + 0.35 * len(heights) + 0.7
    label = f"time since the start of the run ({unit})"
    figure, axes_below = panels(len(draws), size, title(timed), label, heights)
    for (draw, _), axes in zip(draws, axes_below, strict=True):
        draw(axes)
        _shade_marks(axes, rows, end_us, time_us)
    input_us = arrivals[-1].arrival_us - timed.plan.epoch_us if arrivals else 0
    if 0 < input_us < end_us:
        _mark_input(axes_below, input_us / time_us, is_early=input_us < end_us / 2)
    if end_us > 0:
        axes_below[-1].set_xlim(0, end_us / time_us)
    return figure


def _mark_input(axes_below: Sequence[Axes], time: float, *, is_early: bool) -> None:
    """Draw a line where the input ends: what waits for more of it then waits for the flush.

    An early one is named above the title, and not beside it.
    """
    for axes in axes_below:
        axes.axvline(time, color=GREY, linestyle=(0, (2, 2)), linewidth=1.0)
    axes_below[0].annotate(
        "input ends",
        (time, 1.0),
        (0.0, 16.0 if is_early else 3.0),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        ha="center",
        fontsize=8.0,
    )


def _only_value(panel: Panel, series: Columns) -> float | None:
    """Return the value that all lines of a panel have at all times, if there is one."""
    found = {
        value / each.unit
        for each in panel.lines
        for value in np.unique(series[each.column][~np.isnan(series[each.column])]).tolist()
    }
    return found.pop() if len(found) == 1 else None if found else 0.0


def _height(panel: Panel, series: Columns) -> float:
    if _only_value(panel, series) is not None:
        return 0.15
    return min(max(1.6, 0.13 * len(panel.lines)), 4.5) if panel.is_by_worker else 1.6


def _draw_panel(timed: TimedRun, panel: Panel, time_us: float, axes: Axes) -> None:
    series = timed.series
    only = _only_value(panel, series)
    if only is not None:
        axes.set_title(f"{panel.title}: always {only:g}" + (f" {panel.ylabel}" if only else ""))
        axes.set_yticks([])
        return
    if panel.is_map:
        _draw_map(timed, panel, time_us, axes)
        return
    axes.set_title(panel.title)
    axes.set_ylabel(panel.ylabel)
    for (name, label, unit), style in zip(panel.lines, cycle(STYLES), strict=False):
        shown = name_worker(timed.plan, label, is_brief=False) if panel.is_by_worker else label
        line(axes, series, name, unit, shown, *style, time_us)
    if panel.is_from_0:
        axes.set_ylim(0, None)
    else:
        axes.margins(y=0.1)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))


def _draw_map(timed: TimedRun, panel: Panel, time_us: float, axes: Axes) -> None:
    """Draw the column of each worker as a row."""
    series, unit = timed.series, panel.lines[0].unit
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
    names = [each.label for each in panel.lines]
    step = -(-len(names) // MARKED_MAX)
    kept = [n for n, name in enumerate(names) if n % step == 0 or not name.startswith("worker ")]
    labels = [name_worker(timed.plan, names[n], is_brief=True) for n in kept]
    axes.set_yticks(kept, labels, fontsize=7.0)
    axes.invert_yaxis()
    workers = [name.replace(" ", "-") for name in names]
    _frame_faults(axes, timed.plan.faults, workers, time_us)
    bar = axes.inset_axes((1.02, 0.05, 0.02, 0.9))
    axes.figure.colorbar(shown, cax=bar, label=panel.ylabel)


# ------------------------------------------------------------------------------------- marks


def _draw_marks(axes: Axes, rows: Sequence[Mark], time_us: float) -> None:
    """Draw each mark as bars in its own row, with its description beside the row."""
    axes.set_title(title_of(rows))
    axes.set_yticks([])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    for row, mark in enumerate(rows):
        for start_us, end_us in mark.spans_us:
            start, end = start_us / time_us, end_us / time_us
            axes.barh(row, end - start, 0.7, start, color=COLOURS[mark.kind], zorder=3)
        axes.annotate(
            mark.text,
            (1.0, row),
            (6.0, 0.0),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            va="center",
            fontsize=8.0,
        )


def _shade_marks(axes: Axes, rows: Sequence[Mark], end_us: float, time_us: float) -> None:
    """Shade the times of the marks until ``end_us``; a map hides the shade."""
    for kind in SHADED:
        spans_us = [span_us for mark in rows if mark.kind == kind for span_us in mark.spans_us]
        for start_us, stop_us in union_us(spans_us):
            if start_us <= end_us:
                start, end = start_us / time_us, stop_us / time_us
                axes.axvspan(start, end, color=COLOURS[kind], alpha=0.15, linewidth=0, zorder=0)


def _frame_faults(axes: Axes, faults: Schedule, workers: Sequence[str], time_us: float) -> None:
    """Frame each fault on a map, in the row of its worker if there is one."""
    for fault in faults:
        span_us = fault_span_us(fault)
        target = fault[0].rpartition(">")[2]
        if span_us is not None and target in workers:
            start, end = (each / time_us for each in span_us)
            corner = start, workers.index(target) - 0.5
            axes.add_patch(Rectangle(corner, end - start, 1.0, fill=False, edgecolor="white"))
