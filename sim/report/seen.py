"""What was seen of an expectation, in words and units that a reader need not look up."""

from collections.abc import Mapping
from typing import Any

from model.checking.claims import Outcome
from sim.report.contents import Cell, Finding
from sim.report.words import (
    NO_NAMES,
    Names,
    Unit,
    levels_in_words,
    spoken,
    unit_of,
    with_limits,
    written,
)
from sim.sweep.experiment import Reproduction


def finding_of(record: Mapping[str, Any], names: Names = NO_NAMES) -> Finding:
    """An expectation from what is stored of it."""
    unit = _unit(record)
    cells = (
        Cell(levels_in_words(each["label"], names), _number(each, unit), Outcome(each["outcome"]))
        for each in record["cells"]
    )
    return Finding(
        record["says"],
        Reproduction(record["verdict"]),
        record["assumptions"] or "",
        Outcome(record["outcome"]),
        _sentence(record, unit, names),
        tuple(cells),
    )


def _unit(record: Mapping[str, Any]) -> Unit:
    """Of the measure, or of a ratio, which has none."""
    known = [cell["estimate"] for cell in record["cells"] if cell["estimate"] is not None]
    return Unit("") if record["compare"] == "ratio" else unit_of(record["measure"], known)


def _number(cell: Mapping[str, Any], unit: Unit) -> str:
    if cell["estimate"] is None:
        return "not known"
    return with_limits(cell["estimate"], cell["low"], cell["high"], unit)


def _sentence(record: Mapping[str, Any], unit: Unit, names: Names) -> str:
    """The range of all cells if all is as expected, otherwise the first that is not."""
    cells = record["cells"]
    telling = [cell for cell in cells if cell["outcome"] == record["outcome"]] or cells
    known = [cell for cell in telling if cell["estimate"] is not None]
    if not known:
        return str(record["sentence"])
    name = spoken(record["measure"], names)
    if record["compare"] or record["along"]:
        name = f"{record['compare'] or 'change'} of {name}"
    if record["outcome"] == str(Outcome.HOLDS) and len(known) > 1:
        estimates = [cell["estimate"] / unit.size for cell in known]
        low, high = written(min(estimates)), written(max(estimates))
        said = low if low == high else f"{low} to {high}"
        return f"{name} {said}{unit.symbol}, in {len(known)} of {len(cells)} cases"
    where = f", {levels_in_words(known[0]['label'], names)}" if known[0]["label"] else ""
    return f"{name} {_number(known[0], unit)}{where}"
