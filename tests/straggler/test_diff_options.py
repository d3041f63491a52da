"""``straggler diff``: which comparisons are made, and what is printed and written of them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from hypothesis import given

from model.vocabulary import Event, JoinConfig, SlackConfig, System, Workload
from model.vocabulary.durations import parse_duration_us
from model.vocabulary.join import And, Apart, Band, Equi, Ineq, Predicate
from straggler.cases import make_case
from straggler.cli import diff
from straggler.errors import UsageError
from straggler.inputs.durations import write_duration
from straggler.inputs.tables import Recording
from straggler.options import Arguments
from straggler.rooms import Case, Room, find_room, find_rooms
from straggler.rooms.join import limits
from straggler.rooms.join.conditions import parse_condition, write_condition
from straggler.strategies.join import PREDICATES
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


# Room ``join``: conditions as texts, limits of streams, and comparison of matches.


CONFIG = JoinConfig(4, (("key", Equi("key")),), workers=3, block_size=2, lateness_us=3)


def workload(n: int = 60) -> Workload:
    """Return two streams that take turns, each in four batches, with some late tuples."""
    arrivals = tuple(
        Event(seq, seq // 2, "abc"[seq % 3], seq - 9 * (seq % 7 == 0) + 20, 1.0, seq, "RS"[seq % 2])
        for seq in range(n)
    )
    return Workload("join", arrivals, CONFIG.to_json(), (n // 4, n // 2, 3 * n // 4))


# --------------------------------------------------------------------------------------- limits


def test_too_many_pairs_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PAIRS_MAX", 100)
    wide = replace(CONFIG, window_us=1_000)
    with pytest.raises(UsageError, match="900 pairs lie within --window 1ms of each other"):
        limits.refuse_pairs(workload().arrivals, wide, "--window")


def test_times_near_the_end_are_refused() -> None:
    late = workload().arrivals[0]._replace(event_time_us=2**62)
    with pytest.raises(UsageError, match=f"event_time_us of arrival 0 is {2**62}"):
        limits.refuse_workload(workload().with_(arrivals=(late,), cuts=()))


# ----------------------------------------------------------------------------------- conditions


@pytest.mark.parametrize(
    ("text", "predicate"),
    [
        ("key", Equi("key")),
        (" any ", And()),
        ("value within 2", Band("value", 2.0)),
        ("value  apart  0.1", Apart("value", 0.1)),
        ("value >=", Ineq("value", ">=", "value")),
        ("key and value within 2", And((Equi("key"), Band("value", 2.0)))),
    ],
)
def test_conditions_are_parsed_into_predicates(text: str, predicate: Predicate) -> None:
    assert parse_condition(text) == predicate


@given(predicate=PREDICATES)
def test_conditions_that_were_written_are_read_back(predicate: Predicate) -> None:
    read = parse_condition(write_condition(predicate))
    single = isinstance(predicate, And) and len(predicate.parts) == 1
    assert read == (predicate.parts[0] if isinstance(predicate, And) and single else predicate)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "'' is not a condition"),
        ("vaule", "did you mean 'value'?"),
        ("key =", "'key =' is not a condition"),
        ("value within two", "'two' in 'value within two' is not a number"),
        ("value within -1", "eps is -1.0"),
        ("value within nan", "eps is nan"),
        ("key apart 2", "keys have no distance"),
        ("key and", "'key and' is not a condition"),
    ],
)
def test_an_invalid_condition_is_refused(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=r".") as refused:
        parse_condition(text)
    assert words in str(refused.value)


# Durations as users write them.


@pytest.mark.parametrize(
    ("text", "us"),
    [
        ("5us", 5),
        ("500ms", 500_000),
        ("1.5s", 1_500_000),
        ("6h", 21_600_000_000),
        (" 2 D ", 172_800_000_000),
        ("-1s", -1_000_000),
        ("10 seconds", 10_000_000),
        ("1 hour 30 minutes", 5_400_000_000),
        ("INTERVAL 1 week", 604_800_000_000),
    ],
)
def test_durations_are_read(text: str, us: int) -> None:
    assert parse_duration_us(text) == us


@pytest.mark.parametrize(
    "text", ["", "5", "s", "5 parsecs", "1e3s", "five s", "1 month", "1 hour 5", "interval"]
)
def test_an_invalid_duration_is_quoted(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration") as refused:
        parse_duration_us(text)
    assert repr(text) in str(refused.value)
    with pytest.raises(ValueError, match=r"'0\.5us' is not a whole number of microseconds"):
        parse_duration_us("0.5us")


@pytest.mark.parametrize("text", ["0s", "1us", "1500ms", "5s", "5min", "6h", "1d"])
def test_durations_are_written_as_they_are_read(text: str) -> None:
    assert write_duration(parse_duration_us(text)) == text
