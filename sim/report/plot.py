"""A chart as SVG that lies in the page and wears its colours, light or dark.

Rules of this file:

1. A picture is drawn with stand-ins for colours, which are not those that are seen.
2. The same chart gives the same bytes.
"""

import io
import re
from collections.abc import Mapping, Sequence
from math import log10
from typing import NamedTuple, TypeGuard
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

from sim.report.contents import Chart, Curve, Mark
from sim.report.drawing import SETTINGS
from sim.sweep.experiment import Label

SIZE_INCHES = (5.9, 4.1)
"""Small, so that its letters can be read where the page is as narrow as a phone."""
PANEL_INCHES = (4.7, 3.5)
"""Of one of several side by side."""
COLOURS = 7
INK, MUTED, GRID = "#010101", "#010102", "#010103"
SERIES = tuple(f"#0102{number:02x}" for number in range(COLOURS))
VARIABLES = {INK: "--ink", MUTED: "--muted", GRID: "--rule"} | {
    colour: f"--series-{number}" for number, colour in enumerate(SERIES)
}
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
MARKS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "h", "p")
"""Not as many as colours, so that both come together again as late as possible."""
DASHES = ("-", "--", "-.", ":")
LEVELS_MAX = 9
"""Where there are no more, the axis is marked at each of them."""
LETTERS = 7.8
"""That fit beside one another under an inch of the axis."""
LEGEND_PIXELS, LETTER_PIXELS, SAMPLE_PIXELS, ROW_INCHES = 71, 7.2, 55, 0.24
"""Of an inch of the legend, of a letter in it and of what stands before a name; height of a row."""
NEAR_0 = 0.95
"""An axis begins at 0 unless the least value is more than so much of the greatest one."""
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
    """The chart as an element; ``name`` must be unique in the page, ``description`` is read out."""
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
    """The figure, in colours that only stand for others."""
    figure = Figure(figsize=_size(chart), layout="constrained")
    FigureCanvasSVG(figure)
    axes = figure.subplots()
    axes.set_xlabel(chart.x.label)
    # Above its axis, where there is room for all of it, and nobody has to turn the head.
    axes.set_title(chart.y.label, fontsize="medium", pad=9.0)
    places = _places(chart)
    is_by_name = places is not None
    # A line by itself is what the axis says.
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
        # The more rows it has, the higher the figure, so that the plot keeps its size.
        figure.set_figheight(figure.get_figheight() + (rows - 1) * ROW_INCHES)
    return figure


def _size(chart: Chart) -> tuple[float, float]:
    return PANEL_INCHES if chart.reach else SIZE_INCHES


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
        return Look(colour, mark, "none", (number - (count - 1) / 2) * 0.6 / count, 1.4)
    # Thinner and thinner, so that of lines that lie on one another the lower one is seen, too.
    size = 1.5 - number / (count - 1) / 2 if count > 1 else 1.0
    return Look(colour, mark, DASHES[number // 2 % len(DASHES)], 0.0, size)


def _draw_line(axes: Axes, line: Curve, places: dict[Label, int] | None, look: Look) -> None:
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
    axes.xaxis.set_major_formatter(FuncFormatter(_number))


def _is_even(levels: Sequence[float]) -> bool:
    """Whether marks at every level keep clear of one another."""
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
    axes.yaxis.set_major_formatter(FuncFormatter(_number))


def _number(value: float, _: object = None) -> str:
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
    """The root element of an SVG file; ``variables`` are those of its colours."""
    root = ElementTree.fromstring(written)
    for part in root.iter():
        part.tag = part.tag.removeprefix(f"{{{SVG}}}")
        part.attrib = {key.removeprefix(f"{{{XLINK}}}"): part.attrib[key] for key in part.attrib}
    known = _names(root, written, name)
    for part in root.iter():
        part.attrib = {
            key: _at_home(key, value, known, variables)
            for key, value in part.attrib.items()
            if (key != "id" or value in known) and not _UNTURNED.fullmatch(value)
        }
    _dress(root)
    (slim,) = _slimmed(root)
    slim.attrib = {
        "viewBox": root.attrib["viewBox"],
        "role": "img",
        "aria-label": description,
        "class": "plot",
    }
    return Markup(ElementTree.tostring(slim, encoding="unicode"))


def _names(root: _Part, written: str, name: str) -> dict[str, str]:
    """New names of all parts that others refer to."""
    known = [part.attrib["href"].removeprefix("#") for part in root.iter("use")]
    known += _REFERENCE.findall(written)
    return {old: f"{name}-{number}" for number, old in enumerate(dict.fromkeys(known))}


def _at_home(key: str, value: str, known: Mapping[str, str], variables: Mapping[str, str]) -> str:
    """An attribute as it is in the page."""
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


def _dress(root: _Part) -> None:
    """Where all uses of a mark look the same, the mark says so, and not each of them."""
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


def _slimmed(part: _Part) -> list[_Part]:
    """What there is to see of a part: itself, what is in it, or nothing."""
    # A style sheet in a picture would hold for the page.
    if part.tag in ("style", "metadata") or part.attrib.get("style") == _UNSEEN:
        return []
    part[:] = _merged([each for child in part for each in _slimmed(child)])
    part.tail = None
    if part.tag != "text":
        part.text = None
    if part.tag in ("g", "defs") and len(part) == 0:
        return []
    if part.tag == "path" and not part.attrib.get("d"):  # outside of what is shown
        return []
    return list(part) if part.tag == "g" and not part.attrib else [part]


def _merged(parts: list[_Part]) -> list[_Part]:
    """Neighbouring paths that are drawn in the same way, such as intervals of a line, are one."""
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
    """All attributes of a path but its way, if others do not refer to it."""
    if part.tag != "path" or "id" in part.attrib:
        return None
    return {key: value for key, value in part.attrib.items() if key != "d"}
