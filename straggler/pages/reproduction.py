"""The page of claims, docs/reproduction.md, and the summary that it can be written from.

Rules of the page:

1. Every verdict stands with the experiment that decides it.
2. A verdict says whether it rests on a quick sweep or on a full one.

Results of sweeps are not committed; their summary is (JSON), and the page can be written from it.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from model.checking.claims import Outcome
from model.vocabulary.settings import JsonObject
from sim.report.contents import MEANINGS, STATUSES, Entry, Report, ReportedFinding
from sim.report.words import version
from sim.sweep.experiment import CONFIDENCE, Reproduction
from sim.sweep.store import as_json
from straggler.cli.render import markdown
from straggler.errors import UsageError, counted
from straggler.rooms import sort_names

HEADER = """\
# Reproduction

*Written by `straggler report` from the results that `straggler sweep` has stored.*

Claim by claim: what was published, what came out here, and the evidence. Figures are means over
seeds with their confidence limits.
"""


def page(report: Report) -> str:
    """Return the whole page, room by room."""
    names = sort_names({entry.room for entry in report})
    meanings = [f"- *{each.value.capitalize()}*: {text}." for each, text in MEANINGS.items()]
    parts = [HEADER, *meanings, "", "## Summary\n", _extent(report), _counts(report, names), ""]
    parts.append("## Figures and tables\n")
    for room in names:
        entries = [entry for entry in report if entry.room == room]
        parts += [f"### Room `{room}`\n", _table(entries), ""]
        parts += ["\n".join(_section(entry)) for entry in entries]
    return "\n".join(parts).rstrip() + "\n"


def _extent(report: Report) -> str:
    runs = counted(sum(entry.runs for entry in report), "run")
    efforts = " and ".join(dict.fromkeys(entry.effort for entry in report))
    return f"{counted(len(report), 'experiment')} with {runs} ({efforts}).\n"


def _counts(report: Report, names: Sequence[str]) -> str:
    counts = Counter((entry.room, entry.status) for entry in report)
    shown = [each for each in STATUSES if any(each == value for _, value in counts)]
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
            entry.status,
        )
        for entry in entries
    ]
    header = ("experiment", "claim", "published", "simulated", "verdict")
    return markdown(dict.fromkeys(header, ""), rows)


def _cell(text: str) -> str:
    """Return text as one table cell; a line break would end the table."""
    return " ".join(text.split()).replace("|", "\\|")


def _section(entry: Entry) -> Iterator[str]:
    yield f"#### {entry.name}\n"
    yield f"**Claim.** {entry.claim or entry.title}" + ("" if entry.source else "\n")
    if entry.source:
        yield f"*Source: {entry.source}.*\n"
    if entry.published:
        yield f"**Published.** {entry.published}\n"
    seeds = f"{counted(len(entry.seeds), 'seed')}, {CONFIDENCE:.0%} confidence"
    yield f"**Simulated**, {counted(entry.runs, 'run')}, {seeds}, {entry.effort}:\n"
    yield from (f"- {_finding(each)}.{_verdict(each)}" for each in entry.findings)
    if entry.assumptions:
        yield f"\n**Assumed.** {' '.join(entry.assumptions)}"
    verdict = entry.status.capitalize()
    yield f"\n**{verdict}**: `{entry.again}`, code `{version(entry.code)}`.\n"


def _verdict(finding: ReportedFinding) -> str:
    """Return the verdict of a finding, or nothing unless its expectation is met."""
    return f" *{finding.verdict.value}*" if finding.outcome is Outcome.HOLDS else ""


def _finding(finding: ReportedFinding) -> str:
    outcome = "" if finding.outcome is Outcome.HOLDS else f"**{finding.outcome.value}**: "
    return f"{outcome}{finding.says}: {finding.sentence}"


# ----------------------------------------------------------------------------------- summary

TEXTS = Entry._fields[: Entry._fields.index("verdict")]


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


def _record(found: Entry | ReportedFinding) -> JsonObject:
    """Return the fields of an entry or a finding; an entry of a summary has no failed runs."""
    record = {name: value for name, value in found._asdict().items() if name != "failed"}
    record["verdict"] = found.verdict.value if found.verdict else None
    if isinstance(found, Entry):
        record["findings"] = list(map(_record, found.findings))
    return record


def _entry(record: JsonObject) -> Entry:
    verdict = record["verdict"]
    return Entry(
        **{name: str(record[name]) for name in TEXTS},
        verdict=Reproduction(verdict) if verdict else None,
        outcome=Outcome(record["outcome"]),
        findings=tuple(map(_read_finding, record["findings"])),
        seeds=tuple(record["seeds"]),
        runs=record["runs"],
        failed=0,
    )


def _read_finding(record: JsonObject) -> ReportedFinding:
    says, verdict, assumptions, outcome, sentence = map(record.__getitem__, ReportedFinding._fields)
    return ReportedFinding(says, Reproduction(verdict), assumptions, Outcome(outcome), sentence)
