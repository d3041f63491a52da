"""What a sweep has stored of an experiment, read for a report (docs/sweeps.md has the format).

Parquet is not read here: whoever calls has the columns.
"""

from collections.abc import Mapping
from typing import Any

from model.checking.claims import Outcome
from sim.report.charts import charts_of
from sim.report.contents import Entry, Failure
from sim.report.numbers import Columns, names_of, table_of
from sim.report.seen import finding_of
from sim.report.words import values_in_words
from sim.sweep.experiment import Reproduction


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
        findings=tuple(finding_of(each, names_of(record)) for each in record["expectations"]),
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


def _numbers(record: Mapping[str, Any], published: Mapping[str, Any] | None) -> str:
    values = (published or {}).get("values") or {}
    return values_in_words(values, names_of(record))
