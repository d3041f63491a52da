"""The table of judgements keeps its verdicts, however narrow it has to be."""

import io

import pytest
from rich.console import Console
from rich.text import Text

from model.join.oracle import nested_loop_join
from model.vocabulary import Event, JoinConfig, Workload
from model.vocabulary.join import RESULTS, Equi
from straggler.cli import render
from straggler.judging.judge import Judgement, judge
from straggler.judging.levels import Scope
from straggler.judging.references import MODEL, run_reference
from straggler.rooms import Case
from straggler.rooms.join.room import ROOM

INPUT = "orders-of-the-whole-last-year.csv, trades-of-the-whole-last-year.csv"
HEADINGS = ("tuples", "matches", "rejec-", "blocks", "copies", "mis-", "verdict", "seconds")


def undetermined() -> Judgement:
    """Return a judgement in which nothing was tested: it has the longest verdict."""
    config = JoinConfig(5, (("key and value within 2", Equi("key")),), workers=3, lateness_us=3)
    event = Event(0, 0, "a", 1, 1.0, 1, "R")
    workload = Workload("join", (event,), config.to_json())
    case = Case(
        "made", INPUT, "key and value within 2, +-5s, late after [3s]", workload, in_order=True
    )
    expected = run_reference(ROOM, workload, MODEL, RESULTS)
    return judge(Scope(ROOM, RESULTS), case, nested_loop_join, expected)


def printed(width: int, is_terminal: bool) -> list[str]:
    text = io.StringIO()
    out = Console(file=text, width=width, force_terminal=is_terminal)
    render.print_tables(out, [undetermined()])
    return [Text.from_ansi(line).plain for line in text.getvalue().splitlines()]


def test_a_file_gets_every_column() -> None:
    text = "\n".join(printed(render.NARROWEST, is_terminal=False))
    for word in (*HEADINGS, "undetermined", "late after", "[3s]"):
        assert word in text


@pytest.mark.parametrize("width", [70, 80, 100, 120, 200])
def test_a_terminal_gets_the_verdict_whole(width: int) -> None:
    lines = printed(width, is_terminal=True)
    text = "\n".join(lines)
    for word in ("mis-", "verdict", "seconds", "undetermined"):
        assert word in text
    assert max(map(len, lines)) <= max(width, 72)
    for heading in HEADINGS:
        assert heading in text or width < 120, f"{heading} would have had room"


@pytest.mark.parametrize(
    ("is_terminal", "lines"),
    [
        (False, ["  rule  the well-known rule says [0, 4)", ""]),
        (True, ["  rule  the", "    well-known rule", "    says [0, 4)", ""]),
    ],
)
def test_prose_is_folded_for_a_terminal_alone(is_terminal: bool, lines: list[str]) -> None:
    text = io.StringIO()
    out = Console(file=text, width=20, force_terminal=is_terminal, highlight=False)
    render.print_prose(out, ["  rule  the well-known rule says [0, 4)", ""])
    assert text.getvalue().splitlines() == lines
