"""Output for people: tables of judgements, sentences and progress."""

import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from threading import Event, Thread

from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.measure import Measurement
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from model.checking.claims import NOT_ANSWERED, Outcome
from model.vocabulary.texts import escaped, escaped_lines
from model.vocabulary.workload import ISO
from straggler.errors import counted
from straggler.judging.judge import Judgement
from straggler.judging.levels import ANSWERS
from straggler.options import STDIO
from straggler.rooms import Case, Figure, SkippedInput

NARROWEST = 110
"""Width of output that is not a terminal, because rich would assume 80 and fold every row."""

UNLIMITED = 10_000
_TIME = re.compile(
    r"'(?:[^'\\]|\\.)*'"
    r"|(?:\b(?P<name>[a-z_]+)_us |(?<=\bat )|(?<=event time )|(?<=\[)|(?<=\[\d{16}, ))"
    r"(?P<us>1\d{15}|1(?:,\d{3}){5})(?: us)?(?!\d|\.\d|\w)"
)
"""A quoted text, or a time from 2001 to 2033 (us since 1970) where a sentence has one."""
_AMOUNT = re.compile(
    r"'(?:[^'\\]|\\.)*'"
    r"|\b[a-z_]+_us -?\d+(?![\d.])"
    r"|(?<=\bat )-?\d+(?=, key | with )"
    r"|\[-?\d+, -?\d+\)"
    r"|(?<![\w.,])-?\d+(?:,\d{3})* us\b"
)
"""A quoted text, or times or durations (us) where a sentence has them."""
_NUMBER = re.compile(r"-?\d+(?:,\d{3})*")
_OF_US = {"ms": Decimal("1e-3"), "s": Decimal("1e-6"), "ns": Decimal(1_000)}
"""A microsecond in a unit of times."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NEEDS_STEPS = "all steps (--level steps), because answers do not decide"
TELL_S, LONGEST_S = 5.0, 60.0
"""Silence of a command that is at work, without a terminal: at first, and at most."""

EXIT_CODES = {Outcome.HOLDS: 0, Outcome.BROKEN: 1, Outcome.UNDETERMINED: 3}
COLOURS = {Outcome.HOLDS: "green", Outcome.BROKEN: "bold red", Outcome.UNDETERMINED: "yellow"}


class Output(Console):
    """A console whose reader may close it."""

    def on_broken_pipe(self) -> None:
        """Raise BrokenPipeError, because rich would exit with 1, which means that a claim broke."""
        raise BrokenPipeError

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        """Yield segments in which nothing but styles of ours controls the terminal."""
        for each in super().render(renderable, options):
            if each.control is None and not each.text.isprintable():
                yield each._replace(text=escaped_lines(each.text))
            else:
                yield each


def console(*written: Path | None) -> Console:
    """Return a console on standard output, or on standard error if a file is :data:`STDIO`."""
    on_stderr = STDIO in written
    wide = None if (sys.stderr if on_stderr else sys.stdout).isatty() else NARROWEST
    return Output(stderr=on_stderr, width=wide, highlight=False, soft_wrap=False)


def print_lines(out: Console, lines: Iterable[str]) -> None:
    """Print lines unfolded and without markup, so that windows like [0, 4) stay as they are."""
    for line in lines:
        out.print(escaped(line), markup=False, emoji=False, soft_wrap=True)


def with_times(lines: Iterable[str], unit: str = ISO) -> list[str]:
    """Return lines with times in a unit of files in place of microseconds.

    In ISO 8601, durations and what is no time of our days stay in microseconds.
    """
    if unit == ISO:
        return [_TIME.sub(_in_iso, line) for line in lines]
    if unit not in _OF_US:
        return list(lines)

    def convert(found: re.Match[str]) -> str:
        if found[0].startswith("'"):
            return found[0]
        words = found[0].removesuffix(" us").replace("_us ", " ")
        return _NUMBER.sub(lambda number: _in_unit(number[0], unit), words)

    return [_AMOUNT.sub(convert, line) for line in lines]


def _in_unit(us: str, unit: str) -> str:
    return f"{(int(us.replace(',', '')) * _OF_US[unit]).normalize():f} {unit}"


def _in_iso(found: re.Match[str]) -> str:
    if found["us"] is None:
        return found[0]
    moment = EPOCH + timedelta(microseconds=int(found["us"].replace(",", "")))
    written = moment.isoformat().replace("+00:00", "Z")
    return f"{found['name']} {written}" if found["name"] else written


def plain(text: str) -> str:
    """Return a text that a table or a progress bar shows as it is."""
    return escape(escaped(text))


def print_prose(out: Console, lines: Iterable[str]) -> None:
    """Print sentences; on a terminal fold them between words and indent what follows."""
    for line in lines:
        indent = " " * (len(line) - len(line.lstrip()) + 2)
        fold = textwrap.TextWrapper(out.width, subsequent_indent=indent, break_on_hyphens=False)
        print_lines(out, (fold.wrap(line) or [""]) if out.is_terminal else [line])


class Steps(Progress):
    """A progress bar; without a terminal, a line now and then says what takes so long."""

    def start(self) -> None:
        """Begin to show progress."""
        super().start()
        self._ended = Event()
        if self.disable:
            Thread(target=self._tell, daemon=True).start()

    def stop(self) -> None:
        """End the bar, or the lines."""
        self._ended.set()
        super().stop()

    def _tell(self) -> None:
        pause_s, told = TELL_S, ""
        while not self._ended.wait(pause_s):
            for task in self.tasks[-1:]:
                is_new = told != task.description
                pause_s = TELL_S if is_new else min(2 * pause_s, LONGEST_S)
                told = task.description
                total = task.total or 0
                now = min(task.completed + 1, total)
                place = f"{now:.0f} of {total:.0f}: " if total else ""
                name = Text.from_markup(task.description).plain if is_new else "still at it"
                line = f"{place}{name}, {task.elapsed or 0:.0f} s since the start"
                print_lines(self.console, [line])


def progress(*more: ProgressColumn) -> Progress:
    """Return progress on standard error; on a terminal it is a bar that ends with ``more``."""
    console = Output(stderr=True, highlight=False)
    return Steps(
        TextColumn("{task.description}"),
        BarColumn(bar_width=20 if more else 40),  # so that 80 columns hold all of it
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        *more,
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def print_tables(out: Console, judgements: Sequence[Judgement]) -> None:
    """Print for each room a table with a row for each case.

    A narrow terminal gets fewer figures, and a file gets all of them in longer lines. The verdict
    is always shown.
    """
    for name in dict.fromkeys(judgement.room.name for judgement in judgements):
        of_room = [judgement for judgement in judgements if judgement.room.name == name]
        shown = of_room[0].room.shown
        while out.is_terminal and shown and _narrowest(out, of_room, shown) > out.width:
            shown = shown[:-1]
        out.width = max(out.width, _narrowest(out, of_room, shown))
        out.print(_table(of_room, shown))
        out.print()


def _narrowest(out: Console, judgements: Sequence[Judgement], shown: Sequence[Figure]) -> int:
    """Return the smallest width of a table, with inputs and queries folded as far as possible."""
    folded = _table(judgements, shown, has_names=False)
    return Measurement.get(out, out.options.update(width=UNLIMITED), folded).maximum


def _table(
    judgements: Sequence[Judgement], shown: Sequence[Figure], has_names: bool = True
) -> Table:
    grid = Table(box=None, pad_edge=False, header_style="bold")
    grid.add_column("room", no_wrap=True)
    grid.add_column("input", overflow="fold", min_width=16)
    grid.add_column("query", overflow="fold", min_width=16)
    for heading in (*(figure.heading for figure in shown), "mis-\nmatches"):
        grid.add_column(heading, justify="right", no_wrap=True)
    grid.add_column("verdict", no_wrap=True)
    grid.add_column("seconds", justify="right", no_wrap=True)
    for judgement in judgements:
        outcome = judgement.outcome
        case = judgement.case
        grid.add_row(
            judgement.room.name,
            *((plain(case.input), plain(case.query)) if has_names else ("", "")),
            *(_written(judgement.figures[figure.name], figure.format) for figure in shown),
            f"{judgement.mismatches:,}",
            f"[{COLOURS[outcome]}]{outcome}[/]",
            f"{judgement.seconds:.1f}",
        )
    return grid


def _written(number: float | None, how: str) -> str:
    return "-" if number is None else format(number, how)


def remarks(judgements: Iterable[Judgement]) -> list[str]:
    """Return a line for every remark."""
    return [
        ", ".join(filter(None, (judgement.case.input, judgement.case.query, remark.name)))
        + f": {remark.sentence}."
        for judgement in judgements
        for remark in judgement.remarks
    ]


def undecided(judgements: Iterable[Judgement]) -> list[str]:
    """Return, if answers alone were judged, how many claims need more than answers.

    Claims that are undetermined for another reason have a line for each reason.
    """
    claims: dict[tuple[str, str], dict[str, None]] = {}
    for judgement in judgements:
        for verdict in judgement.evidence.verdicts if judgement.level == ANSWERS else ():
            if verdict.outcome is Outcome.UNDETERMINED:
                is_folded = verdict.sentence.startswith(NOT_ANSWERED)
                reason = NEEDS_STEPS if is_folded else verdict.sentence
                claims.setdefault((judgement.room.name, reason), {})[verdict.claim] = None
    return [
        f"{room}, {_undecided(list(names), reason)}" for (room, reason), names in claims.items()
    ]


def _undecided(names: Sequence[str], reason: str) -> str:
    if reason == NEEDS_STEPS:
        further, them = counted(len(names), "further claim"), "it" if len(names) == 1 else "them"
        return f"undetermined: {further} {'needs' if len(names) == 1 else 'need'} {reason} {them}."
    return f"undetermined: {'; '.join(names)}. {reason}"


def bad_rows(cases: Iterable[Case]) -> list[str]:
    """Return a line for every file with bad rows."""
    found = (each.sentence for case in cases for each in case.set_aside)
    return [f"{sentence}." for sentence in dict.fromkeys(found) if sentence]


def describe_skipped(omitted: SkippedInput) -> str:
    """Return the sentence on a default input that was skipped."""
    return f"skipped {omitted.input}: {omitted.reason}."


def summarise(judgements: Sequence[Judgement], system: str) -> list[str]:
    """Return the verdict on all cases as a short sentence, and more lines unless one is broken.

    Each of these says what was compared in a room, or why a case is undetermined.
    """
    outcomes = [judgement.outcome for judgement in judgements]
    broken = outcomes.count(Outcome.BROKEN)
    unsaid = outcomes.count(Outcome.UNDETERMINED)
    cases = counted(len(judgements), "comparison")
    ours = sum(judgement.is_ours for judgement in judgements)
    if broken and broken == ours:
        sentence = "the simulation differs from the model, which is our mistake and says nothing"
        return [f"{broken} of {cases} broken: {sentence} against {system}."]
    if broken:
        more = f", and in {ours} the simulation differs from the model, our mistake" if ours else ""
        return [f"{broken - ours} of {cases} broken: {system} does not do what was promised{more}."]
    if unsaid:
        return [f"{unsaid} of {cases} undetermined.", *_reasons(judgements)]
    compared: dict[str, list[Judgement]] = {}
    for judgement in judgements:
        compared.setdefault(judgement.room.name, []).append(judgement)
    lines = [f"{cases}, none broken: {system} agrees with the reference."]
    for name, of_room in compared.items():
        figures = [each.figures for each in of_room]
        sums = {figure: sum(each[figure] or 0 for each in figures) for figure in figures[0]}
        lines.append(f"{name}: {of_room[0].room.summarise_agreement(sums)}.")
    return lines


def _reasons(judgements: Sequence[Judgement]) -> list[str]:
    """Return a line for each reason why comparisons are undetermined."""
    lines = (
        f"{judgement.room.name}: {verdict.sentence}."
        for judgement in judgements
        for verdict in (judgement.agreement, judgement.guard)
        if verdict.outcome is Outcome.UNDETERMINED
    )
    return list(dict.fromkeys(lines))


def markdown(header: Mapping[str, str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table in Markdown; the values of ``header`` are the formats of its columns."""
    lines = ["| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
    formats = header.values()
    for each in rows:
        cells = (format(value, spec) for value, spec in zip(each, formats, strict=True))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)
