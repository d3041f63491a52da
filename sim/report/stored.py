"""What a sweep has stored of an experiment, read for a report (docs/sweeps.md has the format).

Parquet is not read here: whoever calls has the columns.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple, TypeAlias

from model.claims import Outcome
from sim.report.contents import (
    Axis,
    Chart,
    Entry,
    Failure,
    Line,
    Mark,
    Point,
    Table,
)
from sim.report.seen import finding_of
from sim.report.words import Unit, in_words, unit_of, with_limits
from sim.statistics import mean_interval
from sim.sweep.experiment import Label, Reproduction

Columns: TypeAlias = Mapping[str, Sequence[Any]]
"""The table of results, by column."""

CHARTS_MAX = 6
"""For levels of factors that are neither axis nor series; beyond, there are only numbers."""


class Measured(NamedTuple):
    """A measure at one combination of levels: mean and confidence limits over its seeds."""

    estimate: float
    low: float
    high: float
    seeds: int


Key: TypeAlias = tuple[Label, ...]
"""A combination of levels, one of each factor."""


def entry_of(record: Mapping[str, Any], columns: Columns) -> Entry:
    """An experiment from its record and its table of results.

    Raises ``ValueError``, ``KeyError`` or ``TypeError`` for what is no such thing.
    """
    rows = len(columns["run"])
    if rows != record["rows"]:
        msg = f"its table has {rows:,} rows and not {record['rows']:,}"
        raise ValueError(msg)
    about = record["experiment"]
    source, published = about["source"], about["published"]
    verdict = record["verdict"]
    return Entry(
        name=str(about["name"]),
        room=str(about["room"]),
        run=str(about["run"]),
        title=str(about["title"]),
        claim=about["claim"] or "",
        source=f"{source['paper']}, {source['where']}" if source else "",
        published=published["says"] if published else "",
        values=published["values"] or {} if published else {},
        verdict=None if verdict is None else Reproduction(verdict),
        outcome=Outcome(record["outcome"]),
        findings=tuple(map(finding_of, record["expectations"])),
        charts=tuple(_charts(record, columns)),
        table=_table(record, columns),
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


# -------------------------------------------------------------------------------------- numbers


def _measured(
    columns: Columns, factors: Sequence[str], measure: str, confidence: float
) -> dict[Key, Measured]:
    """A measure at every combination of levels at which there is a number."""
    found: dict[Key, list[float]] = {}
    rows = zip(*(columns[factor] for factor in factors), columns[measure], strict=True)
    for *key, value in rows:
        if isinstance(value, int | float) and not isinstance(value, bool):
            found.setdefault(tuple(key), []).append(float(value))
    return {key: _mean(values, confidence) for key, values in found.items()}


def _mean(values: Sequence[float], confidence: float) -> Measured:
    if len(values) == 1:
        return Measured(values[0], values[0], values[0], 1)
    mean = mean_interval(values, confidence)
    return Measured(mean.estimate, mean.low, mean.high, len(values))


def _labels(record: Mapping[str, Any]) -> dict[str, list[Label]]:
    return {
        name: [level["label"] for level in levels] for name, levels in record["factors"].items()
    }


def _table(record: Mapping[str, Any], columns: Columns) -> Table:
    labels = _labels(record)
    confidence = record["experiment"]["confidence"]
    measured = {
        name: _measured(columns, list(labels), name, confidence) for name in record["measures"]
    }
    units = {name: _unit(name, found) for name, found in measured.items()}
    header = (*map(in_words, labels), *(units[name].label for name in measured), "seeds")
    rows = []
    for key in product(*labels.values()):
        here = [found.get(key) for found in measured.values()]
        seeds = max((each.seeds for each in here if each is not None), default=0)
        cells = (_cell(each, units[name]) for name, each in zip(measured, here, strict=True))
        rows.append((*map(str, key), *cells, str(seeds)))
    return Table(header, tuple(rows), len(labels))


def _unit(name: str, found: Mapping[Key, Measured]) -> Unit:
    return unit_of(name, [each.estimate for each in found.values()])


def _cell(found: Measured | None, unit: Unit) -> str:
    if found is None:
        return ""
    # Its heading says the unit.
    return with_limits(*found[:3], Unit("", size=unit.size))


# --------------------------------------------------------------------------------------- charts


def _charts(record: Mapping[str, Any], columns: Columns) -> Iterator[Chart]:
    """One, or one for every combination of levels of factors that it does not show."""
    plot = record["experiment"]["plot"]
    if not plot:
        return
    labels = _labels(record)
    shown = [plot["x"], plot["series"]] if plot["series"] else [plot["x"]]
    others = [name for name in labels if name not in shown]
    measured = _measured(columns, list(labels), plot["y"], record["experiment"]["confidence"])
    if not measured:
        return
    published = ((record["experiment"]["published"] or {}).get("values") or {}).get(plot["y"])
    x_unit = unit_of(plot["x"], [x for x in labels[plot["x"]] if not isinstance(x, str)])
    y_unit = _unit(plot["y"], measured)
    for fixed in list(product(*(labels[name] for name in others)))[:CHARTS_MAX]:
        here = dict(zip(others, fixed, strict=True))
        lines = []
        for series in labels[plot["series"]] if plot["series"] else [None]:
            at = here if series is None else {**here, plot["series"]: series}
            points = (
                Point(_scaled(x, x_unit), *(value / y_unit.size for value in found[:3]))
                for x in labels[plot["x"]]
                if (found := measured.get(tuple({**at, plot["x"]: x}[name] for name in labels)))
            )
            lines.append(Line(str(series or in_words(plot["y"])), tuple(points)))
        yield Chart(
            ", ".join(f"{in_words(name)} {level}" for name, level in here.items()),
            Axis(x_unit.label, "x" in (plot["log"] or ())),
            Axis(y_unit.label, "y" in (plot["log"] or ())),
            tuple(line for line in lines if line.points),
            tuple(_marks(published, labels[plot["x"]], x_unit, y_unit)),
        )


def _scaled(x: Label, unit: Unit) -> Label:
    return x if isinstance(x, str) else x / unit.size


def _marks(published: Any, levels: Sequence[Label], x_unit: Unit, y_unit: Unit) -> Iterator[Mark]:
    """Published numbers of the measure: one for all places, or one a place."""
    if isinstance(published, list) and len(published) == len(levels):
        published = dict(zip(map(str, levels), published, strict=True))
    if isinstance(published, int | float):
        yield Mark("published", level=published / y_unit.size)
    elif isinstance(published, dict):
        points = (
            (_scaled(level, x_unit), published[str(level)] / y_unit.size)
            for level in levels
            if isinstance(published.get(str(level)), int | float)
        )
        yield Mark("published", tuple(points))
