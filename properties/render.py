"""What a person reads: the table of judgements and the sentence below it."""

import sys
from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from model.claims import Outcome
from properties.errors import counted
from properties.judge import Judgement
from properties.rooms import Skipped

NARROWEST = 110
"""Columns of output that is not a terminal: rich would assume 80 and fold every row."""

COLOURS = {Outcome.HOLDS: "green", Outcome.BROKEN: "bold red", Outcome.UNDETERMINED: "yellow"}


def console() -> Console:
    """Standard output."""
    wide = None if sys.stdout.isatty() else NARROWEST
    return Console(width=wide, highlight=False, soft_wrap=False)


def print_lines(out: Console, lines: Iterable[str]) -> None:
    """Print sentences as they are: windows like [0, 4) are no markup, and nothing is folded."""
    for line in lines:
        out.print(line, markup=False, soft_wrap=True)


def progress() -> Progress:
    """What is going on, on standard error, if a person is looking."""
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def overall(judgements: Sequence[Judgement]) -> Outcome:
    """All judgements summed up; none at all is undetermined."""
    outcomes = [judgement.outcome for judgement in judgements]
    for worst in (Outcome.BROKEN, Outcome.UNDETERMINED):
        if worst in outcomes:
            return worst
    return Outcome.HOLDS if outcomes else Outcome.UNDETERMINED


def tables(judgements: Sequence[Judgement]) -> Iterator[Table]:
    """One for each room, in which a line is a case."""
    for name in dict.fromkeys(judgement.room.name for judgement in judgements):
        yield _table([judgement for judgement in judgements if judgement.room.name == name])


def _table(judgements: Sequence[Judgement]) -> Table:
    grid = Table(box=None, pad_edge=False, header_style="bold")
    grid.add_column("room", no_wrap=True)
    grid.add_column("input", min_width=16)
    grid.add_column("query", overflow="fold", min_width=16)
    shown = judgements[0].room.shown
    for heading in (*(figure.heading for figure in shown), "mis-\nmatches"):
        grid.add_column(heading, justify="right", no_wrap=True)
    grid.add_column("verdict", no_wrap=True)
    grid.add_column("seconds", justify="right")
    for judgement in judgements:
        outcome = judgement.outcome
        grid.add_row(
            judgement.room.name,
            judgement.case.input,
            judgement.case.query,
            *(_written(judgement.figures[figure.name], figure.format) for figure in shown),
            f"{judgement.mismatches:,}",
            f"[{COLOURS[outcome]}]{outcome}[/]",
            f"{judgement.seconds:.1f}",
        )
    return grid


def _written(number: float | None, how: str) -> str:
    return "-" if number is None else format(number, how)


def remarks(judgements: Iterable[Judgement]) -> list[str]:
    """A line for every remark."""
    return [
        f"{judgement.case.input}, {judgement.case.query}, {remark.name}: {remark.sentence}."
        for judgement in judgements
        for remark in judgement.remarks
    ]


def skipped(omitted: Skipped) -> str:
    """A default input that was left out."""
    return f"skipped {omitted.input}: {omitted.reason}."


def summary(judgements: Sequence[Judgement], system: str) -> str:
    """All cases in one sentence."""
    outcomes = [judgement.outcome for judgement in judgements]
    broken = outcomes.count(Outcome.BROKEN)
    unsaid = outcomes.count(Outcome.UNDETERMINED)
    cases = counted(len(judgements), "comparison")
    if broken:
        return f"{broken} of {cases} broken: {system} does not do what was promised."
    if unsaid:
        return f"{unsaid} of {cases} undetermined: {_reasons(judgements)}."
    asked = {judgement.room.name: judgement.room for judgement in judgements}
    agreed = [
        room.agreed([each.figures for each in judgements if each.room is room])
        for room in asked.values()
    ]
    return f"{cases}, none broken: {system} agrees with the reference in {'; in '.join(agreed)}."


def _reasons(judgements: Sequence[Judgement]) -> str:
    reasons = (
        verdict.sentence
        for judgement in judgements
        for verdict in (judgement.agreement, judgement.guard)
        if verdict.outcome is Outcome.UNDETERMINED
    )
    return "; ".join(dict.fromkeys(reasons))
