"""The plots of one timed run as SVG elements of a page, in the page's colours, light or dark.

Rules of this file:

1. Each panel is a picture by itself, so that a narrow page shows them below one another.
2. A map of many workers has shades of one colour, not the colours of a picture file: a page may
   hold no such file, and its colours change with the scheme.
"""

import io
from collections.abc import Iterator, Sequence
from itertools import cycle
from typing import NamedTuple

import numpy as np
from markupsafe import Markup
from matplotlib import rc_context
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from sim.kernel.distributions import FloatArray
from sim.kernel.run import Course
from sim.report.drawing import (
    FAULT_COLOURS,
    fit_heights,
    frame_faults,
    line,
    mark_workers,
    shade_faults,
)
from sim.report.plot import DASHES, INK, MUTED, SERIES, STYLE, VARIABLES, picture, write_tick
from sim.timed_figures import Panel, RunPlot, run_panels, unit_of_time

SIZE_INCHES = (4.7, 2.9)
"""Small, so that its letters are readable on a page as narrow as a phone."""
ROW_INCHES, HIGHEST_INCHES = 0.14, 6.0
"""Height of a worker's row on a map, and of the highest map."""
LEGEND_LETTERS = 44
"""Number of letters in a row of the legend; a sample of a line counts as several."""
SAMPLE_LETTERS = 6
SHADES = 5


class RunPicture(NamedTuple):
    """One plot of a run, with its heading."""

    heading: str
    svg: Markup


def draw_pictures(course: Course, plot: RunPlot, name: str) -> Iterator[RunPicture]:
    """Yield the plots of a run; ``name`` is unique in the page.

    A panel without a single value, such as the latency of a run without answers, is omitted.
    """
    _, own, latency, lag = plot
    for number, panel in enumerate(run_panels(course.series, own, latency, lag)):
        if not any(np.isfinite(course.series[each.column]).any() for each in panel.lines):
            continue
        written = io.StringIO()
        with rc_context(STYLE):
            draw_panel(course, panel).savefig(
                written,
                format="svg",
                transparent=True,
                metadata={"Date": None, "Creator": None, "Format": None, "Type": None},
            )
        labels = ", ".join(_one_line(each.label) for each in panel.lines)
        description = f"{panel.title} ({panel.ylabel}) over the time of the run: {labels}"
        drawn = picture(written.getvalue(), f"{name}-{number}", description, VARIABLES)
        yield RunPicture(panel.title, drawn)


def draw_panel(course: Course, panel: Panel) -> Figure:
    """Draw the figure of one panel in placeholder colours."""
    width, height = SIZE_INCHES
    if panel.is_map:
        height = min(max(height, ROW_INCHES * len(panel.lines) + 1.4), HIGHEST_INCHES)
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasSVG(figure)
    axes = figure.subplots()
    end_us = float(course.series["time_us"][-1])
    time_us, unit = unit_of_time(end_us)
    if panel.is_map:
        _draw_map(figure, axes, course, panel, time_us)
    else:
        _draw_lines(figure, axes, course, panel, time_us)
    # Above its axis there is space for the whole label, which then need not be rotated.
    axes.set_title(_one_line(panel.ylabel), fontsize="medium", pad=7.0)
    axes.set_xlabel(f"time ({unit})")
    axes.set_xlim(0, end_us / time_us if end_us > 0 else 1)
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.xaxis.set_major_formatter(FuncFormatter(write_tick))
    return figure


def _draw_lines(figure: Figure, axes: Axes, course: Course, panel: Panel, time_us: float) -> None:
    colours = zip(cycle(SERIES), cycle(DASHES), strict=False)
    for (name, label, unit), (colour, dash) in zip(panel.lines, colours, strict=False):
        line(axes, course.series, name, unit, _one_line(label), colour, dash, time_us)
    fit_heights(axes, course.series, panel)
    end_us = float(course.series["time_us"][-1])
    shade_faults(axes, course.faults, end_us, dict.fromkeys(FAULT_COLOURS, MUTED), time_us)
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.yaxis.set_major_formatter(FuncFormatter(write_tick))
    if len(panel.lines) > 1:
        _put_legend(figure, *axes.get_legend_handles_labels())


def _put_legend(figure: Figure, handles: Sequence[Artist], labels: list[str]) -> None:
    widest = max(map(len, labels)) + SAMPLE_LETTERS
    columns = max(1, min(len(labels), LEGEND_LETTERS // widest))
    rows = -(-len(labels) // columns)
    figure.legend(
        handles, labels, loc="outside upper left", ncols=-(-len(labels) // rows), handlelength=1.8
    )
    figure.set_figheight(figure.get_figheight() + (rows - 1) * 0.24)


# ------------------------------------------------------------------------- maps of many workers


def _draw_map(figure: Figure, axes: Axes, course: Course, panel: Panel, time_us: float) -> None:
    """Draw the column of each worker as a row of shades."""
    rows = np.array([course.series[each.column] for each in panel.lines]) / panel.lines[0].unit
    edges = np.append(0.0, course.series["time_us"]) / time_us
    highest = float(np.nanmax(rows, initial=0.0)) or 1.0
    shades = np.ceil(np.nan_to_num(rows) / highest * SHADES).astype(np.int64)
    handles: list[Artist] = []
    for shade in range(1, SHADES + 1):
        alpha = shade / SHADES
        boxes = [
            [(start, row - 0.5), (end, row - 0.5), (end, row + 0.5), (start, row + 0.5)]
            for row, cells in enumerate(shades)
            for start, end in _spans(edges, cells == shade)
        ]
        if boxes:
            axes.add_collection(
                PolyCollection(boxes, facecolor=SERIES[0], alpha=alpha, linewidth=0)
            )
        low, high = (highest * each / SHADES for each in (shade - 1, shade))
        handles.append(Patch(label=f"{low:.3g}–{high:.3g}", facecolor=SERIES[0], alpha=alpha))
    axes.set_ylim(-0.5, len(rows) - 0.5)
    axes.grid(visible=False)
    mark_workers(axes, panel, most=round(figure.get_figheight() * 3.2))
    names = [each.label.replace(" ", "-") for each in panel.lines]
    frame_faults(axes, course.faults, names, INK, time_us)
    _put_legend(figure, handles, [str(each.get_label()) for each in handles])


def _spans(edges: FloatArray, chosen: NDArray[np.bool_]) -> Iterator[tuple[float, float]]:
    """Yield the start and end of each run of chosen cells."""
    changes = np.flatnonzero(np.diff(np.concatenate(([False], chosen, [False]))))
    for start, end in changes.reshape(-1, 2):
        yield float(edges[start]), float(edges[end])


def _one_line(label: str) -> str:
    return label.replace("\n", " ")
