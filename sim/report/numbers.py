"""Means over seeds from a table of results, and all of them as a table to be read."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple, TypeAlias

from sim.report.contents import Table
from sim.report.words import Names, Unit, unit_of, with_limits, written
from sim.sweep.experiment import Label
from sim.sweep.statistics import mean_interval

Columns: TypeAlias = Mapping[str, Sequence[Any]]
"""A table of results, by column."""
Key: TypeAlias = tuple[Label, ...]
"""A combination of levels, one of each factor."""


class Measured(NamedTuple):
    """A measure at one combination of levels: mean and confidence limits over its seeds."""

    estimate: float
    low: float
    high: float
    seeds: int


def names_of(record: Mapping[str, Any]) -> Names:
    """What a reader calls things; results of earlier sweeps do not say it."""
    return record["experiment"].get("labels") or {}


def levels_of(record: Mapping[str, Any]) -> dict[str, list[Label]]:
    """What the levels of each factor are called, in the order of the grid."""
    return {
        name: [level["label"] for level in levels] for name, levels in record["factors"].items()
    }


def measured(record: Mapping[str, Any], columns: Columns, measure: str) -> dict[Key, Measured]:
    """A measure at every combination of levels at which there is a number."""
    found: dict[Key, list[float]] = {}
    rows = zip(*(columns[factor] for factor in record["factors"]), columns[measure], strict=True)
    for *key, value in rows:
        if isinstance(value, int | float) and not isinstance(value, bool):
            found.setdefault(tuple(key), []).append(float(value))
    confidence = record["experiment"]["confidence"]
    return {key: _mean(values, confidence) for key, values in found.items()}


def _mean(values: Sequence[float], confidence: float) -> Measured:
    if len(values) == 1:
        return Measured(values[0], values[0], values[0], 1)
    mean = mean_interval(values, confidence)
    return Measured(mean.estimate, mean.low, mean.high, len(values))


def measure_unit(measure: str, found: Mapping[Key, Measured], names: Names) -> Unit:
    """In what to write a measure."""
    return unit_of(measure, [each.estimate for each in found.values()], names)


def level_unit(factor: str, levels: Sequence[Label], names: Names) -> Unit:
    """In what to write the levels of a factor."""
    return unit_of(factor, [level for level in levels if not isinstance(level, str)], names)


def scaled(level: Label, unit: Unit) -> Label:
    """A level in its unit; names have none."""
    return level if isinstance(level, str) else level / unit.size


def level_text(level: Label, unit: Unit) -> str:
    """The same as text, without the unit."""
    return level if isinstance(level, str) else written(level / unit.size)


def table_of(record: Mapping[str, Any], columns: Columns) -> Table:
    """A row for every combination of levels, a column for every measure that is a number."""
    levels, called = levels_of(record), names_of(record)
    numbers = [name for name in record["measures"] if not _is_text(columns[name])]
    found = {name: measured(record, columns, name) for name in numbers}
    level_units = [level_unit(*each, called) for each in levels.items()]
    units = [measure_unit(*each, called) for each in found.items()]
    rows = []
    for key in product(*levels.values()):
        here = [each.get(key) for each in found.values()]
        seeds = max((each.seeds for each in here if each is not None), default=0)
        names = map(level_text, key, level_units)
        rows.append((*names, *map(_cell, here, units), str(seeds)))
    header = (*(unit.label for unit in [*level_units, *units]), "seeds")
    return Table(header, tuple(rows), len(levels))


def _is_text(column: Sequence[Any]) -> bool:
    return any(isinstance(value, str) for value in column)


def _cell(found: Measured | None, unit: Unit) -> str:
    # The heading says the unit.
    return "" if found is None else with_limits(*found[:3], Unit("", size=unit.size))
