"""Plots of timed runs as SVG files; the same run gives the same bytes.

Rules of this file:

* No global state: figures are built without pyplot, and settings apply to one file.
* A figure has its own white background, so that it is readable on a dark page, too. Lines differ
  in more than their colour.
"""

from collections.abc import Callable, Mapping, Sequence
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
from sim.timed_figures import LAG, LATENCY, Panel, PanelLine

Columns: TypeAlias = Mapping[str, FloatArray]

SECOND_US = 1e6
UNITS_OF_TIME = ((1e6, "seconds"), (1e3, "milliseconds"), (1.0, "microseconds"))
LineStyle: TypeAlias = str | tuple[int, tuple[int, ...]]
TIME_LABEL = "time since the start of the run (s)"
# Okabe and Ito: most people with colour blindness can tell these apart.
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
    """Write the figure that ``draw`` returns for its arguments."""
    with rc_context(SETTINGS):
        draw(*arguments).savefig(path, format="svg", metadata={"Date": None, "Creator": None})


def panels(
    count: int,
    size: tuple[float, float],
    title: str,
    xlabel: str,
    heights: Sequence[float] | None = None,
) -> tuple[Figure, list[Axes]]:
    """Return a figure with a title, and panels below one another with a common x axis."""
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
    """Draw a column as a line that bridges rows without a value."""
    column = series[name]
    known = ~np.isnan(column)
    times = series["time_us"][known] / time_us
    axes.plot(times, column[known] / unit, label=label, color=colour, linestyle=style)


# ------------------------------------------------------------------------- runs of every room


MOST_LINES = 4
"""Most workers that are drawn as lines; more of them are rows of a map."""


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
    for prefix, heading, ylabel, unit in (
        ("queue_", "Tuples and messages at each worker", "waiting or in service", 1.0),
        ("utilisation_", "Time in which each worker works", "%", 0.01),
    ):
        workers = _workers(series, prefix)
        if workers:
            height = min(max(1.6, 0.13 * len(workers)), 4.5)
            draw = _by_worker(run, workers, heading, ylabel, unit)
            draws.append((draw, height))
    for heading, columns in (
        ("Watermark behind the time", lag),
        ("Latency", latency),
    ):
        known = {column: label for column, label in columns.items() if column in series}
        if known:
            draws.append((_of_times(series, heading, known), 1.6))
    draws += [(_of_room(series, panel), 1.6) for panel in own]
    heights = [height for _, height in draws]
    size = 8.0, sum(heights) + 0.35 * len(heights) + 0.7
    figure, axes_below = panels(len(draws), size, title, TIME_LABEL, heights)
    for (draw, _), axes in zip(draws, axes_below, strict=True):
        draw(axes)
        _shade(axes, run.plan.faults, end_us)
    if end_us > 0:
        axes_below[-1].set_xlim(0, end_us / SECOND_US)
    return figure


def _of_room(series: Columns, panel: Panel) -> Callable[[Axes], None]:
    def draw(axes: Axes) -> None:
        axes.set_title(panel.title)
        axes.set_ylabel(panel.ylabel)
        for (name, label, unit), style in zip(panel.lines, cycle(STYLES), strict=False):
            line(axes, series, name, unit, label, *style)
        if panel.is_from_0:
            highest = max(float(np.nanmax(series[each.column], initial=0)) for each in panel.lines)
            axes.set_ylim(0, None if highest > 0 else 1)  # an axis to 1 if all values are 0
        else:
            axes.margins(y=0.1)
        _legend(axes)

    return draw


def _of_times(series: Columns, title: str, labels: Mapping[str, str]) -> Callable[[Axes], None]:
    """Draw columns of times (us) in a unit of time that makes them easy to read."""
    longest_us = max(float(np.nanmax(series[name], initial=0.0)) for name in labels)
    unit, ylabel = next((each for each in UNITS_OF_TIME if longest_us >= each[0] / 2), (1.0, "us"))
    lines = tuple([PanelLine(name, label, unit) for name, label in labels.items()])
    return _of_room(series, Panel(title, ylabel, lines))


def _workers(series: Columns, prefix: str) -> dict[str, str]:
    """Return the columns of workers, each with the name of its worker."""
    names = {name: name.removeprefix(prefix) for name in series if name.startswith(prefix)}
    return {
        name: f"worker {worker}" if worker.isdigit() else worker
        for name, worker in names.items()
        if "_" not in worker
    }


def _by_worker(
    run: TimedRun, workers: Mapping[str, str], title: str, ylabel: str, unit: float
) -> Callable[[Axes], None]:
    """Draw a column of each worker: lines for few workers, a map for many."""
    series = run.series
    if sum(label.startswith("worker") for label in workers.values()) <= MOST_LINES:
        lines = tuple([PanelLine(name, label, unit) for name, label in workers.items()])
        return _of_room(series, Panel(title, ylabel, lines))

    def draw(axes: Axes) -> None:
        edges_s = np.append(0.0, series["time_us"]) / SECOND_US
        rows = np.array([series[name] for name in workers]) / unit
        # Rasterized: one shape per worker and moment would make a file of megabytes.
        shown = axes.pcolormesh(
            edges_s,
            np.arange(len(workers) + 1) - 0.5,
            np.ma.masked_invalid(rows),
            cmap="viridis",
            vmin=0.0,
            rasterized=True,
        )
        axes.set_title(title)
        axes.set_ylabel("worker")
        axes.grid(visible=False)
        names = [label.removeprefix("worker ") for label in workers.values()]
        # At most 16 numbers fit; names such as that of the corrector come last.
        step = -(-len(names) // 16)
        kept = [n for n in range(len(names)) if n % step == 0 or not names[n].isdigit()]
        axes.set_yticks(kept, [names[n] for n in kept], fontsize=7.0)
        axes.invert_yaxis()
        _frame(axes, run.plan.faults, [label.replace(" ", "-") for label in workers.values()])
        bar = axes.inset_axes((1.02, 0.05, 0.02, 0.9))
        axes.figure.colorbar(shown, cax=bar, label=ylabel)

    return draw


def _legend(axes: Axes) -> None:
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))


# ------------------------------------------------------------------------------------ faults


def _draw_faults(axes: Axes, faults: Schedule, end_us: float) -> None:
    """Draw each fault as a bar in its own row, with its description beside the row."""
    axes.set_title("Faults")
    axes.set_yticks([])
    axes.set_ylim(len(faults) - 0.5, -0.5)
    for row, fault in enumerate(faults):
        span = _span_s(fault)
        if span is not None:
            start_s, end_s = span
            colour = FAULT_COLOURS[fault.kind]
            axes.barh(row, end_s - start_s, 0.7, start_s, color=colour, zorder=3)
        is_over = span is not None and span[0] * SECOND_US > end_us
        text = f"{_description(fault)}, after the end" if is_over else _description(fault)
        axes.annotate(
            text,
            (1.0, row),
            (6.0, 0.0),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            va="center",
            fontsize=8.0,
        )


def _shade(axes: Axes, faults: Schedule, end_us: float) -> None:
    """Shade the times of the faults; a map hides the shade."""
    for fault in faults:
        span = _span_s(fault)
        if span is not None and span[0] * SECOND_US <= end_us:
            axes.axvspan(*span, color=FAULT_COLOURS[fault.kind], alpha=0.15, linewidth=0, zorder=0)


def _frame(axes: Axes, faults: Schedule, workers: Sequence[str]) -> None:
    """Frame each fault on a map, in the row of its worker if there is one."""
    for fault in faults:
        span = _span_s(fault)
        target = fault[0].rpartition(">")[2]
        if span is not None and target in workers:
            corner = span[0], workers.index(target) - 0.5
            frame = Rectangle(corner, span[1] - span[0], 1.0, fill=False, edgecolor="white")
            axes.add_patch(frame)


def _span_s(fault: Fault) -> tuple[float, float] | None:
    """Return the start and end (s) of a fault; ``None`` for a fault of one message."""
    if isinstance(fault, Pause | Slow | Fail | Congest):
        return fault.at_us / SECOND_US, (fault.at_us + fault.for_us) / SECOND_US
    return None


def _description(fault: Fault) -> str:
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
