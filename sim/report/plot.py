"""A chart as SVG that lies in the page and wears its colours, light or dark.

Rules of this file:

1. A picture is drawn with stand-ins for colours; afterwards each becomes a variable of the style
   sheet, so that one picture serves both schemes.
2. Names inside a picture begin with the name of the picture: many lie in one page.
3. The same chart gives the same bytes.
"""

import io
import re
from collections.abc import Sequence
from typing import NamedTuple, TypeGuard
from xml.etree import ElementTree

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import (
    FixedLocator,
    FuncFormatter,
    LogLocator,
    MaxNLocator,
    NullFormatter,
    NullLocator,
)

from sim.drawing import SETTINGS
from sim.report.contents import Chart, Line, Mark
from sim.report.markup import Markup
from sim.sweep.experiment import Label

SIZE_INCHES = (5.9, 3.9)
"""Small, so that its letters can be read where the page is as narrow as a phone."""
COLOURS = 7
INK, MUTED, GRID = "#010101", "#010102", "#010103"
SERIES = tuple(f"#0102{number:02x}" for number in range(COLOURS))
VARIABLES = {INK: "--ink", MUTED: "--muted", GRID: "--rule"} | {
    colour: f"--series-{number}" for number, colour in enumerate(SERIES)
}
MARKS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "h", "p")
"""Not as many as colours, so that both come together again as late as possible."""
DASHES = ("-", "--", "-.", ":")
LEVELS_MAX = 9
"""Where there are no more, the axis is marked at each of them."""
LETTERS = 46
"""That fit beside one another under the axis."""
LEGEND_PIXELS, LETTER_PIXELS, SAMPLE_PIXELS, ROW_INCHES = 420, 7.2, 55, 0.24
"""Width of the legend, of a letter in it and of what stands before a name; height of a row."""
STYLE = {
    **SETTINGS,
    "font.size": 12.0,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "lines.linewidth": 1.6,
}
SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_COLOUR = re.compile(r"#[0-9a-f]{6}\b")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_FAMILY = re.compile(r"font-family: [^;]+; ?")


def svg(chart: Chart, name: str, description: str) -> Markup:
    """The chart as an element; ``name`` must be unique in the page, ``description`` is read out."""
    written = io.StringIO()
    with rc_context(STYLE):
        draw(chart).savefig(
            written,
            format="svg",
            transparent=True,
            metadata={"Date": None, "Creator": None, "Format": None, "Type": None},
        )
    return _at_home(written.getvalue(), name, description)


def draw(chart: Chart) -> Figure:
    """The figure, in colours that only stand for others."""
    figure = Figure(figsize=SIZE_INCHES, layout="constrained")
    FigureCanvasSVG(figure)
    axes = figure.subplots()
    axes.set_xlabel(chart.x.label)
    axes.set_ylabel(chart.y.label)
    places = _places(chart)
    is_by_name = places is not None
    for number, line in enumerate(chart.lines):
        _draw_line(axes, line, places, _look(number, len(chart.lines), is_by_name))
    for published in chart.published:
        _draw_published(axes, published, places)
    _mark_x(axes, chart, places)
    _mark_y(axes, chart)
    handles, labels = axes.get_legend_handles_labels()
    if len(labels) > 1:
        wide = max(map(len, labels)) * LETTER_PIXELS + SAMPLE_PIXELS
        columns = max(1, min(len(labels), int(LEGEND_PIXELS / wide)))
        figure.legend(handles, labels, loc="outside upper left", ncols=columns, handlelength=2.2)
        # The more rows it has, the higher the figure, so that the plot keeps its size.
        rows = -(-len(labels) // columns)
        figure.set_figheight(figure.get_figheight() + (rows - 1) * ROW_INCHES)
    return figure


def _places(chart: Chart) -> dict[Label, int] | None:
    """Where names stand along the axis, or a number by itself; ``None`` where there are more."""
    levels = list(dict.fromkeys(point.x for line in chart.lines for point in line.points))
    if len(levels) > 1 and all(_is_number(level) for level in levels):
        return None
    return {level: place for place, level in enumerate(levels)}


def _is_number(level: Label) -> TypeGuard[int | float]:
    return isinstance(level, int | float) and not isinstance(level, bool)


def _at(x: Label, places: dict[Label, int] | None) -> float:
    return float(x) if places is None else float(places[x])


class Look(NamedTuple):
    """What a line has that others have not."""

    colour: str
    mark: str
    dash: str
    shift: float
    """To the side, so that marks over the same name lie beside one another."""
    size: float


def _look(number: int, count: int, is_by_name: bool) -> Look:
    colour, mark = SERIES[number % len(SERIES)], MARKS[number % len(MARKS)]
    if is_by_name:
        # Names have no order, so that no line leads from one to the next.
        return Look(colour, mark, "none", (number - (count - 1) / 2) * 0.6 / count, 1.0)
    # Thinner and thinner, so that of lines that lie on one another the lower one is seen, too.
    size = 1.5 - number / (count - 1) / 2 if count > 1 else 1.0
    return Look(colour, mark, DASHES[number // 2 % len(DASHES)], 0.0, size)


def _draw_line(axes: Axes, line: Line, places: dict[Label, int] | None, look: Look) -> None:
    reach = np.array([[p.estimate - p.low, p.high - p.estimate] for p in line.points]).T
    axes.errorbar(
        [_at(point.x, places) + look.shift for point in line.points],
        [point.estimate for point in line.points],
        # A limit may be infinite: then there is nothing to draw.
        yerr=np.where(np.isfinite(reach), np.maximum(reach, 0), 0),
        label=line.label,
        color=look.colour,
        marker=look.mark,
        linestyle=look.dash,
        linewidth=1.6 * look.size,
        markersize=5.5 * look.size,
        capsize=2.5,
        elinewidth=1.2,
    )


def _draw_published(axes: Axes, mark: Mark, places: dict[Label, int] | None) -> None:
    if mark.level is not None:
        axes.axhline(mark.level, color=INK, linestyle=":", label=mark.label)
        return
    known = [(x, y) for x, y in mark.points if places is None or x in places]
    shift = 0.0 if places is None else -0.36  # to the left of ours
    axes.plot(
        [_at(x, places) + shift for x, _ in known],
        [y for _, y in known],
        color=INK,
        linestyle=":" if places is None else "none",
        marker="*",
        markersize=9.0,
        markerfacecolor="none",
        label=mark.label,
    )


def _mark_x(axes: Axes, chart: Chart, places: dict[Label, int] | None) -> None:
    axes.margins(x=0.06, y=0.08)
    if places is not None:
        axes.set_xlim(-0.6, len(places) - 0.4)
        axes.xaxis.grid(visible=False)
        names = [_number(level) if _is_number(level) else str(level) for level in places]
        axes.set_xticks(list(places.values()), names)
        if len(names) * max(map(len, names)) > LETTERS:
            for text in axes.get_xticklabels():
                text.set(rotation=40, ha="right", rotation_mode="anchor")
        return
    if chart.x.is_log:
        axes.set_xscale("log")
    levels = sorted({float(point.x) for line in chart.lines for point in line.points})
    if len(levels) <= LEVELS_MAX and (chart.x.is_log or _is_even(levels)):
        axes.xaxis.set_major_locator(FixedLocator(levels))
        axes.xaxis.set_minor_locator(NullLocator())
    elif not chart.x.is_log:
        axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.xaxis.set_major_formatter(FuncFormatter(_number))


def _is_even(levels: Sequence[float]) -> bool:
    """Whether marks at every level keep clear of one another."""
    gaps = np.diff(levels)
    return len(gaps) == 0 or bool(gaps.min() >= (levels[-1] - levels[0]) / LEVELS_MAX)


def _mark_y(axes: Axes, chart: Chart) -> None:
    if chart.y.is_log:
        axes.set_yscale("log")
        low, high = axes.get_ylim()
        if high < 100 * low:
            # Powers of ten alone would leave the axis without numbers.
            axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_minor_formatter(NullFormatter())
    elif axes.dataLim.y0 >= 0 < axes.dataLim.y1:
        axes.set_ylim(0, axes.dataLim.y1 * 1.08)
    axes.yaxis.set_major_formatter(FuncFormatter(_number))


def _number(value: float, _: object = None) -> str:
    return f"{value:,.6g}"


# -------------------------------------------------------------------------------- into the page


def _at_home(written: str, name: str, description: str) -> Markup:
    """The root element, with names of its own and the colours of the page."""
    root = ElementTree.fromstring(written)
    for parent in list(root.iter()):
        for child in list(parent):
            # A style sheet in a picture would hold for the page.
            if child.tag in (f"{{{SVG}}}style", f"{{{SVG}}}metadata"):
                parent.remove(child)
    for part in root.iter():
        part.tag = part.tag.removeprefix(f"{{{SVG}}}")
        part.attrib = {
            key.removeprefix(f"{{{XLINK}}}"): _renamed(key, value, name)
            for key, value in part.attrib.items()
        }
    root.attrib = {
        "viewBox": root.attrib["viewBox"],
        "role": "img",
        "aria-label": description,
        "class": "plot",
    }
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def _renamed(key: str, value: str, name: str) -> str:
    if key == "id":
        return f"{name}-{value}"
    if key == f"{{{XLINK}}}href":
        return f"#{name}-{value.removeprefix('#')}"
    value = _REFERENCE.sub(rf"url(#{name}-\1)", value)
    value = _COLOUR.sub(lambda found: f"var({VARIABLES[found[0]]})", value)
    return _FAMILY.sub("", value)
