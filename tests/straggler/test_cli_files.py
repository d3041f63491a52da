"""Files of users on the command line, without Spark: what works, and which option is named."""

import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.straggler.command import Straggler, assert_refused

MODEL = "model.slack:make_system"
WINDOWS = ("--window", "10s", "--slide", "10s", "--control", "max", "--time-unit", "s")
ONE = (*WINDOWS, "--aggregate", "sum", "--per", "key")
MESSY = "event_time,value,key\n1,1,a\nsoon,2,a\n3,much,a\n12,4,a\n9,5,a\n30,6,a\n31,7\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "messy.csv").write_text(MESSY, encoding="utf-8")
    return tmp_path


def workloads(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "work.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_a_messy_file_is_judged_and_its_bad_rows_are_told(
    straggler: Straggler, folder: Path
) -> None:
    ask = ("--input", "messy.csv", *ONE, "--system", MODEL, "--json", "verdict.json")
    done = straggler("diff", "slack", *ask)
    assert done.err == ""
    (line,) = [line for line in done.out.splitlines() if line.startswith("messy.csv: ")]
    assert "2 of 7 rows set aside: " in line
    assert "(line 3)" in line
    assert "2 fields where its header has 3 (line 8)" in line
    assert "'value' has 'much'" in line
    (row,) = json.loads((folder / "verdict.json").read_text(encoding="utf-8"))
    (file,) = row["files"]
    assert (file["file"], file["rows"], file["set_aside"], file["unit"]) == (
        "messy.csv",
        7,
        2,
        "line",
    )
    assert sorted(each["places"] for each in file["reasons"]) == [[3], [8]]
    assert [each["places"] for each in file["without_value"]] == [[4]]


@pytest.mark.parametrize("command", ["diff", "workload"])
def test_a_strict_command_refuses_bad_rows_and_writes_nothing(
    straggler: Straggler, folder: Path, command: str
) -> None:
    system = ("--system", MODEL) if command == "diff" else ("--output", "work.jsonl")
    done = straggler(command, "slack", "--input", "messy.csv", *ONE, *system, "--strict")
    assert_refused(done, "messy.csv: 2 of 7 rows", "line 3", "line 4", "line 8", "--strict")
    assert [path.name for path in folder.iterdir()] == ["messy.csv"]


def test_a_clean_file_says_nothing(straggler: Straggler, folder: Path) -> None:
    (folder / "clean.csv").write_text("event_time,value\n1,1\n2,1\n", encoding="utf-8")
    done = straggler("workload", "slack", "--input", "clean.csv", *ONE, "--output", "work.jsonl")
    assert (done.code, done.err, "clean.csv" in done.out) == (0, "", False)


def test_standard_input_and_pipes_are_inputs(
    straggler: Straggler, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(MESSY.encode())))
    done = straggler("workload", "slack", "--input", "-", *ONE, "--output", "work.jsonl")
    assert (done.code, done.err) == (0, "")
    assert "standard input: 2 of 7 rows set aside" in done.out
    of_stdin = workloads(folder)
    reading, writing = os.pipe()
    os.write(writing, MESSY.encode())
    os.close(writing)
    pipe = f"/dev/fd/{reading}"
    done = straggler("workload", "slack", "--input", pipe, *ONE, "--output", "work.jsonl")
    os.close(reading)
    assert (done.code, done.err) == (0, "")
    assert [each["arrivals"] for each in workloads(folder)] == [
        each["arrivals"] for each in of_stdin
    ]


def test_a_closed_standard_input_is_one_sentence(
    straggler: Straggler, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    done = straggler("workload", "slack", "--input", "-", "--output", "work.jsonl")
    assert_refused(done, "standard input is closed")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("diff all --input -", "every room reads its input"),
        ("diff slack --input - --input -", "it is named twice"),
        ("workload slack --output w.jsonl --input - --input -", "it is named twice"),
    ],
)
def test_a_pipe_that_would_be_read_twice_is_refused(
    straggler: Straggler, words: str, why: str
) -> None:
    assert_refused(straggler(*words.split()), "--input '-' is a pipe", why)


def test_two_files_are_not_both_standard_input(straggler: Straggler) -> None:
    done = straggler("workload", "join", "--r", "-", "--s", "-", "--output", "work.jsonl")
    assert_refused(done, "--r and --s are both standard input")


@pytest.mark.parametrize("room", ["slack", "watermark"])
def test_a_count_needs_no_values(straggler: Straggler, folder: Path, room: str) -> None:
    (folder / "visits.csv").write_text("event_time,page\n1,a\n2,b\n", encoding="utf-8")
    ask = ("workload", room, "--input", "visits.csv", "--key", "page", "--output", "work.jsonl")
    assert straggler(*ask, "--aggregate", "count").code == 0
    assert {event[4] for each in workloads(folder) for event in each["arrivals"]} == {1.0}
    done = straggler(*ask, "--aggregate", "count", "--aggregate", "sum")
    assert_refused(done, "no column 'value' (--value names another)")
    done = straggler(*ask, "--aggregate", "count", "--value", "fare")
    assert_refused(done, "no column 'fare'; its columns are event_time, page")


def test_a_file_without_a_header_has_numbered_columns(straggler: Straggler, folder: Path) -> None:
    (folder / "bare.csv").write_text("a,1,5\nb,2,6\n", encoding="utf-8")
    ask = ("workload", "slack", "--input", "bare.csv", *ONE, "--output", "work.jsonl")
    columns = ("--event-time", "2", "--value", "3", "--key", "1")
    assert_refused(straggler(*ask, *columns), "--header none calls the columns 1, 2, ...")
    assert straggler(*ask, *columns, "--header", "none").code == 0
    (each,) = workloads(folder)
    assert [event[2:5] for event in each["arrivals"]] == [
        ["a", 1_000_000, 5.0],
        ["b", 2_000_000, 6.0],
    ]
    for wrong in ("0", "-1", "no", "1.5"):
        assert_refused(straggler(*ask, "--header", wrong), "--header", repr(wrong))


def test_grouping_needs_no_values(straggler: Straggler, folder: Path) -> None:
    (folder / "visits.csv").write_text("page\na\nb\na\n", encoding="utf-8")
    ask = ("--input", "visits.csv", "--key", "page", "--output", "work.jsonl")
    assert straggler("workload", "grouping", *ask).code == 0


def test_too_many_keys_for_a_task_each_leave_one_task_for_all(
    straggler: Straggler, folder: Path
) -> None:
    rows = "".join(f"{n},1,user{n}\n" for n in range(3_000))
    (folder / "users.csv").write_text(f"event_time,value,key\n{rows}", encoding="utf-8")
    ask = ("workload", "watermark", "--input", "users.csv", "--output", "work.jsonl")
    done = straggler(*ask)
    assert (done.code, done.out.count("sum per task"), done.out.count("per device")) == (0, 1, 0)
    done = straggler(*ask, "--per", "device")
    assert_refused(done, "3,000 keys, too many for --per device", "--per key or --per task")
    done = straggler(*ask[:2], "--input", "messy.csv", "--time-unit", "s", *ask[4:], "--tasks", "3")
    assert (done.code, done.out.count("per device")) == (0, 0)


# ---------------------------------------------------------------------------- the future guard

FUTURE = "event_time,value,arrival_time\n1,1,2\n90000,2,3\n4,3,4\n"


def events(folder: Path) -> list[int]:
    (each, *_) = workloads(folder)
    return [event[3] // 1_000_000 for event in each["arrivals"]]


@pytest.mark.parametrize(
    ("guard", "kept"),
    [
        ((), [1, 4]),
        (("--max-future", "none"), [1, 90_000, 4]),
        (("--max-future", "2d"), [1, 90_000, 4]),
    ],
)
@pytest.mark.parametrize("room", ["slack", "watermark", "grouping"])
def test_rows_far_beyond_their_arrival_are_set_aside(
    straggler: Straggler, folder: Path, room: str, guard: tuple[str, ...], kept: list[int]
) -> None:
    (folder / "future.csv").write_text(FUTURE, encoding="utf-8")
    key = ("--key", "value") if room == "grouping" else ()
    ask = ("--input", "future.csv", "--time-unit", "s", *key, "--output", "work.jsonl")
    done = straggler("workload", room, *ask, *guard)
    assert (done.code, done.err) == (0, "")
    assert events(folder) == kept
    assert ("1 of 3 rows set aside" in done.out) == (not guard)


def test_a_guard_without_arrivals_is_refused(straggler: Straggler, folder: Path) -> None:
    ask = ("--input", "messy.csv", "--time-unit", "s", "--max-future", "1h", "--output", "w.jsonl")
    assert_refused(straggler("workload", "slack", *ask), "--max-future needs", "--arrival names")
    for room in ("slack", "watermark", "join", "grouping", "script"):
        done = straggler("workload", room, "--max-future", "1h", "--output", "w.jsonl")
        assert_refused(done, "--max-future is for files with --arrival", "is no file")
    done = straggler("workload", "slack", "--max-future", "soon", "--output", "w.jsonl")
    assert_refused(done, "--max-future: 'soon'", "none")
    for room in ("slack", "join", "script"):
        done = straggler("workload", room, "--max-future=-1d", "--output", "w.jsonl")
        assert_refused(done, "--max-future: '-1d' is negative; write a duration >= 0, or none")


# ------------------------------------------------------------------------------------- joins


def test_two_files_may_call_their_columns_differently(straggler: Straggler, folder: Path) -> None:
    (folder / "orders.csv").write_text("at,item,price\n1,a,5\n2,b,6\n", encoding="utf-8")
    (folder / "trades.csv").write_text("when;name;paid\n1000;a;4\n", encoding="utf-8")
    of_r = ("--event-time", "at", "--key", "item", "--value", "price", "--time-unit", "s")
    of_s = ("--s-event-time", "when", "--s-key", "name", "--s-value", "paid")
    ask = ("--r", "orders.csv", "--s", "trades.csv", *of_r, "--output", "work.jsonl")
    done = straggler("workload", "join", *ask, *of_s, "--s-time-unit", "ms", "--s-separator", ";")
    assert (done.code, done.err) == (0, "")
    (each,) = workloads(folder)
    found = sorted((event[6], *event[2:5]) for event in each["arrivals"])
    assert found == [
        ("R", "a", 1_000_000, 5.0),
        ("R", "b", 2_000_000, 6.0),
        ("S", "a", 1_000_000, 4.0),
    ]
    done = straggler("workload", "join", *ask, "--s-separator", ";")
    assert_refused(done, "trades.csv has no column 'at'", "--s-event-time")


def test_a_join_on_keys_needs_no_values(straggler: Straggler, folder: Path) -> None:
    (folder / "a.csv").write_text("event_time,key\n1,a\n", encoding="utf-8")
    ask = ("workload", "join", "--r", "a.csv", "--s", "a.csv", "--output", "work.jsonl")
    assert straggler(*ask).code == 0
    assert_refused(straggler(*ask, "--on", "value within 2"), "no column 'value'")


def test_nothing_is_late_in_a_join_unless_asked(straggler: Straggler, folder: Path) -> None:
    (folder / "r.csv").write_text("event_time,value,key\n20,1,a\n9,1,a\n30,,a\n", encoding="utf-8")
    (folder / "s.csv").write_text("event_time,value,key\n7,1,a\n5,1,a\n9,1,a\n", encoding="utf-8")
    files = (
        "--r",
        "r.csv",
        "--s",
        "s.csv",
        "--time-unit",
        "s",
        "--system",
        "model.join:make_system",
    )
    done = straggler("diff", "join", *files, "--json", "verdict.json")
    assert "none late (lateness 11s)" in " ".join(done.out.split())
    (row,) = json.loads((folder / "verdict.json").read_text(encoding="utf-8"))
    assert (row["rejected"], row["config"]["lateness_us"]) == (1, 11_000_000), "not finite"
    done = straggler("diff", "join", *files, "--lateness", "10s", "--json", "verdict.json")
    assert "late after 10s" in " ".join(done.out.split())
    (row,) = json.loads((folder / "verdict.json").read_text(encoding="utf-8"))
    assert row["rejected"] == 2


# ------------------------------------------------------------------------------------ scripts


@pytest.mark.parametrize("command", [("script", "run"), ("diff", "script", "--script")])
def test_a_sensor_that_is_not_in_the_file_is_named_with_those_there_are(
    straggler: Straggler, folder: Path, command: tuple[str, ...]
) -> None:
    (folder / "mine.script").write_text('x = avg("q", 4_000, 2_000)\n', encoding="utf-8")
    (folder / "readings.csv").write_text("at,value,key\n1,1,left\n2,1,right\n", encoding="utf-8")
    ask = (*command, "mine.script", "--input", "readings.csv", "--event-time", "at")
    done = straggler(*ask)
    assert (done.code, done.out) == (2, "")
    assert "there is no sensor and no earlier name 'q'; there are left, right" in done.err
