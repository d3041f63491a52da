"""The page of judged engines, written from stored results alone.

Rules of this file:

* Rows are engines, columns are promises. Every number is one of the results.
* A broken cell shows its counterexample, what the documentation says, and the script that
  reproduces the defect without the adapter.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from model.checking.claims import Outcome, worst
from straggler.cli.render import markdown
from straggler.conformance.engines import Engine
from straggler.conformance.promises import PROMISES
from straggler.conformance.results import CLOSED, REPRODUCED, Case, Results, Trail
from straggler.judging.judge import AGREEMENT

NOT_ASKED = "not asked"
NOT_JUDGED = "not judged"
NOT_REPRODUCED = "not reproduced"
FAILED = "failed"
HEAD = """\
# Engines of others, judged

This page says which promises some engines keep on streams with late data, redeliveries, equal times
and times on the boundary of a window, and which they do not give.

`straggler conformance` writes this page. Each engine runs in an environment of its own, behind an
[adapter](../engines) that speaks the [protocol](protocol.md). It gets streams from the generators
that test our own pipelines, limited to what the engine can express: the section of the engine says
to which settings, and its cell says if there were no redeliveries. Its answers are judged.
[your-system.md](your-system.md) says how to have an engine of yours judged.

- **holds**: no counterexample was found in the streams that the cell counts, and the cases that
  matter occurred in them.
- **broken**: a promise broke, and a script of the engine alone, without our adapter, shows the
  defect. The section quotes the documentation, because an engine may not give this promise.
- **not reproduced**: the adapter's answers were wrong, and no script shows a defect of the engine.
  Such a cell does not count.
- **failed**: the adapter ended, refused or gave no answer, and no script shows that the engine is
  the cause in this very case. Such a cell does not count. After two streams without an answer in
  time, no further ones were tried.
- **undetermined**: the streams lacked a case that matters, or an answer counts some of the late
  tuples and the engine does not say which.
- **not asked**: the engine mostly has no such operation; its section says why.
- **not judged**: the engine was not run with the pinned version yet.

Some promises can be asked of an engine in several *ways*, such as two kinds of windows. The cell
says in how many of them the promise broke.

A promise is judged with the settings under which the documentation of an engine gives it. Averages
may be rounded more than once; other answers have to be exact, because the sums of the generated
values are.
"""


class Row(NamedTuple):
    """An engine with its results; ``None`` if it was never judged."""

    engine: Engine
    results: Results | None


def verdict(row: Row, promise: str) -> str:
    """Return the verdict of a cell."""
    if row.results is None:
        return NOT_JUDGED
    cases = row.results.of(promise)
    if not cases:
        return NOT_ASKED
    found = {_case_verdict(row.results, case) for case in cases}
    for bad in (str(Outcome.BROKEN), FAILED, NOT_REPRODUCED):
        if bad in found:
            return bad
    return str(worst(case.outcome for case in cases))


def _case_verdict(results: Results, case: Case) -> str:
    """Return the verdict of a case, broken only if a script reproduces the defect."""
    if case.outcome is not Outcome.BROKEN or _reproduced(results, case):
        return str(case.outcome)
    return FAILED if case.failure else NOT_REPRODUCED


def _reproduced(results: Results, case: Case) -> list[Trail]:
    """Return the scripts that show the defect; only one that names the case explains a failure."""
    explained = (case.how,) if case.failure else (case.how, "")
    return [
        trail
        for trail in results.trails
        if trail.finding.promise == case.promise
        and trail.finding.how in explained
        and trail.outcome == REPRODUCED
    ]


def write_page(rows: Sequence[Row]) -> str:
    """Return the page in Markdown."""
    lines = [HEAD, _matrix(rows), "", "## Promises", ""]
    for promise in PROMISES.values():
        lines.append(f"- **{promise.title}**: {promise.question}")
    for row in rows:
        lines += ["", *_section(row)]
    lines += ["", *_trails(rows)]
    return "\n".join(lines).rstrip() + "\n"


def _matrix(rows: Sequence[Row]) -> str:
    asked = {case.promise for row in rows for case in row.engine.cases}
    shown = [name for name in PROMISES if name in asked]
    header = dict.fromkeys(["engine", *(PROMISES[name].title for name in shown)], "")
    cells = [
        [f"[{row.engine.title} {row.engine.version}](#{_anchor(row.engine)})"]
        + [_cell(row, promise) for promise in shown]
        for row in rows
    ]
    table = markdown(header, cells)
    hidden = [
        f"*{promise.title}* has no column, because no engine is asked for it."
        for name, promise in PROMISES.items()
        if name not in shown
    ]
    return "\n\n".join([table, *hidden])


def _cell(row: Row, promise: str) -> str:
    found = verdict(row, promise)
    if row.results is None or found == NOT_ASKED:
        return found
    cases = row.results.of(promise)
    number = sum(case.counts["workloads"] for case in cases)
    wrong = sum(case.outcome is Outcome.BROKEN for case in cases)
    calm = sum(not case.counts["redeliveries"] for case in cases)
    notes = []
    if wrong and len(cases) > 1:
        notes.append(f"{wrong} of {len(cases)} ways")
    notes.append(f"{number:,} streams")
    if calm:
        ways = f"{calm} of {len(cases)} ways with " if calm < len(cases) else ""
        notes.append(f"{ways}no redeliveries")
    return f"**{found}** ({', '.join(notes)})"


def _anchor(engine: Engine) -> str:
    text = f"{engine.title} {engine.version}".lower()
    kept = "".join(letter for letter in text if letter.isalnum() or letter in " -")
    return kept.replace(" ", "-")


# ------------------------------------------------------------------------------------ one engine


def _section(row: Row) -> Iterator[str]:
    engine = row.engine
    yield f"## {engine.title} {engine.version}\n"
    yield f"{engine.about} [Home page]({engine.homepage}), [adapter](../engines/{engine.name}).\n"
    if row.results is None:
        yield "It was not judged yet."
        return
    for name in PROMISES:
        yield from _line(row, row.results, name)
    for name in PROMISES:
        yield from _breakage(row, row.results, name)


def _line(row: Row, results: Results, name: str) -> Iterator[str]:
    """Yield a line for each case of a promise: how it was asked, on which streams, the verdict."""
    title = PROMISES[name].title
    if name in row.engine.unasked:
        yield f"- {title}, *{NOT_ASKED}*: {row.engine.unasked[name]}"
    for case in results.of(name):
        counts = [
            f"{number:,} {each}" if number else f"no {each}"
            for each, number in case.counts.items()
            if number or each == "redeliveries"
        ]
        drawn = ", ".join(counts).replace("workloads", "streams")
        outcome = _case_verdict(results, case)
        found = f"It breaks on {case.broken:,} of them." if case.broken else case.sentence
        if outcome == FAILED:
            found = f"It failed on {case.broken:,} of them, which does not count: {case.failure}."
        yield f"- {title}, *{outcome}*: {case.how} Drawn: {drawn}. {found}"


def _breakage(row: Row, results: Results, name: str) -> Iterator[str]:
    """Yield the counterexamples to a promise, and the scripts that show the defect."""
    cases = [case for case in results.of(name) if case.counterexample]
    if not cases:
        return
    yield f"\n### {row.engine.title}: {PROMISES[name].title}, {verdict(row, name)}"
    for case in cases:
        yield f"\n{case.how} The smallest counterexample:\n"
        yield from (f"    {line.removeprefix(f'{AGREEMENT}: ')}" for line in case.counterexample)
    shown = [trail for case in cases for trail in _reproduced(results, case)]
    for trail in dict.fromkeys(shown):
        yield from _shown_trail(row.engine, trail)


def _shown_trail(engine: Engine, trail: Trail) -> Iterator[str]:
    path = f"engines/{engine.name}/trails/{trail.finding.script}"
    yield f"\n{trail.finding.sentence} {trail.finding.says} ([source]({trail.finding.address}))\n"
    yield f"[{path}](../{path}) shows it without the adapter:\n"
    yield f"```python\n{engine.trail(trail.finding).read_text(encoding='utf-8').rstrip()}\n```\n"
    yield from (f"    {line}".rstrip() for line in trail.output.splitlines())


# ----------------------------------------------------------------------------------- all reports


def _trails(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the table of all findings and reports, closed ones too."""
    words = {REPRODUCED: "yes", CLOSED: "no longer"}
    cells = [
        [
            f"{row.engine.title} {row.engine.version}",
            f"{trail.finding.sentence} {trail.finding.says}",
            f"[source]({trail.finding.address})",
            f"[{trail.finding.script}](../engines/{row.engine.name}/trails/{trail.finding.script})",
            words.get(trail.outcome, "could not be tried"),
        ]
        for row in rows
        if row.results is not None
        for trail in row.results.trails
    ]
    yield "## Reports that were tried\n"
    yield "Findings of ours, and reports of others, were tried with the pinned version.\n"
    header = ("engine", "report", "address", "script", "reproduced")
    yield markdown(dict.fromkeys(header, ""), cells)
