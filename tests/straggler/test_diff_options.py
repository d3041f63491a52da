"""``straggler diff``: which comparisons are made, and what is printed and written of them."""

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from rich.console import Console
from rich.text import Text

from model.join.oracle import nested_loop_join
from model.vocabulary import Event, JoinConfig, SlackConfig, System, Trace, Workload
from model.vocabulary.join import RESULTS, Equi
from model.vocabulary.windows import Correlation
from straggler.cases import make_case
from straggler.cli import diff, render
from straggler.cli.selection import parse_selection
from straggler.errors import UsageError
from straggler.inputs.tables import Recording
from straggler.judging.judge import judge
from straggler.judging.levels import Scope
from straggler.judging.references import MODEL, run_reference
from straggler.options import Arguments
from straggler.rooms import Case, Room, find_room, find_rooms
from straggler.rooms.join.room import ROOM as JOIN
from straggler.rooms.slack.room import remarks
from tests.straggler.command import Straggler, assert_refused
from tests.straggler.own_systems import says_nothing

UMTS = ("diff", "slack", "--input", "umts", "--system", "model.slack:make_system")
LOST = ("--system", "model.slack.variants:lost_update", "--level", "steps")
TIMES = (1, 2, 9, 3, 12, 30, 11, 40)

# ----------------------------------------------------------------------- which comparisons are made


@pytest.fixture
def two_rooms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let there be two rooms, east and west, with one small input; in the east nothing is right."""
    config = SlackConfig(10, 10, control="fixed", gamma_us=0)
    events = tuple([Event(n, n, "", t, 1.0, t) for n, t in enumerate(TIMES)])

    def room(name: str) -> Room:
        source, arguments = Recording("few", "few", events), Arguments(batches=None, seed=0)
        case = make_case("slack", source, config, "a sum", arguments, batches=3)
        return replace(find_room("slack"), name=name, cases=lambda *_: iter([case]))

    @contextmanager
    def open_system(*_: object) -> Iterator[Callable[[Room], System]]:
        yield lambda room: says_nothing() if room.name == "east" else room.reference()

    rooms = [room("east"), room("west")]
    monkeypatch.setattr(diff, "find_rooms", lambda _: rooms)
    monkeypatch.setattr(diff, "open_system", open_system)


@pytest.mark.usefixtures("two_rooms")
def test_comparisons_are_selected_by_their_names(straggler: Straggler) -> None:
    done = straggler("diff", "all", "-k", "few and not east")
    assert "1 comparison" in done.out
    assert ("\nwest" in done.out, "\neast" in done.out) == (True, False)
    none = straggler("diff", "all", "-k", "many", "--json", "v.json")
    assert_refused(none, "-k is 'many', which selects none of 2 comparisons")


@pytest.mark.usefixtures("two_rooms")
def test_the_first_broken_comparison_stops_the_others(straggler: Straggler) -> None:
    done = straggler("diff", "all", "-x")
    assert (done.code, "\nwest" in done.out) == (1, False)
    assert done.out.endswith("Not complete: 1 of 2 comparisons judged, the last of them broken.\n")
    everything = straggler("diff", "all")
    assert (everything.code, "\nwest" in everything.out) == (1, True)


def test_quick_gives_each_room_its_own_input_and_query(
    straggler: Straggler, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Arguments] = {}

    def recording(room: Room) -> Room:
        def cases(args: Arguments, *_: object) -> Iterator[Case]:
            asked[room.name] = args
            return iter(())

        return replace(room, cases=cases)

    rooms = [recording(room) for room in find_rooms("all")]
    monkeypatch.setattr(diff, "find_rooms", lambda _: rooms)
    assert_refused(straggler("diff", "all", "--quick", "-k", "slack"), "none of 0 comparisons")
    for room in rooms:
        assert room.quick.startswith(f"--input {' '.join(asked[room.name].input)}")
    assert len({args.input for args in asked.values()}) > 1


@pytest.mark.parametrize(
    ("expression", "name", "is_selected"),
    [
        ("SLACK and not umts", "slack umts, sum per key", False),
        ("join or slack and key", "join flights", True),
        ("(join or slack) and key", "join flights", False),
        ("not (join or key)", "slack umts, sum per task", True),
        ("not not slack", "slack", True),
        *((wrong, "", None) for wrong in ("", "and", "slack and", "(slack", "slack)", "a b")),
    ],
)
def test_an_expression_selects_names(expression: str, name: str, is_selected: bool | None) -> None:
    if is_selected is None:
        with pytest.raises(UsageError, match="must be words with and, or, not and parentheses"):
            parse_selection(expression)
    else:
        assert parse_selection(expression)(name) is is_selected


# ------------------------------------------------------------------------------------------- JUnit


@pytest.mark.usefixtures("short_umts")
def test_junit_has_a_test_for_every_comparison(straggler: Straggler, tmp_path: Path) -> None:
    done = straggler(*UMTS[:4], *LOST, "--per", "task", "--junit", "j.xml")
    assert done.code == 1
    suite = ElementTree.parse(tmp_path / "j.xml").getroot()[0]
    assert (suite.get("name"), suite.get("tests"), suite.get("failures")) == ("slack", "2", "2")
    assert suite[0].get("name") == "umts (simulated), sum per task, 5s/1s"
    assert "one writer" in (suite[0][0].get("message") or "")


# --------------------------------------------------------------------------------- what it rests on


@pytest.mark.parametrize(
    ("changes", "rests"),
    [
        *(({"aggregate": name}, True) for name in ("sum", "avg", "median")),
        ({"aggregate": "count"}, False),
        ({"sampling": "adversarial"}, False),
        ({"aggregate": "max", "lambda_thr": 0.9}, False),
        *(({"control": name}, False) for name in ("pd", "max", "fixed")),
    ],
)
def test_only_what_rests_on_an_assumption_has_a_remark(
    changes: dict[str, object], rests: bool
) -> None:
    config = replace(SlackConfig(8, 8, keyed=False), **changes)  # type: ignore[arg-type]  # by name
    case = Case("made", "made", "sum", Workload("slack", (), config.to_json()), in_order=False)
    steps = [Correlation(0, 8 * n, "", 0, 1, 4, 2, 4, 4) for n in range(19)]
    found = remarks(case, Trace("made", steps))
    assert bool(found) == rests
    assert all(each.sentence.endswith("untested, 19 windows where 20 are needed") for each in found)


def test_values_that_follow_delay_contradict_the_assumption() -> None:
    """In windows of four tuples the third comes last, and its value is large."""
    config = SlackConfig(8, 8, keyed=False, max_slack_us=0, gamma_us=0).to_json()
    times = [8 * window + at for window in range(1, 31) for at in (0, 2, 6, 4)]
    events = tuple(
        Event(seq, seq, "", at, 100.0 if at % 8 == 4 else 1.0 + at % 3, seq)
        for seq, at in enumerate(sorted(times, key=lambda at: at + 9 * (at % 8 == 4)))
    )
    case = Case("made", "made", "sum", Workload("slack", events, config), in_order=False)
    (remark,) = remarks(case, find_room("slack").reference()(case.workload))
    # The third tuple of the last window still finds it open.
    assert (remark.data["status"], remark.data["windows"]) == ("contradicted", 29)
    assert 0 < remark.data["low"] <= remark.data["rho"] <= remark.data["high"]


# --------------------------------------------------------------------------------------- the table


@pytest.mark.parametrize("width", [70, 80, 100, 120, 200, 0])
def test_a_terminal_gets_the_verdict_whole_and_a_file_every_column(width: int) -> None:
    config = JoinConfig(5, (("key and value within 2", Equi("key")),), workers=3, lateness_us=3)
    workload = Workload("join", (Event(0, 0, "a", 1, 1.0, 1, "R"),), config.to_json())
    name = "orders-of-the-whole-last-year.csv, trades-of-the-whole-last-year.csv"
    case = Case("made", name, "key, +-5s, late after [3s]", workload, in_order=True)
    expected = run_reference(JOIN, workload, MODEL, RESULTS)
    judged = judge(Scope(JOIN, RESULTS), case, nested_loop_join, expected)
    text = io.StringIO()
    out = Console(file=text, width=width or render.NARROWEST, force_terminal=bool(width))
    render.print_tables(out, [judged])
    lines = [Text.from_ansi(line).plain for line in text.getvalue().splitlines()]
    headings = ("tuples", "matches", "rejec-", "blocks", "copies")
    for word in ("verdict", "seconds", "undetermined", *(headings if not 0 < width < 120 else ())):
        assert word in "\n".join(lines)
    assert not width or max(map(len, lines)) <= max(width, 72)
