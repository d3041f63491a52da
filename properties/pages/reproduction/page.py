"""The page as Markdown: figures and tables first, then promises, then rules that break theirs.

Rules of this file:

1. No verdict without what is behind it: an experiment, a test, or an erratum that is run.
2. Whether a verdict rests on a quick sweep or on a full one is said with it.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from model.checking.claims import Outcome
from properties.cli.render import markdown
from properties.errors import counted
from properties.pages.reproduction.promises import PROMISES, Promise
from properties.pages.reproduction.spark import MEASURED, Figures
from properties.rooms import find_rooms
from properties.sweeps.stored import ROOMS
from sim.report.contents import Entry, Finding, Report
from sim.report.status import MEANINGS, Status, status
from sim.report.words import version, written
from sim.sweep.experiment import Reproduction
from sim.sweep.reading import catalogue

VERDICTS = tuple(Status(each.value) for each in Reproduction)
HEADER = """\
# Reproduction

*Written by `straggler report --reproduction docs/reproduction.md` from what `straggler sweep` has
stored. Tests hold it to [reproduction.json](reproduction.json), where that is summarised, to the
stored benchmarks, and to the tests and errata that it names. [published.md](published.md) lists
every published figure and table, and what stands for it.*

Five published designs, claim by claim: what the text says, what came out here, and what is behind
that. Simulated figures are means over seeds with their confidence limits; those on Spark are of
one machine with two cores and say what is so there.
"""


def page(report: Report, measured: Figures) -> str:
    """All of it, room by room."""
    known = {*(entry.room for entry in report), *(promise.room for promise in PROMISES)}
    names = [room for room in ROOMS if room in known] + sorted(known.difference(ROOMS))
    meanings = [f"- *{each.value.capitalize()}*: {MEANINGS[each]}." for each in VERDICTS]
    parts = [HEADER, *meanings, "", "## In short\n", _extent(report), _counts(report, names), ""]
    parts.append("## Figures and tables\n")
    for room in names:
        entries = [entry for entry in report if entry.room == room]
        if entries:
            parts += [f"### Room `{room}`\n", _table(entries), ""]
            parts += ["\n".join(_section(entry, measured)) for entry in entries]
    parts += ["## Promises\n", "What no figure shows, and tests do.\n"]
    parts += ["\n".join(_promise(promise)) for promise in PROMISES]
    parts += ["## Rules that break their promises\n", _errata()]
    return "\n".join(parts).rstrip() + "\n"


def _extent(report: Report) -> str:
    runs = counted(sum(entry.runs for entry in report), "run")
    promises = counted(len(PROMISES), "promise")
    efforts = " and ".join(dict.fromkeys(entry.effort for entry in report))
    experiments = counted(len(report), "experiment")
    missing = sorted(set(catalogue()) - {entry.name for entry in report})
    still = f" No results are stored of {', '.join(missing)}." if missing else ""
    return f"{experiments} with {runs} ({efforts}), and {promises} that tests hold.{still}\n"


def _counts(report: Report, names: Sequence[str]) -> str:
    counts = Counter((entry.room, status(entry).value) for entry in report)
    counts += Counter((promise.room, promise.verdict.value) for promise in PROMISES)
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
            status(entry).value,
        )
        for entry in entries
    ]
    header = ("experiment", "claim", "published", "simulated", "verdict")
    return markdown(dict.fromkeys(header, ""), rows)


def _cell(text: str) -> str:
    """Of a table; a line of its own would end it."""
    return " ".join(text.split()).replace("|", "\\|")


def _section(entry: Entry, measured: Figures) -> Iterator[str]:
    yield f"#### {entry.name}\n"
    yield f"**Claim.** {entry.claim or entry.title}"
    if entry.source:
        yield f"*Source: {entry.source}.*\n"
    if entry.published:
        numbers = f" As numbers: {entry.numbers}." if entry.numbers else ""
        yield f"**Published.** {entry.published}{numbers}\n"
    seeds = f"{counted(len(entry.seeds), 'seed')}, {entry.confidence:.0%} confidence"
    yield f"**Simulated**, {counted(entry.runs, 'run')}, {seeds}, {entry.effort}:\n"
    yield from (f"- {_finding(each)}.{_verdict(each)}" for each in entry.findings)
    on_spark = MEASURED.get(entry.name, ())
    if on_spark:
        yield "\n**On Spark:**\n"
    for each in on_spark:
        value = written(measured[each.benchmark, each.figure])
        yield f"- {each.says}: {value} (`make bench NAME={each.benchmark}`, *{each.figure}*)."
    if entry.assumptions:
        yield f"\n**Assumed.** {' '.join(entry.assumptions)}"
    verdict = status(entry).value.capitalize()
    yield f"\n**{verdict}**: `{entry.again}`, code `{version(entry.code)}`.\n"


def _verdict(finding: Finding) -> str:
    """What it says of the claim, which is nothing unless it is met."""
    return f" *{finding.verdict.value}*" if finding.outcome is Outcome.HOLDS else ""


def _finding(finding: Finding) -> str:
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
        (f"[{erratum.name}](errata.md#{erratum.name})", room.name, _cell(erratum.promise))
        for room in find_rooms("all")
        for erratum in room.errata
    ]
    table = markdown(dict.fromkeys(("erratum", "room", "promise"), ""), rows)
    return (
        "Each is refuted as written, by a smallest counterexample, and holds as corrected;\n"
        "`straggler errata` runs them, and so does `tests/properties/test_errata.py`.\n\n"
        f"{table}"
    )
