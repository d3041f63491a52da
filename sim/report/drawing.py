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
from sim.kernel.run import TimedRun
from sim.timed_figures import LAG, LATENCY, Panel, run_panels

Columns: TypeAlias = Mapping[str, FloatArray]

SECOND_US = 1e6
LineStyle: TypeAlias = str | tuple[int, tuple[int, ...]]
TIME_LABEL = "time since the start of the run (s)"
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
    time_us: float = SECOND_US,
) -> None:
    """Draw a column, divided by ``unit``, as a line that bridges rows without a value."""
    column = series[name]
    known = ~np.isnan(column)
    times = series["time_us"][known] / time_us
    axes.plot(times, column[known] / unit, label=label, color=colour, linestyle=style)


# ------------------------------------------------------------------------- runs of every room


def draw_timed_run(
    run: TimedRun,
    title: str,
    own: Sequence[Panel],
    *,
    latency: Mapping[str, str] = LATENCY,
    lag: Mapping[str, str] = LAG,
) -> Figure:
    """Draw a timed run over time: the panels of every room, and then the room's ``own`` panels.

    The panels of every room are the faults of the plan; queue length and utilisation of each
    worker, from the columns ``queue_0``, ..., ``utilisation_0``, ...; the lag of the watermark; and
    latency. ``lag`` and ``latency`` map columns (us) of the last two to the labels of their lines.
    Columns that the series lacks are omitted, and so is a panel without columns.
    """
    series = run.series
    end_us = float(series["time_us"][-1])
    draws: list[tuple[Callable[[Axes], None], float]] = []
    if run.plan.faults:
        height = 0.4 + 0.2 * len(run.plan.faults)
        draws.append((lambda axes: _draw_faults(axes, run.plan.faults, end_us), height))
    draws += [
        (partial(_draw_panel, run, panel), _height(panel))
        for panel in run_panels(series, own, latency, lag)
    ]
    heights = [height for _, height in draws]
    size = 8.0, sum(heights) + 0.35 * len(heights) + 0.7
    figure, axes_below = panels(len(draws), size, title, TIME_LABEL, heights)
    for (draw, _), axes in zip(draws, axes_below, strict=True):
        draw(axes)
        shade_faults(axes, run.plan.faults, end_us, FAULT_COLOURS)
    if end_us > 0:
        axes_below[-1].set_xlim(0, end_us / SECOND_US)
    return figure


def _height(panel: Panel) -> float:
    return min(max(1.6, 0.13 * len(panel.lines)), 4.5) if panel.is_by_worker else 1.6


def _draw_panel(run: TimedRun, panel: Panel, axes: Axes) -> None:
    if panel.is_map:
        _draw_map(run, panel, axes)
        return
    axes.set_title(panel.title)
    axes.set_ylabel(panel.ylabel)
    for (name, label, unit), style in zip(panel.lines, cycle(STYLES), strict=False):
        line(axes, run.series, name, unit, label, *style)
    fit_heights(axes, run.series, panel)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))


def fit_heights(axes: Axes, series: Columns, panel: Panel) -> None:
    """Fit the y axis to the columns of a panel; it reaches 1 if all of them are 0."""
    if panel.is_from_0:
        highest = max(float(np.nanmax(series[each.column], initial=0)) for each in panel.lines)
        axes.set_ylim(0, None if highest > 0 else 1)
    else:
        axes.margins(y=0.1)


def _draw_map(run: TimedRun, panel: Panel, axes: Axes) -> None:
    """Draw the column of each worker as a row."""
    series, unit = run.series, panel.lines[0].unit
    edges_s = np.append(0.0, series["time_us"]) / SECOND_US
    rows = np.array([series[each.column] for each in panel.lines]) / unit
    # Rasterized: one shape per worker and moment would make a file of megabytes.
    shown = axes.pcolormesh(
        edges_s,
        np.arange(len(rows) + 1) - 0.5,
        np.ma.masked_invalid(rows),
        cmap="viridis",
        vmin=0.0,
        rasterized=True,
    )
    axes.set_title(panel.title)
    axes.set_ylabel("worker")
    axes.grid(visible=False)
    mark_workers(axes, panel, fontsize=7.0)
    names = [each.label.replace(" ", "-") for each in panel.lines]
    frame_faults(axes, run.plan.faults, names, "white")
    bar = axes.inset_axes((1.02, 0.05, 0.02, 0.9))
    axes.figure.colorbar(shown, cax=bar, label=panel.ylabel)


def mark_workers(axes: Axes, panel: Panel, most: int = 16, **more: Any) -> None:
    """Label at most ``most`` numbered workers of a map, and every other row, such as the corrector.

    ``more`` are properties of the text.
    """
    names = [each.label.removeprefix("worker ") for each in panel.lines]
    step = -(-len(names) // most)
    kept = [n for n in range(len(names)) if n % step == 0 or not names[n].isdigit()]
    axes.set_yticks(kept, [names[n] for n in kept], **more)
    axes.invert_yaxis()


# ------------------------------------------------------------------------------------ faults


def _draw_faults(axes: Axes, faults: Schedule, end_us: float) -> None:
    """Draw each fault as a bar in its own row, with its description beside the row."""
    axes.set_title("Faults")
    axes.set_yticks([])
    axes.set_ylim(len(faults) - 0.5, -0.5)
    for row, fault in enumerate(faults):
        span_us = fault_span_us(fault)
        if span_us is not None:
            start_s, end_s = (each / SECOND_US for each in span_us)
            colour = FAULT_COLOURS[fault.kind]
            axes.barh(row, end_s - start_s, 0.7, start_s, color=colour, zorder=3)
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


def shade_faults(
    axes: Axes,
    faults: Schedule,
    end_us: float,
    colours: Mapping[str, str],
    time_us: float = SECOND_US,
) -> None:
    """Shade the times of the faults until ``end_us`` in colours by kind; a map hides the shade.

    ``time_us`` is the unit of the axis.
    """
    for fault in faults:
        span_us = fault_span_us(fault)
        if span_us is not None and span_us[0] <= end_us:
            start, end = (each / time_us for each in span_us)
            axes.axvspan(start, end, color=colours[fault.kind], alpha=0.15, linewidth=0, zorder=0)


def frame_faults(
    axes: Axes,
    faults: Schedule,
    workers: Sequence[str],
    colour: str,
    time_us: float = SECOND_US,
) -> None:
    """Frame each fault on a map, in the row of its worker if there is one.

    ``time_us`` is the unit of the axis.
    """
    for fault in faults:
        span_us = fault_span_us(fault)
        target = fault[0].rpartition(">")[2]
        if span_us is not None and target in workers:
            start, end = (each / time_us for each in span_us)
            corner = start, workers.index(target) - 0.5
            frame = Rectangle(corner, end - start, 1.0, fill=False, edgecolor=colour)
            axes.add_patch(frame)


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
