"""Entries of a page of claims, read from the records that a sweep has stored (docs/sweeps.md)."""

from model.checking.claims import Outcome
from model.vocabulary.settings import JsonObject
from sim.report.contents import Entry, ReportedFinding
from sim.report.words import (
    Names,
    Unit,
    format_number,
    levels_in_words,
    name_in_sentence,
    unit_of,
    with_limits,
)
from sim.sweep.experiment import Reproduction


def entry_of(record: JsonObject) -> Entry:
    """Return the entry of an experiment from its record.

    Raise ``ValueError``, ``KeyError`` or ``TypeError`` for other data.
    """
    about = record["experiment"]
    source, published = about["source"], about["published"]
    names: Names = about.get("labels") or {}  # records of earlier sweeps have none
    verdict, expectations = record["verdict"], record["expectations"]
    if verdict is not None and verdict not in {each["verdict"] for each in expectations}:
        msg = f"its verdict {verdict!r} belongs to none of its expectations"
        raise ValueError(msg)
    return Entry(
        name=str(about["name"]),
        room=str(about["room"]),
        run=str(about["run"]),
        title=str(about["title"]),
        claim=about["claim"] or "",
        source=f"{source['paper']}, {source['where']}" if source else "",
        published=published["says"] if published else "",
        verdict=None if verdict is None else Reproduction(verdict),
        outcome=Outcome(record["outcome"]),
        findings=tuple(_finding(each, names) for each in expectations),
        seeds=tuple(record["seeds"]),
        runs=int(record["rows"]),
        failed=len(record["failed"]),
        effort=str(record["effort"]),
        code=str(record["code"]),
        again=str(record["again"]),
    )


def _finding(record: JsonObject, names: Names) -> ReportedFinding:
    """Return what the page says of an expectation, from the expectation's record."""
    return ReportedFinding(
        record["says"],
        Reproduction(record["verdict"]),
        record["assumptions"] or "",
        Outcome(record["outcome"]),
        _sentence(record, names),
    )


def _sentence(record: JsonObject, names: Names) -> str:
    """Describe the range of the cells that are as expected, or the first cell that is not."""
    cells = record["cells"]
    estimates = [cell["estimate"] for cell in cells if cell["estimate"] is not None]
    is_ratio = record["compare"] == "ratio"
    unit = Unit() if is_ratio else unit_of(record["measure"], estimates)
    decisive = [cell for cell in cells if cell["outcome"] == record["outcome"]] or cells
    name = name_in_sentence(record["measure"], names)
    if record["compare"] or record["along"]:
        name = f"{record['compare'] or 'change'} of {name}"
    known = [cell for cell in decisive if cell["estimate"] is not None]
    first = (known or decisive)[0]
    where = f", {levels_in_words(first['label'], names)}" if first["label"] else ""
    if not known:
        return f"{name} is not known{where}: some run has no value of it"
    if record["outcome"] == str(Outcome.HOLDS) and len(known) > 1:
        estimates = [cell["estimate"] / unit.size for cell in known]
        low, high = format_number(min(estimates)), format_number(max(estimates))
        said = low if low == high else f"{low} to {high}"
        return f"{name} {said}{unit.symbol}, in {len(known)} of {len(cells)} cases"
    return f"{name} {with_limits(first['estimate'], first['low'], first['high'], unit)}{where}"
