"""Entries of a report, read from the records and tables that a sweep has stored.

docs/sweeps.md has the format. The caller reads Parquet files and passes their columns.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import isfinite
from typing import NamedTuple, TypeAlias

from model.checking.claims import Outcome
from model.vocabulary.settings import JsonObject
from sim.report.contents import (
    Axis,
    Chart,
    Curve,
    Entry,
    Failure,
    Mark,
    NumbersTable,
    Point,
    ReportedCell,
    ReportedFinding,
)
from sim.report.words import (
    NO_NAMES,
    Names,
    Unit,
    format_number,
    levels_in_words,
    name_in_sentence,
    readable_name,
    unit_of,
    values_in_words,
    with_limits,
)
from sim.sweep.experiment import Label, Reproduction
from sim.sweep.jobs import Figure
from sim.sweep.statistics import mean_interval

Columns: TypeAlias = Mapping[str, Sequence[Figure]]
"""A table of results, by column."""
Key: TypeAlias = tuple[Label, ...]
"""A combination of levels, one of each factor."""
CHARTS_MAX = 12
"""Most charts of an experiment; further combinations of levels have numbers only."""


def entry_of(record: JsonObject, columns: Columns) -> Entry:
    """Return the entry of an experiment from its record and its table of results.

    Raise ``ValueError``, ``KeyError`` or ``TypeError`` for other data.
    """
    rows = len(columns["run"])
    if rows != record["rows"]:
        msg = f"its table has {rows:,} rows; its record says {record['rows']:,}"
        raise ValueError(msg)
    about = record["experiment"]
    source, published = about["source"], about["published"]
    verdict, expectations = record["verdict"], record["expectations"]
    if verdict is not None and verdict not in {each["verdict"] for each in expectations}:
        msg = f"its verdict {verdict!r} belongs to none of its expectations"
        raise ValueError(msg)
    charts, undrawn = charts_of(record, columns)
    return Entry(
        name=str(about["name"]),
        room=str(about["room"]),
        run=str(about["run"]),
        title=str(about["title"]),
        claim=about["claim"] or "",
        source=f"{source['paper']}, {source['where']}" if source else "",
        published=published["says"] if published else "",
        numbers=_numbers(record, published),
        verdict=None if verdict is None else Reproduction(verdict),
        outcome=Outcome(record["outcome"]),
        findings=tuple(finding_of(each, names_of(record)) for each in expectations),
        charts=charts,
        undrawn=undrawn,
        table=table_of(record, columns),
        base=record["base"],
        factors={
            name: tuple((level["label"], level["settings"]) for level in levels)
            for name, levels in record["factors"].items()
        },
        seeds=tuple(record["seeds"]),
        confidence=float(about["confidence"]),
        runs=rows,
        problems=tuple(record["problems"]),
        failures=tuple(Failure(*map(each.get, Failure._fields)) for each in record["failed"]),
        effort=str(record["effort"]),
        code=str(record["code"]),
        again=str(record["again"]),
    )


def _numbers(record: JsonObject, published: JsonObject | None) -> str:
    values = (published or {}).get("values") or {}
    return values_in_words(values, names_of(record))


# ------------------------------------------------------------------------------------ findings


def finding_of(record: JsonObject, names: Names = NO_NAMES) -> ReportedFinding:
    """Return what the report says of an expectation, from the expectation's record."""
    unit = _unit(record)
    cells = (
        ReportedCell(
            levels_in_words(each["label"], names), _number(each, unit), Outcome(each["outcome"])
        )
        for each in record["cells"]
    )
    return ReportedFinding(
        record["says"],
        Reproduction(record["verdict"]),
        record["assumptions"] or "",
        Outcome(record["outcome"]),
        _sentence(record, unit, names),
        tuple(cells),
    )


def _unit(record: JsonObject) -> Unit:
    """Return the unit of the measure; a ratio has none."""
    known = [cell["estimate"] for cell in record["cells"] if cell["estimate"] is not None]
    return Unit("") if record["compare"] == "ratio" else unit_of(record["measure"], known)


def _number(cell: JsonObject, unit: Unit) -> str:
    if cell["estimate"] is None:
        return "not known"
    return with_limits(cell["estimate"], cell["low"], cell["high"], unit)


def _sentence(record: JsonObject, unit: Unit, names: Names) -> str:
    """Describe the range of the cells that are as expected, or the first cell that is not."""
    cells = record["cells"]
    decisive = [cell for cell in cells if cell["outcome"] == record["outcome"]] or cells
    known = [cell for cell in decisive if cell["estimate"] is not None]
    if not known:
        return str(record["sentence"])
    name = name_in_sentence(record["measure"], names)
    if record["compare"] or record["along"]:
        name = f"{record['compare'] or 'change'} of {name}"
    if record["outcome"] == str(Outcome.HOLDS) and len(known) > 1:
        estimates = [cell["estimate"] / unit.size for cell in known]
        low, high = format_number(min(estimates)), format_number(max(estimates))
        said = low if low == high else f"{low} to {high}"
        return f"{name} {said}{unit.symbol}, in {len(known)} of {len(cells)} cases"
    where = f", {levels_in_words(known[0]['label'], names)}" if known[0]["label"] else ""
    return f"{name} {_number(known[0], unit)}{where}"


# ------------------------------------------------------------------------------------ measures


class SeedMean(NamedTuple):
    """A measure at one combination of levels: mean and confidence limits over its seeds."""

    estimate: float
    low: float
    high: float
    seeds: int


def names_of(record: JsonObject) -> Names:
    """Return the readable names in a record; records of earlier sweeps have none."""
    return record["experiment"].get("labels") or {}


def levels_of(record: JsonObject) -> dict[str, list[Label]]:
    """Return the names of the levels of each factor, in the order of the grid."""
    return {
        name: [level["label"] for level in levels] for name, levels in record["factors"].items()
    }


def seed_means(record: JsonObject, columns: Columns, measure: str) -> dict[Key, SeedMean]:
    """Return the means of a measure at every combination of levels that has a number."""
    found: dict[Key, list[float]] = {}
    rows = zip(*(columns[factor] for factor in record["factors"]), columns[measure], strict=True)
    for *key, value in rows:
        if isinstance(value, int | float) and not isinstance(value, bool):
            found.setdefault(tuple(key), []).append(float(value))
    confidence = record["experiment"]["confidence"]
    return {key: _mean(values, confidence) for key, values in found.items()}


def _mean(values: Sequence[float], confidence: float) -> SeedMean:
    if len(values) == 1:
        return SeedMean(values[0], values[0], values[0], 1)
    mean = mean_interval(values, confidence)
    return SeedMean(mean.estimate, mean.low, mean.high, len(values))


def measure_unit(measure: str, found: Mapping[Key, SeedMean], names: Names) -> Unit:
    """Choose the unit of a measure."""
    return unit_of(measure, [each.estimate for each in found.values()], names)


def level_unit(factor: str, levels: Sequence[Label], names: Names) -> Unit:
    """Choose the unit of the levels of a factor."""
    return unit_of(factor, [level for level in levels if not isinstance(level, str)], names)


def scaled(level: Label, unit: Unit) -> Label:
    """Return a numeric level as a multiple of ``unit``, or a level that is a name, unchanged."""
    return level if isinstance(level, str) else level / unit.size


def level_text(level: Label, unit: Unit) -> str:
    """Return a level in its unit as text, without the unit."""
    return level if isinstance(level, str) else format_number(level / unit.size)


def table_of(record: JsonObject, columns: Columns) -> NumbersTable:
    """Return a table: a row per combination of levels, a column per numeric measure."""
    levels, readable = levels_of(record), names_of(record)
    numbers = [name for name in record["measures"] if not _is_text(columns[name])]
    found = {name: seed_means(record, columns, name) for name in numbers}
    level_units = [level_unit(*each, readable) for each in levels.items()]
    units = [measure_unit(*each, readable) for each in found.items()]
    rows = []
    for key in product(*levels.values()):
        here = [each.get(key) for each in found.values()]
        seeds = max((each.seeds for each in here if each is not None), default=0)
        names = map(level_text, key, level_units)
        rows.append((*names, *map(_cell, here, units), str(seeds)))
    header = (*(unit.label for unit in [*level_units, *units]), "seeds")
    return NumbersTable(header, tuple(rows), len(levels))


def _is_text(column: Sequence[Figure]) -> bool:
    return any(isinstance(value, str) for value in column)


def _cell(found: SeedMean | None, unit: Unit) -> str:
    # The heading has the unit.
    return "" if found is None else with_limits(*found[:3], Unit("", size=unit.size))


# -------------------------------------------------------------------------------------- charts


class _Plot(NamedTuple):
    """The measure to draw, its axis, its series and its numbers."""

    x: str
    y: str
    series: str | None
    levels: Mapping[str, Sequence[Label]]
    """Levels to draw, for every factor."""
    found: Mapping[Key, SeedMean]
    x_unit: Unit
    y_unit: Unit
    names: Names


def charts_of(record: JsonObject, columns: Columns) -> tuple[tuple[Chart, ...], int]:
    """Return the charts of an experiment, and the number of charts beyond the limit.

    There is one chart for every combination of levels of the factors that are neither axis nor
    series.
    """
    declared = record["experiment"]["plot"]
    if not declared:
        return (), 0
    plot = _plot(record, columns, declared)
    log = declared["log"] or ()
    published = ((record["experiment"]["published"] or {}).get("values") or {}).get(plot.y)
    others = [name for name in plot.levels if name not in (plot.x, plot.series)]
    charts = []
    for fixed in product(*(plot.levels[name] for name in others)):
        here = dict(zip(others, fixed, strict=True))
        lines = tuple(line for line in _lines(plot, here) if line.points)
        if lines:
            chart = Chart(
                ", ".join(_level_name(plot, name, level) for name, level in here.items()),
                Axis(plot.x_unit.label, "x" in log),
                Axis(plot.y_unit.label, "y" in log),
                lines,
                tuple(_marks(plot, published)),
            )
            charts.append(chart)
    drawn = charts[:CHARTS_MAX]
    return tuple(_side_by_side(drawn)), len(charts) - len(drawn)


def _plot(record: JsonObject, columns: Columns, declared: JsonObject) -> _Plot:
    x, y, names = declared["x"], declared["y"], names_of(record)
    where = declared.get("where") or {}
    levels = {
        name: [level for level in known if level in where.get(name, known)]
        for name, known in levels_of(record).items()
    }
    found = seed_means(record, columns, y)
    units = level_unit(x, levels[x], names), measure_unit(y, found, names)
    return _Plot(x, y, declared["series"] or None, levels, found, *units, names)


def _side_by_side(charts: Sequence[Chart]) -> Iterator[Chart]:
    """Give all charts the same range of ``y``, so that they can be compared."""
    if len(charts) < 2:
        yield from charts
        return
    points = [point for chart in charts for line in chart.lines for point in line.points]
    seen = [value for point in points for value in point[1:] if isfinite(value)]
    for mark in charts[0].published:
        seen += [y for _, y in mark.points] if mark.level is None else [mark.level]
    for chart in charts:
        yield chart._replace(reach=(min(seen), max(seen)))


def _level_name(plot: _Plot, factor: str, level: Label) -> str:
    unit = level_unit(factor, plot.levels[factor], plot.names)
    return f"{name_in_sentence(factor, plot.names)} {level_text(level, unit)}{unit.symbol}"


def _lines(plot: _Plot, here: Mapping[str, Label]) -> Iterator[Curve]:
    if plot.series is None:
        yield Curve(readable_name(plot.y, plot.names), tuple(_points(plot, here)))
        return
    for level in plot.levels[plot.series]:
        # A number alone would not name its factor.
        is_name = isinstance(level, str) and not level.isdecimal()
        label = level if is_name else _level_name(plot, plot.series, level)
        yield Curve(str(label), tuple(_points(plot, {**here, plot.series: level})))


def _points(plot: _Plot, here: Mapping[str, Label]) -> Iterator[Point]:
    for x in plot.levels[plot.x]:
        at = {**here, plot.x: x}
        found = plot.found.get(tuple(at[name] for name in plot.levels))
        if found is not None:
            estimate, low, high = (value / plot.y_unit.size for value in found[:3])
            yield Point(scaled(x, plot.x_unit), estimate, low, high)


def _marks(plot: _Plot, published: object) -> Iterator[Mark]:
    """Yield published numbers of the measure: one for all levels of x, or one per level."""
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
