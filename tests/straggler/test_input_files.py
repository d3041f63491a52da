"""Files of users on the command line: what becomes of their rows, and which option helps."""

import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.straggler.command import Straggler, assert_refused

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


@pytest.mark.parametrize("room", ["slack", "watermark", "grouping"])
def test_counts_and_routers_need_no_values(straggler: Straggler, tmp_path: Path, room: str) -> None:
    write(tmp_path, "visits.csv", "event_time,page\n1,a\n2,b\n")
    count = () if room == "grouping" else ("--aggregate", "count")
    ask = ("workload", room, "--input", "visits.csv", "--key", "page", *count, *OUTPUT)
    assert straggler(*ask).code == 0
    assert [(event[2], event[4]) for event in arrivals(tmp_path)] == [("a", 1.0), ("b", 1.0)]
    if count:
        more = straggler(*ask, "--aggregate", "sum")
        assert_refused(more, "no column 'value' (--value names another)")


def test_a_file_without_a_header_has_numbered_columns(straggler: Straggler, tmp_path: Path) -> None:
    write(tmp_path, "bare.csv", "a,1,5\nb,2,6\n")
    columns = ("--event-time", "2", "--value", "3", "--key", "1")
    ask = ("workload", "slack", "--input", "bare.csv", *ONE, *OUTPUT, *columns)
    assert_refused(straggler(*ask), "--header none calls the columns 1, 2, ...")
    assert straggler(*ask, "--header", "none").code == 0
    assert [event[2:5] for event in arrivals(tmp_path)] == [
        ["a", 1_000_000, 5.0],
        ["b", 2_000_000, 6.0],
    ]


@pytest.mark.parametrize(
    ("guard", "kept"), [("", [1, 4]), ("none", [1, 90_000, 4]), ("2d", [1, 90_000, 4])]
)
@pytest.mark.parametrize("room", ["slack", "watermark", "grouping"])
def test_rows_far_beyond_their_arrival_are_set_aside(
    straggler: Straggler, tmp_path: Path, room: str, guard: str, kept: list[int]
) -> None:
    write(tmp_path, "future.csv", "event_time,value,arrival_time\n1,1,2\n90000,2,3\n4,3,4\n")
    more = (*(("--key", "value") if room == "grouping" else ()), *OUTPUT)
    more += ("--max-future", guard) if guard else ()
    done = straggler("workload", room, "--input", "future.csv", "--time-unit", "s", *more)
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


@pytest.mark.parametrize("command", [("script", "run"), ("diff", "script", "--script")])
def test_a_sensor_that_is_not_in_the_file_is_named_with_those_there_are(
    straggler: Straggler, tmp_path: Path, command: tuple[str, ...]
) -> None:
    write(tmp_path, "mine.script", 'x = avg("q", 4_000, 2_000)\n')
    write(tmp_path, "readings.csv", "at,value,key\n1,1,left\n2,1,right\n")
    done = straggler(*command, "mine.script", "--input", "readings.csv", "--event-time", "at")
    assert (done.code, done.out) == (2, "")
    assert "there is no sensor and no earlier name 'q'; there are left, right" in done.err
