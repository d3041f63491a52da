"""Several comparisons in one command: progress, selection, an early end, and files for CI."""

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from model.slack import run as run_slack
from model.vocabulary import Event, SlackConfig, System, Trace, Workload
from straggler.cases import make_case
from straggler.cli import diff
from straggler.cli.selection import parse_selection
from straggler.errors import UsageError
from straggler.inputs.tables import Recording
from straggler.options import Arguments
from straggler.rooms import Case, Room, find_room, find_rooms
from tests.straggler.command import Straggler, assert_refused

pytestmark = pytest.mark.usefixtures("short_umts")
ASK = ("diff", "slack", "--input", "umts")
MODEL = ("--system", "model.slack:make_system", "--level", "steps")
CASES = 4
"""Comparisons of :data:`ASK`."""
TIMES = (1, 2, 9, 3, 12, 30, 11, 40)
LOST = ("--system", "model.slack.variants:lost_update", "--level", "steps")


@pytest.fixture
def heard() -> Iterator[None]:
    """Let interrupts be heard, even if the tests run in the background, which ignores them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_a_line_tells_of_every_finished_comparison(straggler: Straggler) -> None:
    lines = straggler(*ASK, *MODEL).err.splitlines()
    assert len(lines) == CASES
    assert lines[0].startswith("1 of 4: slack umts (simulated), sum per key, 5s/1s: holds (")
    assert straggler(*ASK, *MODEL, "--aggregate", "sum", "--per", "key").err == ""


def interrupted_in_the_third() -> Callable[[Workload], Trace]:
    """Return a System that is interrupted in its third comparison, and then gives up."""
    workloads: list[Workload] = []

    def system(workload: Workload) -> Trace:
        workloads.append(workload)
        if len(workloads) == 3:
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                return Trace("gave up", ())
        return run_slack(workload)

    return system


@pytest.mark.usefixtures("heard")
def test_an_interrupt_leaves_what_has_been_judged(straggler: Straggler, tmp_path: Path) -> None:
    own = ("--system", f"{__name__}:interrupted_in_the_third")
    done = straggler(*ASK, *own, "--json", "v.json", "--junit", "j.xml", "--html", "p.html")
    assert done.code == 130
    assert done.err.splitlines()[-1] == "straggler: interrupted."
    note = "Not complete: 2 of 4 comparisons judged, then interrupted."
    assert done.out.splitlines()[-1] == note
    assert sum(line.startswith("slack  umts (simulated)  ") for line in done.out.splitlines()) == 2
    record = json.loads((tmp_path / "v.json").read_text(encoding="utf-8"))
    assert record["incomplete"] == note
    assert [row["verdict"] for row in record["comparisons"]] == ["holds", "holds"]
    suite = ElementTree.parse(tmp_path / "j.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("skipped")) == ("4", "2")
    page = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert page.count("<article") == 2
    assert f'<p class="alarm">{note}</p>' in page


def test_junit_has_a_test_for_every_comparison(straggler: Straggler, tmp_path: Path) -> None:
    done = straggler(*ASK, *LOST, "--per", "task", "--junit", "j.xml")
    assert done.code == 1
    suite = ElementTree.parse(tmp_path / "j.xml").getroot()[0]
    assert (suite.get("name"), suite.get("tests"), suite.get("failures")) == ("slack", "2", "2")
    case = suite[0]
    assert case.get("name") == "umts (simulated), sum per task, 5s/1s"
    assert float(case.get("time", "")) > 0
    assert "one writer" in (case[0].get("message") or "")


def test_junit_skips_what_is_undetermined_and_says_why(
    straggler: Straggler, tmp_path: Path
) -> None:
    (tmp_path / "s.csv").write_text("event_time,value\n1,1\n2,1\n", encoding="utf-8")
    own = ("--input", "s.csv", "--aggregate", "sum", "--per", "task", "--control", "fixed")
    assert straggler("diff", "slack", *own, *MODEL, "--junit", "j.xml").code == 3
    suite = ElementTree.parse(tmp_path / "j.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("skipped")) == ("1", "1")
    message = suite[0][0].get("message") or ""
    assert message.startswith("undetermined: s.csv is in order")


def test_junit_has_a_test_for_every_claim_and_planted_bug(
    straggler: Straggler, tmp_path: Path
) -> None:
    assert straggler("explore", "slack", "--scope", "conformal", "--junit", "j.xml").code == 0
    suite = ElementTree.parse(tmp_path / "j.xml").getroot()[0]
    assert suite.get("name") == "explore slack"
    names = [case.get("name", "") for case in suite]
    assert sum(name.startswith("planted bug ") for name in names) == 17
    assert any(name.startswith("conformal: ") for name in names)
    assert suite.get("failures") == "0"


@pytest.fixture
def two_rooms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let there be two rooms, east and west, with one small input, judged without Spark."""
    config = SlackConfig(10, 10, control="fixed", gamma_us=0)
    source = Recording(
        "few", "few", tuple([Event(n, n, "", t, 1.0, t) for n, t in enumerate(TIMES)])
    )

    def room(name: str) -> Room:
        arguments = Arguments(batches=None, seed=0)
        case = make_case("slack", source, config, "a sum", arguments, batches=3)
        return replace(find_room("slack"), name=name, cases=lambda *_: iter([case]))

    rooms = [room("east"), room("west")]
    monkeypatch.setattr(diff, "find_rooms", lambda _: rooms)

    @contextmanager
    def open_system(*_: object) -> Iterator[Callable[[Room], System]]:
        yield lambda room: nothing if room.name == "east" else room.reference()

    monkeypatch.setattr(diff, "open_system", open_system)


def nothing(_workload: Workload) -> Trace:
    """Do nothing, which breaks every promise."""
    return Trace("nothing", ())


@pytest.mark.usefixtures("two_rooms")
def test_comparisons_are_selected_by_their_names(straggler: Straggler) -> None:
    done = straggler("diff", "all", "-k", "few and not east")
    assert "1 comparison" in done.out
    assert "\nwest" in done.out
    assert "\neast" not in done.out
    none = straggler("diff", "all", "-k", "many", "--json", "v.json")
    assert_refused(none, "-k is 'many', which selects none of 2 comparisons")
    assert_refused(straggler("diff", "all", "-k", "few and"), "-k is 'few and'; it must be words")


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
    assert list(asked["slack"].per) == ["task"]
    done = straggler("diff", "all", "--quick", "--input", "umts")
    assert_refused(done, "--quick chooses the inputs itself, without --input 'umts'")


@pytest.mark.usefixtures("two_rooms")
def test_the_first_broken_comparison_stops_the_others(straggler: Straggler) -> None:
    done = straggler("diff", "all", "-x")
    assert done.code == 1
    assert "\nwest" not in done.out
    assert done.out.endswith("Not complete: 1 of 2 comparisons judged, the last of them broken.\n")
    everything = straggler("diff", "all")
    assert everything.code == 1
    assert "\nwest" in everything.out
    assert "Not complete" not in everything.out


@pytest.mark.parametrize(
    ("expression", "name", "is_selected"),
    [
        ("slack", "slack umts, sum per key", True),
        ("SLACK and not umts", "slack umts, sum per key", False),
        ("join or slack and key", "join flights", True),
        ("(join or slack) and key", "join flights", False),
        ("not (join or key)", "slack umts, sum per task", True),
        ("not not slack", "slack", True),
    ],
)
def test_an_expression_selects_names(expression: str, name: str, is_selected: bool) -> None:
    assert parse_selection(expression)(name) is is_selected


@pytest.mark.parametrize("expression", ["", "and", "slack and", "(slack", "slack)", "slack umts"])
def test_what_is_no_expression_is_refused(expression: str) -> None:
    with pytest.raises(UsageError, match="it must be words with and, or, not and parentheses"):
        parse_selection(expression)
