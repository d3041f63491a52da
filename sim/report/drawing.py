"""Plots of timed runs as SVG or PNG files; the same run gives the same bytes.

Rules of this file:

* No global state: figures are built without pyplot, and settings apply to one file.
* A figure has its own white background, so that it is readable on a dark page, too. Lines differ
  in more than their colour.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from sim.kernel.disorder import Burst, Regime
from sim.kernel.distributions import FloatArray
from sim.kernel.faults import Congest, Fail, Pause, Slow
from sim.kernel.plan import Plan
from sim.kernel.run import TimedRun
from sim.timed_figures import Panel, RunPlot, run_panels, unit_of_time

Columns: TypeAlias = Mapping[str, FloatArray]
Span: TypeAlias = tuple[float, float]

# Palette of Okabe and Ito, whose colours most people with colour blindness can tell apart.
BLUE, ORANGE, BLACK, GREEN = "#0072B2", "#D55E00", "#333333", "#009E73"
PURPLE, GREY, YELLOW = "#CC79A7", "#777777", "#E69F00"
COLOURS = {
    "burst": GREEN,
    "gap": PURPLE,
    "pause": GREY,
    "slow": YELLOW,
    "fail": ORANGE,
    "congest": BLUE,
}
"""Colours of what is shaded, by kind."""
LineStyle: TypeAlias = str | tuple[int, tuple[int, ...]]
STYLES: tuple[tuple[str, LineStyle], ...] = (
    (BLUE, "-"),
    (ORANGE, "--"),
    (GREEN, "-."),
    (BLACK, ":"),
    (PURPLE, (0, (5, 1, 1, 1))),
)
LINES_MAX = 4
"""Most workers that are drawn as lines; of more, there are a mean and a range."""
SHADES_MAX = 200
"""Most shades of a burst that comes again and again."""
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


def draw_timed_run(timed: TimedRun, plot: RunPlot) -> Figure:
    """Draw a timed run over time: panels of every room, then the room's own.

    Bursts, gaps and faults are shaded. A panel without a single value, such as the latency of a run
    without answers, is omitted.
    """
    title, own, latency, lag = plot
    series, arrivals = timed.series, timed.workload.arrivals
    end_us = float(series["time_us"][-1])
    time_us, unit = unit_of_time(end_us)
    shown = [
        panel
        for panel in run_panels(series, own, latency, lag)
        if any(np.isfinite(series[each.column]).any() for each in panel.lines)
    ]
    heights = [0.15 if _is_always_0(panel, series) else 1.6 for panel in shown]
    size = 8.0, sum(heights) + 0.35 * len(heights) + 0.9
    label = f"time since the start of the run ({unit})"
    figure, axes_below = panels(len(shown), size, title(timed), label, heights)
    shades = [(name, kind, spans) for name, kind, spans in shades_of(timed.plan, end_us) if spans]
    input_us = arrivals[-1].arrival_us - timed.plan.epoch_us if arrivals else 0
    for panel, axes in zip(shown, axes_below, strict=True):
        _draw_panel(series, panel, time_us, axes)
        for _, kind, spans_us in shades:
            for start_us, stop_us in spans_us:
                start, stop = start_us / time_us, stop_us / time_us
                axes.axvspan(start, stop, color=COLOURS[kind], alpha=0.15, linewidth=0, zorder=0)
        if 0 < input_us < end_us:  # what waits for more input then waits for the flush
            axes.axvline(input_us / time_us, color=GREY, linestyle=(0, (2, 2)), linewidth=1.0)
    handles = [Patch(color=COLOURS[kind], alpha=0.4, label=name) for name, kind, _ in shades]
    if handles:
        heading = "bursts, gaps and faults"
        figure.legend(handles=handles, loc="outside lower left", ncols=3, title=heading)
    if end_us > 0:
        axes_below[-1].set_xlim(0, end_us / time_us)
    return figure


def shades_of(plan: Plan, end_us: float) -> Iterator[tuple[str, str, list[Span]]]:
    """Yield name, kind and times (us) of bursts, gaps and faults that begin before ``end_us``."""
    spans: dict[str, list[Span]] = {}
    for each in plan.disturbances:
        if not isinstance(each, Regime):
            every_us = each.every_us if isinstance(each, Burst) else None
            starts_us = range(each.start_us, int(end_us) + 1, every_us or int(end_us) + 1)
            found = [(at_us, at_us + each.length_us) for at_us in starts_us[:SHADES_MAX]]
            spans.setdefault(each.kind, []).extend(found)
    yield from ((kind, kind, sorted(set(found))) for kind, found in spans.items())
    for fault in plan.faults:
        if isinstance(fault, Pause | Slow | Fail | Congest) and fault.at_us <= end_us:
            span_us = fault.at_us, fault.at_us + fault.for_us
            yield f"{fault.kind} {fault[0]}", fault.kind, [span_us]


def _is_always_0(panel: Panel, series: Columns) -> bool:
    return not any(np.nan_to_num(series[each.column]).any() for each in panel.lines)


def _draw_panel(series: Columns, panel: Panel, time_us: float, axes: Axes) -> None:
    if _is_always_0(panel, series):
        axes.set_title(f"{panel.title}: always 0")
        axes.set_yticks([])
        return
    axes.set_title(panel.title)
    axes.set_ylabel(panel.ylabel)
    if panel.is_by_worker and len(panel.lines) > LINES_MAX:
        rows = np.array([series[each.column] for each in panel.lines]) / panel.lines[0].unit
        times = series["time_us"] / time_us
        label = f"of {len(rows)} workers,\nleast to most"
        axes.fill_between(times, rows.min(axis=0), rows.max(axis=0), alpha=0.3, label=label)
        axes.plot(times, rows.mean(axis=0), color=BLUE, label="mean")
    else:
        for (name, label, unit), style in zip(panel.lines, cycle(STYLES), strict=False):
            line(axes, series, name, unit, label, *style, time_us)
    if panel.is_from_0:
        axes.set_ylim(0, None)
    else:
        axes.margins(y=0.1)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
