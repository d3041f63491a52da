"""Named inputs: what is in them, in what order it arrives, and what is said of a missing one."""

import io
import json
import os
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from model.join.oracle import oracle_join
from model.vocabulary.join import REASON_LATE
from model.vocabulary.join import Rejected as NoPair
from straggler.errors import UsageError
from straggler.inputs import inputs
from straggler.inputs.columns import DEFAULT_COLUMNS, Columns
from straggler.inputs.inputs import DATA_VARIABLE, load
from straggler.options import Arguments
from straggler.rooms import Case
from straggler.rooms.grouping import inputs as grouping
from straggler.rooms.join import inputs as join
from straggler.rooms.join.room import ROOM as JOIN
from straggler.rooms.script.inputs import examples
from tests.sim.disorder import measure
from tests.straggler.command import Straggler, assert_refused


@pytest.mark.long
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


def test_any_file_in_the_folder_has_a_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    (tmp_path / "mine.csv").write_text("event_time,value\n2,1\n1,1\n", encoding="utf-8")
    recording = load("mine", seed=0)
    assert recording.name == "mine"
    assert [event.event_time_us for event in recording.events] == [2, 1]
    with pytest.raises(UsageError, match="known are flights, january, umts, mine, and"):
        load("min", seed=0)
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path / "mine.csv"))
    with pytest.raises(UsageError, match=r"STRAGGLER_DATA is .*, which is not a folder$"):
        load("iot_umts", seed=0)
    monkeypatch.setattr(inputs, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"pip install 'straggler\[data\]'"):
        load("flights", seed=0)


def test_times_of_another_form_are_named(tmp_path: Path) -> None:
    file = tmp_path / "iso.csv"
    file.write_text("event_time,value\n2026-03-01T08:00:01,1\n", encoding="utf-8")
    with pytest.raises(UsageError, match="is not a number of us; it looks like iso"):
        load(str(file), seed=0)


def test_the_bridge_has_its_sensors_and_examples(straggler: Straggler) -> None:
    files = [str(path) for path in examples("bridge")]
    assert straggler("script", "check", "--sensors", "munich_bridge", *files).code == 0


def test_a_file_without_times_arrives_as_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "hits.csv"
    path.write_text("page,bytes\nb,1\na,2\nb,3\n", encoding="utf-8")
    events = grouping.load(str(path), 0, Columns(key="page", value="bytes")).events
    found = [(event.key, event.value, event.event_time_us) for event in events]
    assert found == [("b", 1.0, 0), ("a", 2.0, 1), ("b", 3.0, 2)]
    path.write_text("key,value,event_time,arrival_time\nb,1,5,90\na,2,6,80\n", encoding="utf-8")
    events = grouping.load(str(path), 0, Columns()).events
    assert [(event.key, event.event_time_us) for event in events] == [("a", 6), ("b", 5)]


def case_of(name: str) -> Case:
    """Return the case of a named input, with defaults for all options."""
    names = ("r", "s", "on", "window_us", "lateness_us", "workers", "block_size")
    options = dict.fromkeys((*names, "credit", "batches", "idle_after_us"))
    found = JOIN.cases(Arguments(**options, input=[name], seed=0), DEFAULT_COLUMNS)
    return next(case for case in found if isinstance(case, Case))


@pytest.mark.parametrize(
    "name",
    [
        name if name == "stations" else pytest.param(name, marks=pytest.mark.long)
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
        trace = oracle_join(case.workload.with_(config=config))
        assert (REASON_LATE in {each.reason for each in trace.of(NoPair)}) == are_late


# Files of users on the command line: what becomes of their rows, and which option helps.


ONE = ("--window", "10s", "--slide", "10s", "--time-unit", "s", "--aggregate", "sum")
OUTPUT = ("--output", "work.jsonl")
MESSY = "event_time,value,key\n1,1,a\nsoon,2,a\n3,much,a\n12,4,a\n9,5,a\n30,6,a\n31,7\n"


def write(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text, encoding="utf-8")


def arrivals(folder: Path) -> list[list[Any]]:
    """Return the arrivals of the first workload."""
    line = (folder / "work.jsonl").read_text(encoding="utf-8").splitlines()[0]
    found: list[list[Any]] = json.loads(line)["arrivals"]
    return found


def test_a_messy_file_is_judged_and_its_bad_rows_are_told(
    straggler: Straggler, tmp_path: Path
) -> None:
    write(tmp_path, "messy.csv", MESSY)
    system = ("--control", "max", "--system", "model.slack:make_system", "--json", "verdict.json")
    done = straggler("diff", "slack", "--input", "messy.csv", *ONE, "--per", "key", *system)
    assert done.err == ""
    (line,) = [line for line in done.out.splitlines() if line.startswith("messy.csv: ")]
    for part in ("2 of 7 rows set aside: ", "(line 3)", "(line 8)", "'value' has 'much'"):
        assert part in line
    (row,) = json.loads((tmp_path / "verdict.json").read_text(encoding="utf-8"))
    (file,) = row["files"]
    assert (file["rows"], file["set_aside"], file["unit"]) == (7, 2, "line")
    assert sorted(each["places"] for each in file["reasons"]) == [[3], [8]]
    assert [each["places"] for each in file["without_value"]] == [[4]]


def test_standard_input_and_pipes_are_inputs(
    straggler: Straggler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(MESSY.encode())))
    done = straggler("workload", "slack", "--input", "-", *ONE, *OUTPUT)
    assert (done.code, done.err) == (0, "")
    assert "standard input: 2 of 7 rows set aside" in done.out
    of_stdin = arrivals(tmp_path)
    reading, writing = os.pipe()
    os.write(writing, MESSY.encode())
    os.close(writing)
    done = straggler("workload", "slack", "--input", f"/dev/fd/{reading}", *ONE, *OUTPUT)
    os.close(reading)
    assert (done.code, arrivals(tmp_path)) == (0, of_stdin)
    monkeypatch.setattr(sys, "stdin", None)
    closed = straggler("workload", "slack", "--input", "-", *OUTPUT)
    assert_refused(closed, "standard input is closed")


@pytest.mark.parametrize("room", ["slack", "grouping"])
def test_counts_and_routers_need_no_values(straggler: Straggler, tmp_path: Path, room: str) -> None:
    write(tmp_path, "visits.csv", "event_time,page\n1,a\n2,b\n")
    count = ("--aggregate", "count") if room == "slack" else ()
    ask = ("workload", room, "--input", "visits.csv", "--key", "page", *count, *OUTPUT)
    assert straggler(*ask).code == 0
    assert [(event[2], event[4]) for event in arrivals(tmp_path)] == [("a", 1.0), ("b", 1.0)]


@pytest.mark.parametrize("room", ["slack", "watermark", "grouping"])
def test_rows_far_beyond_their_arrival_are_set_aside(
    straggler: Straggler, tmp_path: Path, room: str
) -> None:
    write(tmp_path, "future.csv", "event_time,value,arrival_time\n1,1,2\n90000,2,3\n4,3,4\n")
    ask = ("workload", room, "--input", "future.csv", "--time-unit", "s", "--key", "value", *OUTPUT)
    for guard, kept in (
        ((), [1, 4]),
        (("--max-future", "none"), [1, 90_000, 4]),
        (("--max-future", "2d"), [1, 90_000, 4]),
    ):
        done = straggler(*ask, *guard)
        assert (done.code, "1 of 3 rows set aside" in done.out) == (0, not guard)
        assert [event[3] // 1_000_000 for event in arrivals(tmp_path)] == kept


def test_two_files_of_a_join_may_call_their_columns_differently(
    straggler: Straggler, tmp_path: Path
) -> None:
    write(tmp_path, "orders.csv", "at,item,price\n1,a,5\n2,b,6\n")
    write(tmp_path, "trades.csv", "when;name;paid\n1000;a;4\n")
    of_r = ("--event-time", "at", "--key", "item", "--value", "price", "--time-unit", "s")
    of_s = ("--s-event-time", "when", "--s-key", "name", "--s-value", "paid", "--s-time-unit", "ms")
    ask = ("workload", "join", "--r", "orders.csv", "--s", "trades.csv", *of_r, *OUTPUT)
    assert straggler(*ask, *of_s, "--s-separator", ";").code == 0
    found = sorted((event[6], *event[2:5]) for event in arrivals(tmp_path))
    assert found == [
        ("R", "a", 1_000_000, 5.0),
        ("R", "b", 2_000_000, 6.0),
        ("S", "a", 1_000_000, 4.0),
    ]
    other = straggler(*ask, "--s-separator", ";")
    assert_refused(other, "trades.csv has no column 'at'", "--s-event-time")


def test_a_join_on_keys_needs_no_values_and_one_on_values_no_keys(
    straggler: Straggler, tmp_path: Path
) -> None:
    write(tmp_path, "keys.csv", "event_time,key\n1,a\n")
    write(tmp_path, "values.csv", "event_time,value\n1,5\n")
    head = ("workload", "join", *OUTPUT)
    keys = (*head, "--r", "keys.csv", "--s", "keys.csv")
    values = (*head, "--r", "values.csv", "--s", "values.csv")
    assert straggler(*keys).code == 0
    assert_refused(straggler(*keys, "--on", "value within 2"), "no column 'value'")
    assert straggler(*values, "--on", "value >").code == 0
    assert_refused(straggler(*values), "--on is 'key'", "no keys in R and S", "--on any")
