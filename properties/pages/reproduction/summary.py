"""What the page needs of the results of sweeps, as JSON that is kept beside it.

Results themselves are not committed; from this the page can be written again without them.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from model.checking.claims import Outcome
from properties.errors import UsageError, counted
from sim.report.contents import Entry, Finding, Report, Table
from sim.sweep.experiment import Reproduction
from sim.sweep.store import as_json

TEXTS = (
    *("name", "room", "run", "title", "claim", "source", "published", "numbers"),
    *("effort", "code", "again"),
)
"""Fields of an entry that are kept as they are."""


def as_text(report: Report) -> str:
    """The summary of a report.

    Raises :class:`UsageError` with one sentence if runs have failed: nothing is said from a part.
    """
    for entry in report:
        if entry.failures:
            failed = counted(len(entry.failures), "run")
            raise UsageError(f"{entry.name} is not whole: {failed} failed; `{entry.again}` does it")
    return as_json({"experiments": list(map(_record, report))})


def read(path: Path) -> Report:
    """The report of which a file has the summary, without plots and numbers.

    Raises :class:`UsageError` with one sentence for a file that is no summary.
    """
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        return tuple(map(_entry, record["experiments"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"{str(path)!r} is not a summary that `straggler report --reproduction` has written"
            f" ({type(error).__name__}: {error})"
        ) from error


def _record(entry: Entry) -> dict[str, Any]:
    return {
        **{name: getattr(entry, name) for name in TEXTS},
        "verdict": entry.verdict.value if entry.verdict else None,
        "outcome": str(entry.outcome),
        "findings": [
            {
                "says": finding.says,
                "verdict": finding.verdict.value,
                "assumptions": finding.assumptions,
                "outcome": str(finding.outcome),
                "sentence": finding.sentence,
            }
            for finding in entry.findings
        ],
        "seeds": list(entry.seeds),
        "confidence": entry.confidence,
        "runs": entry.runs,
    }


def _entry(record: Mapping[str, Any]) -> Entry:
    verdict = record["verdict"]
    texts = {name: str(record[name]) for name in TEXTS}
    return Entry(
        **texts,
        verdict=Reproduction(verdict) if verdict else None,
        outcome=Outcome(record["outcome"]),
        findings=tuple(map(_finding, record["findings"])),
        charts=(),
        undrawn=0,
        table=Table((), (), 0),
        base={},
        factors={},
        seeds=tuple(record["seeds"]),
        confidence=record["confidence"],
        runs=record["runs"],
        problems=(),
        failures=(),
    )


def _finding(record: Mapping[str, Any]) -> Finding:
    return Finding(
        record["says"],
        Reproduction(record["verdict"]),
        record["assumptions"],
        Outcome(record["outcome"]),
        record["sentence"],
        (),
    )
