"""Charts of an experiment, as its ``plot`` asks for."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import isfinite
from typing import Any, NamedTuple

from sim.report.contents import Axis, Chart, Line, Mark, Point
from sim.report.numbers import (
    Columns,
    Key,
    Measured,
    level_text,
    level_unit,
    levels_of,
    measure_unit,
    measured,
    names_of,
    scaled,
)
from sim.report.words import Names, Unit, in_words, spoken
from sim.sweep.experiment import Label

CHARTS_MAX = 12
"""For levels of factors that are neither axis nor series; beyond, there are only numbers."""


class _Plot(NamedTuple):
    """What is drawn, over what."""

    x: str
    y: str
    series: str | None
    levels: Mapping[str, Sequence[Label]]
    """Those that are drawn, of all factors."""
    found: Mapping[Key, Measured]
    x_unit: Unit
    y_unit: Unit
    names: Names


def charts_of(record: Mapping[str, Any], columns: Columns) -> tuple[tuple[Chart, ...], int]:
    """One, or one for every combination of levels of factors that one does not show.

    The second is how many combinations are too many to be drawn.
    """
    asked = record["experiment"]["plot"]
    if not asked:
        return (), 0
    plot = _plot(record, columns, asked)
    log = asked["log"] or ()
    published = ((record["experiment"]["published"] or {}).get("values") or {}).get(plot.y)
    others = [name for name in plot.levels if name not in (plot.x, plot.series)]
    charts = []
    for fixed in product(*(plot.levels[name] for name in others)):
        here = dict(zip(others, fixed, strict=True))
        lines = tuple(line for line in _lines(plot, here) if line.points)
        if lines:
            chart = Chart(
                ", ".join(_named(plot, name, level) for name, level in here.items()),
                Axis(plot.x_unit.label, "x" in log),
                Axis(plot.y_unit.label, "y" in log),
                lines,
                tuple(_marks(plot, published)),
            )
            charts.append(chart)
    drawn = charts[:CHARTS_MAX]
    return tuple(_side_by_side(drawn)), len(charts) - len(drawn)


def _plot(record: Mapping[str, Any], columns: Columns, asked: Mapping[str, Any]) -> _Plot:
    x, y, names = asked["x"], asked["y"], names_of(record)
    where = asked.get("where") or {}
    levels = {
        name: [level for level in known if level in where.get(name, known)]
        for name, known in levels_of(record).items()
    }
    found = measured(record, columns, y)
    units = level_unit(x, levels[x], names), measure_unit(y, found, names)
    return _Plot(x, y, asked["series"] or None, levels, found, *units, names)


def _side_by_side(charts: Sequence[Chart]) -> Iterator[Chart]:
    """Several show the same part of the axis, so that they can be compared."""
    if len(charts) < 2:
        yield from charts
        return
    points = [point for chart in charts for line in chart.lines for point in line.points]
    seen = [value for point in points for value in point[1:] if isfinite(value)]
    for mark in charts[0].published:
        seen += [y for _, y in mark.points] if mark.level is None else [mark.level]
    for chart in charts:
        yield chart._replace(reach=(min(seen), max(seen)))


def _named(plot: _Plot, factor: str, level: Label) -> str:
    unit = level_unit(factor, plot.levels[factor], plot.names)
    return f"{spoken(factor, plot.names)} {level_text(level, unit)}{unit.symbol}"


def _lines(plot: _Plot, here: Mapping[str, Label]) -> Iterator[Line]:
    if plot.series is None:
        yield Line(in_words(plot.y, plot.names), tuple(_points(plot, here)))
        return
    for level in plot.levels[plot.series]:
        # A number by itself would not say of what.
        is_name = isinstance(level, str) and not level.isdecimal()
        label = level if is_name else _named(plot, plot.series, level)
        yield Line(str(label), tuple(_points(plot, {**here, plot.series: level})))


def _points(plot: _Plot, here: Mapping[str, Label]) -> Iterator[Point]:
    for x in plot.levels[plot.x]:
        at = {**here, plot.x: x}
        found = plot.found.get(tuple(at[name] for name in plot.levels))
        if found is not None:
            estimate, low, high = (value / plot.y_unit.size for value in found[:3])
            yield Point(scaled(x, plot.x_unit), estimate, low, high)


def _marks(plot: _Plot, published: Any) -> Iterator[Mark]:
    """Published numbers of the measure: one for all places, or one a place."""
    levels = plot.levels[plot.x]
    if isinstance(published, list) and len(published) == len(levels):
        published = dict(zip(map(str, levels), published, strict=True))
    if isinstance(published, int | float):
        yield Mark("published", level=published / plot.y_unit.size)
    elif isinstance(published, dict):
        points = (
            (scaled(level, plot.x_unit), published[str(level)] / plot.y_unit.size)
            for level in levels
            if isinstance(published.get(str(level)), int | float)
        )
        yield Mark("published", tuple(points))
