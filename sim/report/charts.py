"""Charts of an experiment, as its ``plot`` asks for."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
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
    scaled,
)
from sim.report.words import Unit, in_words
from sim.sweep.experiment import Label

CHARTS_MAX = 6
"""For levels of factors that are neither axis nor series; beyond, there are only numbers."""


class _Plot(NamedTuple):
    """What is drawn, over what."""

    x: str
    y: str
    series: str | None
    levels: Mapping[str, Sequence[Label]]
    """Of all factors."""
    found: Mapping[Key, Measured]
    x_unit: Unit
    y_unit: Unit


def charts_of(record: Mapping[str, Any], columns: Columns) -> Iterator[Chart]:
    """One, or one for every combination of levels of factors that one does not show."""
    asked = record["experiment"]["plot"]
    if not asked:
        return
    x, y, levels = asked["x"], asked["y"], levels_of(record)
    found = measured(record, columns, y)
    plot = _Plot(
        x,
        y,
        asked["series"] or None,
        levels,
        found,
        level_unit(x, levels[x]),
        measure_unit(y, found),
    )
    log = asked["log"] or ()
    published = ((record["experiment"]["published"] or {}).get("values") or {}).get(y)
    others = [name for name in levels if name not in (plot.x, plot.series)]
    for fixed in list(product(*(levels[name] for name in others)))[:CHARTS_MAX]:
        here = dict(zip(others, fixed, strict=True))
        lines = tuple(line for line in _lines(plot, here) if line.points)
        if lines:
            yield Chart(
                ", ".join(_named(name, level, levels) for name, level in here.items()),
                Axis(plot.x_unit.label, "x" in log),
                Axis(plot.y_unit.label, "y" in log),
                lines,
                tuple(_marks(plot, published)),
            )


def _named(factor: str, level: Label, levels: Mapping[str, Sequence[Label]]) -> str:
    unit = level_unit(factor, levels[factor])
    return f"{in_words(factor)} {level_text(level, unit)}{unit.symbol}"


def _lines(plot: _Plot, here: Mapping[str, Label]) -> Iterator[Line]:
    if plot.series is None:
        yield Line(in_words(plot.y), tuple(_points(plot, here)))
        return
    for level in plot.levels[plot.series]:
        # A number by itself would not say of what.
        is_name = isinstance(level, str)
        label = level if is_name else _named(plot.series, level, plot.levels)
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
