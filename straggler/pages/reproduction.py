"""The page of claims, docs/reproduction.md, and the summary that it can be written from.

Rules of the page:

1. Every verdict stands with its evidence: an experiment, a test, or an erratum that is run.
2. A verdict says whether it rests on a quick sweep or on a full one.

Results of sweeps are not committed; their summary is (JSON), and the page can be written from it.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from model.checking.claims import Outcome
from model.vocabulary.settings import JsonObject
from sim.report.contents import Entry, Report, ReportedFinding, Status
from sim.report.words import format_number, version
from sim.sweep.experiment import Reproduction
from sim.sweep.reading import catalogue
from sim.sweep.store import as_json
from straggler.cli.render import markdown
from straggler.errors import UsageError, counted
from straggler.pages.evidence import MEASURED, PROMISES, Promise
from straggler.rooms import find_rooms, sort_names

Figures: TypeAlias = Mapping[tuple[str, str], float]
"""Figures of benchmarks, by benchmark and name."""
VERDICTS = tuple(Status(each.value) for each in Reproduction)
HEADER = """\
# Reproduction

*Written by `straggler report --output docs/reproduction.md --measured benchmarks/results`
from the results that `straggler sweep` has stored. Tests hold it to their summary,
[reproduction.json](reproduction.json), to the stored benchmarks, and to the tests and errata that
it names. [published.md](published.md) lists every published figure and table, and what stands for
it.*

Five published designs, claim by claim: what the text says, what came out here, and the evidence.
Simulated figures are means over seeds with their confidence limits; figures on Spark were measured
on one machine with two cores and hold for that machine.
"""

OWN_HEADER = """\
# Results of sweeps

*Written by `straggler report` from the results that `straggler sweep` has stored.* Figures are
means over seeds with their confidence limits.
"""


def page(report: Report, measured: Figures) -> str:
    """Return the whole page, room by room.

    Without figures of benchmarks it is a page of a user's results alone: what our tests promise is
    not on it.
    """
    promises = PROMISES if measured else ()
    known = {*(entry.room for entry in report), *(promise.room for promise in promises)}
    names = sort_names(known)
    header = HEADER if measured else OWN_HEADER
    meanings = [f"- *{each.value.capitalize()}*: {each.meaning}." for each in VERDICTS]
    counts = _counts(report, promises, names)
    parts = [header, *meanings, "", "## Summary\n", _extent(report, promises), counts, ""]
    parts.append("## Figures and tables\n")
    for room in names:
        entries = [entry for entry in report if entry.room == room]
        if entries:
            parts += [f"### Room `{room}`\n", _table(entries), ""]
            parts += ["\n".join(_section(entry, measured)) for entry in entries]
    if not promises:
        return "\n".join(parts).rstrip() + "\n"
    parts += ["## Promises\n", "Claims without a published figure; tests decide them.\n"]
    parts += ["\n".join(_promise(promise)) for promise in promises]
    parts += ["## Rules that break their promises\n", _errata()]
    return "\n".join(parts).rstrip() + "\n"


def _extent(report: Report, promises: Sequence[Promise]) -> str:
    runs = counted(sum(entry.runs for entry in report), "run")
    efforts = " and ".join(dict.fromkeys(entry.effort for entry in report))
    experiments = counted(len(report), "experiment")
    if not promises:
        return f"{experiments} with {runs} ({efforts}).\n"
    held = counted(len(promises), "promise")
    missing = sorted(set(catalogue()) - {entry.name for entry in report})
    gap = f" No results are stored of {', '.join(missing)}." if missing else ""
    return f"{experiments} with {runs} ({efforts}), and {held} that tests hold.{gap}\n"


def _counts(report: Report, promises: Sequence[Promise], names: Sequence[str]) -> str:
    counts = Counter((entry.room, entry.status.value) for entry in report)
    counts += Counter((promise.room, promise.verdict.value) for promise in promises)
    shown = [each.value for each in Status if any(value == each.value for _, value in counts)]
    rows = [[room, *(counts[room, value] for value in shown)] for room in names]
    rows.append(["all", *(sum(counts[room, value] for room in names) for value in shown)])
    return markdown(dict.fromkeys(["room", *shown], ""), rows)


def _table(entries: Sequence[Entry]) -> str:
    rows = [
        (
            f"[{entry.name}](#{entry.name})",
            _cell(entry.claim or entry.title),
            _cell(entry.published),
            _cell(_finding(entry.decisive)) if entry.decisive else "",
            entry.status.value,
        )
        for entry in entries
    ]
    header = ("experiment", "claim", "published", "simulated", "verdict")
    return markdown(dict.fromkeys(header, ""), rows)


def _cell(text: str) -> str:
    """Return text as one table cell; a line break would end the table."""
    return " ".join(text.split()).replace("|", "\\|")


def _section(entry: Entry, measured: Figures) -> Iterator[str]:
    yield f"#### {entry.name}\n"
    yield f"**Claim.** {entry.claim or entry.title}" + ("" if entry.source else "\n")
    if entry.source:
        yield f"*Source: {entry.source}.*\n"
    if entry.published:
        numbers = f" As numbers: {entry.numbers}." if entry.numbers else ""
        yield f"**Published.** {entry.published}{numbers}\n"
    seeds = f"{counted(len(entry.seeds), 'seed')}, {entry.confidence:.0%} confidence"
    yield f"**Simulated**, {counted(entry.runs, 'run')}, {seeds}, {entry.effort}:\n"
    yield from (f"- {_finding(each)}.{_verdict(each)}" for each in entry.findings)
    on_spark = MEASURED.get(entry.name, ()) if measured else ()
    if on_spark:
        yield "\n**On Spark:**\n"
    for each in on_spark:
        value = format_number(measured[each.benchmark, each.figure])
        yield f"- {each.says}: {value} (`make bench NAME={each.benchmark}`, *{each.figure}*)."
    if entry.assumptions:
        yield f"\n**Assumed.** {' '.join(entry.assumptions)}"
    verdict = entry.status.value.capitalize()
    yield f"\n**{verdict}**: `{entry.again}`, code `{version(entry.code)}`.\n"


def _verdict(finding: ReportedFinding) -> str:
    """Return the verdict of a finding, or nothing unless its expectation is met."""
    return f" *{finding.verdict.value}*" if finding.outcome is Outcome.HOLDS else ""


def _finding(finding: ReportedFinding) -> str:
    outcome = "" if finding.outcome is Outcome.HOLDS else f"**{finding.outcome.value}**: "
    return f"{outcome}{finding.says}: {finding.sentence}"


def _promise(promise: Promise) -> Iterator[str]:
    yield f"- **{promise.claim}** Room `{promise.room}`; *{promise.source}*."
    yield f"  {promise.verdict.value.capitalize()}: {promise.found}"
    if promise.errata:
        links = ", ".join(f"[{name}](errata.md#{name})" for name in promise.errata)
        yield f"  Readings that do not hold: {links}."
    yield from (f"  - `{test}`" for test in promise.tests)
    yield ""


def _errata() -> str:
    rows = [
        (
            f"[{erratum.name}](errata.md#{erratum.name})",
            room.name,
            erratum.kind.value,
            _cell(erratum.promise),
        )
        for room in find_rooms("all")
        for erratum in room.errata
    ]
    table = markdown(dict.fromkeys(("erratum", "room", "class", "promise"), ""), rows)
    return (
        "Each rule is refuted by a smallest counterexample, and holds as corrected. The class\n"
        "says whether the text states the rule, has lost its formula, or leaves it open.\n"
        "`straggler errata` runs them, and so does `tests/straggler/test_errata.py`.\n\n"
        f"{table}"
    )


def figures(folder: Path) -> Figures:
    """Return the benchmark figures of the page from a folder with results of benchmarks.

    Raise :class:`UsageError` with one sentence if a figure is missing.
    """
    found: dict[tuple[str, str], float] = {}
    for measured in (each for several in MEASURED.values() for each in several):
        path = folder / f"{measured.benchmark}.json"
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            value = float(record["figures"][measured.figure])
        except (OSError, KeyError, TypeError, ValueError) as error:
            raise UsageError(
                f"{str(path)!r} has no figure {measured.figure!r}"
                f" ({type(error).__name__}); `make bench NAME={measured.benchmark}` measures it"
            ) from error
        found[measured.benchmark, measured.figure] = value
    return found


# ----------------------------------------------------------------------------------- summary

TEXTS = (
    *("name", "room", "run", "title", "claim", "source", "published", "numbers"),
    *("effort", "code", "again"),
)
"""Fields of an entry that the summary copies."""


def summary_of(report: Report) -> str:
    """Return the summary of a report, as JSON.

    Raise :class:`UsageError` with one sentence if runs have failed: a part is no evidence.
    """
    for entry in report:
        if entry.failed:
            failed = counted(entry.failed, "run")
            repair = f"run `{entry.again}` again"
            raise UsageError(f"{entry.name} is incomplete: {failed} failed; {repair}")
    return as_json({"experiments": list(map(_record, report))})


def read_summary(path: Path) -> Report:
    """Return the report that a file summarises.

    Raise :class:`UsageError` with one sentence for a file that is no summary.
    """
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        return tuple(map(_entry, record["experiments"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"{str(path)!r} is not a summary that `straggler report` has written"
            f" ({type(error).__name__}: {error})"
        ) from error


def _record(entry: Entry) -> JsonObject:
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


def _entry(record: JsonObject) -> Entry:
    verdict = record["verdict"]
    texts = {name: str(record[name]) for name in TEXTS}
    return Entry(
        **texts,
        verdict=Reproduction(verdict) if verdict else None,
        outcome=Outcome(record["outcome"]),
        findings=tuple(map(_read_finding, record["findings"])),
        seeds=tuple(record["seeds"]),
        confidence=record["confidence"],
        runs=record["runs"],
        failed=0,
    )


def _read_finding(record: JsonObject) -> ReportedFinding:
    return ReportedFinding(
        record["says"],
        Reproduction(record["verdict"]),
        record["assumptions"],
        Outcome(record["outcome"]),
        record["sentence"],
    )
