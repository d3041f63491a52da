"""``straggler diff``: which comparisons are made, and what is printed and written of them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from model.vocabulary import Event, SlackConfig, System
from straggler.cases import make_case
from straggler.cli import diff
from straggler.inputs.tables import Recording
from straggler.options import Arguments
from straggler.rooms import Case, Room, find_room, find_rooms
from tests.straggler.command import Straggler, assert_refused
from tests.straggler.own_systems import says_nothing

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


# ------------------------------------------------------------------------------------------- JUnit


# --------------------------------------------------------------------------------- what it rests on


# --------------------------------------------------------------------------------------- the table
