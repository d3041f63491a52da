"""A chart as an SVG element of the page, in the page's colours, light or dark.

Rules of this file:

1. Matplotlib draws with placeholder colours; they become variables of the style sheet, so that one
   picture serves both colour schemes.
2. Ids inside a picture begin with the name of the picture because one page has many pictures.
3. Invisible and unused parts are removed: two thirds of Matplotlib's output.
4. The same chart gives the same bytes.
"""

import io
import re
from collections.abc import Mapping, Sequence
from math import log10
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np
from markupsafe import Markup
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

from model.vocabulary.settings import is_number
from sim.report.contents import Chart, Curve, Mark
from sim.report.drawing import SETTINGS
from sim.sweep.experiment import Label

SIZE_INCHES = (5.9, 4.1)
"""Small, so that its letters are readable on a page as narrow as a phone."""
PANEL_INCHES = (4.7, 3.5)
"""Size of a chart that stands beside others."""
COLOURS = 7
INK, MUTED, GRID = "#010101", "#010102", "#010103"
SERIES = tuple(f"#0102{number:02x}" for number in range(COLOURS))
VARIABLES = {INK: "--ink", MUTED: "--muted", GRID: "--rule"} | {
    colour: f"--series-{number}" for number, colour in enumerate(SERIES)
}
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
MARKS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "h", "p")
"""Marks of points; their number differs from that of colours, so that pairs repeat late."""
DASHES = ("-", "--", "-.", ":")
LEVELS_MAX = 9
"""Most levels for which the axis has a tick at each level."""
LETTERS = 7.8
"""Number of letters that fit under one inch of the axis."""
LEGEND_PIXELS, LETTER_PIXELS, SAMPLE_PIXELS, ROW_INCHES = 71, 7.2, 55, 0.24
"""Width of an inch of the legend, of a letter and of the sample before a name; row height."""
NEAR_0 = 0.95
"""An axis begins at 0 unless the least value exceeds this share of the greatest value."""
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


def svg(chart: Chart, name: str, description: str) -> Markup:
    """Return the chart as an element; ``name`` is unique in the page, ``description`` its label."""
    written = io.StringIO()
    with rc_context(STYLE):
        draw(chart).savefig(
            written,
            format="svg",
            transparent=True,
            metadata={"Date": None, "Creator": None, "Format": None, "Type": None},
        )
    return picture(written.getvalue(), name, description, VARIABLES)


def draw(chart: Chart) -> Figure:
    """Draw the figure in placeholder colours."""
    figure = Figure(figsize=_size(chart), layout="constrained")
    FigureCanvasSVG(figure)
    axes = figure.subplots()
    axes.set_xlabel(chart.x.label)
    # Above its axis there is space for the whole label, which then need not be rotated.
    axes.set_title(chart.y.label, fontsize="medium", pad=9.0)
    places = _places(chart)
    is_by_name = places is not None
    # A single line needs no name beside that of the axis.
    lines = chart.lines if len(chart.lines) > 1 else [chart.lines[0]._replace(label="here")]
    for number, line in enumerate(lines):
        _draw_line(axes, line, places, _look(number, len(chart.lines), is_by_name))
    for published in chart.published:
        _draw_published(axes, published, places)
    _mark_x(axes, chart, places)
    _mark_y(axes, chart)
    handles, labels = axes.get_legend_handles_labels()
    if len(labels) > 1:
        wide = max(map(len, labels)) * LETTER_PIXELS + SAMPLE_PIXELS
        columns = max(1, min(len(labels), int(LEGEND_PIXELS * figure.get_figwidth() / wide)))
        rows = -(-len(labels) // columns)
        columns = -(-len(labels) // rows)  # rows are as even as can be
        figure.legend(handles, labels, loc="outside upper left", ncols=columns, handlelength=2.2)
        # Further rows of the legend make the figure higher, so that the plot keeps its size.
        figure.set_figheight(figure.get_figheight() + (rows - 1) * ROW_INCHES)
    return figure


def _size(chart: Chart) -> tuple[float, float]:
    return PANEL_INCHES if chart.reach else SIZE_INCHES


def _places(chart: Chart) -> dict[Label, int] | None:
    """Return places of names, or of a single number, on the axis; ``None`` for several numbers."""
    levels = list(dict.fromkeys(point.x for line in chart.lines for point in line.points))
    if len(levels) > 1 and all(is_number(level) for level in levels):
        return None
    return {level: place for place, level in enumerate(levels)}


def _at(x: Label, places: dict[Label, int] | None) -> float:
    return float(x) if places is None else float(places[x])


class Look(NamedTuple):
    """The look that distinguishes a line from others."""

    colour: str
    mark: str
    dash: str
    shift: float
    """Shift to the side, so that marks over the same name lie beside one another."""
    size: float


def _look(number: int, count: int, is_by_name: bool) -> Look:
    colour, mark = SERIES[number % len(SERIES)], MARKS[number % len(MARKS)]
    if is_by_name:
        # Names have no order, so no line joins them.
        return Look(colour, mark, "none", (number - (count - 1) / 2) * 0.6 / count, 1.4)
    # Each line is thinner than the one before, so that a line under another remains visible.
    size = 1.5 - number / (count - 1) / 2 if count > 1 else 1.0
    return Look(colour, mark, DASHES[number // 2 % len(DASHES)], 0.0, size)


def _draw_line(axes: Axes, line: Curve, places: dict[Label, int] | None, look: Look) -> None:
    reach = np.array([[p.estimate - p.low, p.high - p.estimate] for p in line.points]).T
    axes.errorbar(
        [_at(point.x, places) + look.shift for point in line.points],
        [point.estimate for point in line.points],
        # An infinite limit is not drawn.
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
        names = [write_tick(level) if is_number(level) else str(level) for level in places]
        axes.set_xticks(list(places.values()), names)
        if len(names) * max(map(len, names)) > LETTERS * _size(chart)[0]:
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
    axes.xaxis.set_major_formatter(FuncFormatter(write_tick))


def _is_even(levels: Sequence[float]) -> bool:
    """Return whether ticks at every level are far enough apart."""
    gaps = np.diff(levels)
    return len(gaps) == 0 or bool(gaps.min() >= (levels[-1] - levels[0]) / LEVELS_MAX)


def _mark_y(axes: Axes, chart: Chart) -> None:
    low, high = chart.reach or (axes.dataLim.y0, axes.dataLim.y1)
    axes.update_datalim([(axes.dataLim.x0, low), (axes.dataLim.x0, high)])
    axes.autoscale_view(scalex=False)
    if chart.y.is_log and high > 0:
        axes.set_yscale("log")
        low, high = axes.get_ylim()
        if high < 100 * low:
            # Powers of ten alone would leave the axis without numbers.
            axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_minor_formatter(NullFormatter())
    elif low >= 0 < high and not NEAR_0 * high < low < high:
        axes.set_ylim(0, high * 1.08)
    axes.yaxis.set_major_formatter(FuncFormatter(write_tick))


def write_tick(value: float, _: object = None) -> str:
    """Return the number at a tick of an axis."""
    power = log10(value) if value > 0 else 0.0
    if power < -3 and power == round(power):
        return f"10{str(round(power)).translate(RAISED)}"
    return f"{value:,.6g}"


# -------------------------------------------------------------------------- the file of a plot


SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_COLOUR = re.compile(r"#[0-9a-f]{6}\b")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_FAMILY = re.compile(r"font-family: [^;]+; ?")
_NUMBER = re.compile(r"-?\d+\.\d+")
_COMMAND = re.compile(r"\s*([a-zA-Z])\s*")
_UNTURNED = re.compile(r"rotate\(-?0 [^)]*\)")
_UNSEEN = "fill:none"
_PLACES = ("d", "x", "y", "width", "height", "transform", "viewBox")
_Part = ElementTree.Element


def picture(written: str, name: str, description: str, variables: Mapping[str, str]) -> Markup:
    """Return the root element of an SVG file; ``variables`` replace its placeholder colours."""
    root = ElementTree.fromstring(written)
    for part in root.iter():
        part.tag = part.tag.removeprefix(f"{{{SVG}}}")
        part.attrib = {key.removeprefix(f"{{{XLINK}}}"): part.attrib[key] for key in part.attrib}
    known = _names(root, written, name)
    for part in root.iter():
        part.attrib = {
            key: _rewritten(key, value, known, variables)
            for key, value in part.attrib.items()
            if (key != "id" or value in known) and not _UNTURNED.fullmatch(value)
        }
    _share_styles(root)
    (slim,) = _visible(root)
    slim.attrib = {
        "viewBox": root.attrib["viewBox"],
        "role": "img",
        "aria-label": description,
        "class": "plot",
    }
    return Markup(ElementTree.tostring(slim, encoding="unicode"))


def _names(root: _Part, written: str, name: str) -> dict[str, str]:
    """Return a new id for each id that is referred to."""
    known = [part.attrib["href"].removeprefix("#") for part in root.iter("use")]
    known += _REFERENCE.findall(written)
    return {old: f"{name}-{number}" for number, old in enumerate(dict.fromkeys(known))}


def _rewritten(key: str, value: str, known: Mapping[str, str], variables: Mapping[str, str]) -> str:
    """Return the value of an attribute as the page needs it."""
    if key == "id":
        return known[value]
    if key == "href":
        return f"#{known[value.removeprefix('#')]}"
    if key == "style":
        value = _COLOUR.sub(lambda found: f"var({variables[found[0]]})", _FAMILY.sub("", value))
        return value.replace("; ", ";").replace(": ", ":")
    if key in _PLACES:
        value = _NUMBER.sub(lambda found: f"{float(found[0]):.2f}".rstrip("0").rstrip("."), value)
        return _COMMAND.sub(r"\1", value).strip() if key == "d" else value
    return _REFERENCE.sub(lambda found: f"url(#{known[found[1]]})", value)


def _share_styles(root: _Part) -> None:
    """Move a style that all uses of a mark share to the mark."""
    marks = {f"#{part.attrib['id']}": part for part in root.iter("path") if "id" in part.attrib}
    uses: dict[str, list[_Part]] = {}
    for use in root.iter("use"):
        uses.setdefault(use.attrib["href"], []).append(use)
    for href, alike in uses.items():
        looks = {use.attrib.get("style", "") for use in alike}
        if len(looks) == 1:
            own = marks[href].attrib.get("style", "")
            marks[href].attrib["style"] = ";".join(filter(None, [*looks, own]))  # the last holds
            for use in alike:
                use.attrib.pop("style", None)


def _visible(part: _Part) -> list[_Part]:
    """Return the visible rest of a part: itself, its children, or nothing."""
    # A style sheet in a picture would apply to the whole page.
    if part.tag in ("style", "metadata") or part.attrib.get("style") == _UNSEEN:
        return []
    part[:] = _merged([each for child in part for each in _visible(child)])
    part.tail = None
    if part.tag != "text":
        part.text = None
    if part.tag in ("g", "defs") and len(part) == 0:
        return []
    if part.tag == "path" and not part.attrib.get("d"):  # outside of the visible area
        return []
    return list(part) if part.tag == "g" and not part.attrib else [part]


def _merged(parts: list[_Part]) -> list[_Part]:
    """Join neighbouring paths with the same style, such as the intervals of a line."""
    merged: list[_Part] = []
    for part in parts:
        last = merged[-1] if merged else None
        if (
            last is not None
            and part.tag == "path"
            and _style_of(last) == _style_of(part) is not None
        ):
            last.attrib["d"] += part.attrib["d"]
        else:
            merged.append(part)
    return merged


def _style_of(part: _Part) -> dict[str, str] | None:
    """Return all attributes of a path except its ``d``; ``None`` if others may refer to it."""
    if part.tag != "path" or "id" in part.attrib:
        return None
    return {key: value for key, value in part.attrib.items() if key != "d"}
