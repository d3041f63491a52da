"""What all plots share, as SVG: the same run gives the same bytes.

Rules of this file:

* No global state: figures are built without pyplot, settings hold for one file.
* A figure has a white ground of its own, so that it is readable on a dark page, too. Lines differ
  in more than their colour.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from sim.kernel.distributions import FloatArray

Columns: TypeAlias = Mapping[str, FloatArray]

SECOND_US = 1e6
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


def save(draw: Callable[..., Figure], arguments: Sequence[object], path: Path) -> None:
    """Write the figure that ``draw`` makes of its arguments."""
    with rc_context(SETTINGS):
        draw(*arguments).savefig(path, format="svg", metadata={"Date": None, "Creator": None})


def panels(
    count: int, size: tuple[float, float], title: str, xlabel: str
) -> tuple[Figure, list[Axes]]:
    """A figure with a title and panels below one another that share their x axis."""
    figure = Figure(figsize=size, layout="constrained", facecolor="white")
    FigureCanvasSVG(figure)
    figure.suptitle(title, fontsize=10.0, x=0.01, ha="left")
    axes: list[Axes] = list(figure.subplots(count, 1, sharex=True))
    axes[-1].set_xlabel(xlabel)
    return figure, axes


def over_time(
    draws: Sequence[Callable[[Axes, Columns], None]], height: float, title: str, series: Columns
) -> Figure:
    """A panel for each of some functions that draw columns of a run, from 0 up, with a legend."""
    label = "time since the start of the run (s)"
    figure, axes_below = panels(len(draws), (8.0, height), title, label)
    for draw, axes in zip(draws, axes_below, strict=True):
        draw(axes, series)
        axes.set_ylim(bottom=0)
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def line(
    axes: Axes,
    series: Columns,
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
