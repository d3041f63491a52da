"""``straggler workload`` and ``straggler judge``: two files, no Spark, any language."""

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from straggler.inputs.protocol import parse_workload, workload_line
from straggler.rooms import find_room
from tests.house.repository import ROOT
from tests.straggler.command import Straggler, assert_refused
from tests.straggler.small_workloads import windows

ORDERS = "event_time,key,value\n10,a,1\n20,a,2\n15,b,3\n60,a,4\n"
TRADES = "event_time,key,value\n12,a,7\n30,a,5\n16,b,1\n2,a,9\n65,a,3\n"
ASK = ("--r", "r.csv", "--s", "s.csv", "--time-unit", "s", "--window", "10s", "--lateness", "5s")


@pytest.fixture
def work(straggler: Straggler, tmp_path: Path) -> Path:
    """Write a file with the workload of a join."""
    (tmp_path / "r.csv").write_text(ORDERS, encoding="utf-8")
    (tmp_path / "s.csv").write_text(TRADES, encoding="utf-8")
    done = straggler("workload", "join", *ASK, "--on", "key", "--output", "work.jsonl")
    assert (done.code, done.err) == (0, "")
    assert "line 1: r.csv, s.csv, key, +-10s, late after 5s, 9 arrivals" in done.out
    return tmp_path / "work.jsonl"


def answers(work: Path) -> list[str]:
    """Return the lines of the right traces of all workloads in a file."""
    workloads = [parse_workload(json.loads(line)) for line in work.read_text("utf-8").splitlines()]
    traces = [find_room(each.room).reference()(each) for each in workloads]
    return [line for trace in traces for line in trace.lines()]


def put(work: Path, lines: list[str]) -> Path:
    path = work.with_name("trace.jsonl")
    path.write_text("".join(lines), encoding="utf-8")
    return path


def test_right_answers_hold_and_wrong_ones_are_broken(straggler: Straggler, work: Path) -> None:
    lines = answers(work)
    put(work, lines)
    done = straggler("judge", "work.jsonl", "trace.jsonl", "--json", "verdict.json")
    assert (done.code, done.err) == (0, ""), done.out
    assert "agrees with the reference.\njoin: 4 matches" in done.out
    (row,) = json.loads(work.with_name("verdict.json").read_text(encoding="utf-8"))
    assert (row["level"], row["reference"], row["verdict"]) == ("answers", "model", "holds")
    kept = [line for line in lines if '"match"' not in line][:-1]
    put(work, [*kept, json.dumps({"end": len(kept) - 1})])
    lost = straggler("judge", "work.jsonl", "trace.jsonl")
    assert lost.code == 1
    assert "no pair lost: r #2" in lost.out


def test_times_are_told_in_the_unit_of_the_input(straggler: Straggler, tmp_path: Path) -> None:
    for unit, ticks in {"s": 1, "ms": 1_000, "us": 1_000_000}.items():
        for name in ("r.csv", "s.csv"):
            text = f"key,event_time,value\na,{100 * ticks},1\nb,{107 * ticks},2\n"
            (tmp_path / name).write_text(text, encoding="utf-8")
        asked = ["--r", "r.csv", "--s", "s.csv", "--time-unit", unit, "--window", "5s"]
        straggler("workload", "join", *asked, "--on", "key", "--output", "work.jsonl")
        put(tmp_path / "work.jsonl", ['{"trace": 1}\n', '{"end": 0}\n'])
        told = straggler("judge", "work.jsonl", "trace.jsonl").out
        at = f"{100 * ticks}" if unit == "us" else f"{100 * ticks} {unit}"
        assert f"r #2 (at {at}, key 'a', value 1) with" in told
    work = (tmp_path / "work.jsonl").read_text(encoding="utf-8")
    (tmp_path / "work.jsonl").write_text(work.replace('"us"', '"h"'), encoding="utf-8")
    refused = straggler("judge", "work.jsonl", "trace.jsonl")
    assert_refused(refused, "line 1: time_unit is 'h'; it must be one of us, ms, s, ns, iso")


def test_a_sentence_is_told_once_with_times_as_people_write_them(
    straggler: Straggler, tmp_path: Path
) -> None:
    for name in ("r.csv", "s.csv"):
        (tmp_path / name).write_text(
            "key,event_time,value\na,2026-03-01T09:00:00,1\nb,2026-03-01T09:00:07,2\n",
            encoding="utf-8",
        )
    asked = ["--r", "r.csv", "--s", "s.csv", "--time-unit", "iso", "--window", "5s"]
    straggler("workload", "join", *asked, "--on", "key", "--output", "work.jsonl")
    put(tmp_path / "work.jsonl", ['{"trace": 1}\n', '{"end": 0}\n'])
    told = straggler("judge", "work.jsonl", "trace.jsonl").out
    assert "r #2 (at 2026-03-01T09:00:00Z, key 'a', value 1) with" in told
    assert ", ," not in told
    sentences = [
        line.rpartition(": ")[2].partition(". (")[0].strip(".") for line in told.splitlines()
    ]
    assert not [each for each in sentences if each and sentences.count(each) > 1], told


def test_a_dash_is_standard_output_or_standard_input(
    straggler: Straggler, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = straggler("workload", "join", *ASK, "--on", "key", "--output", "-")
    assert (done.code, done.out) == (0, work.read_text("utf-8"))
    assert "straggler judge WORKLOAD TRACE" in done.err
    assert not work.with_name("-").exists()
    for text, code in (("".join(answers(work)), 0), ('{"trace":1}\nmore\n', 2)):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        judged = straggler("judge", "work.jsonl", "-", "--json", "-")
        assert judged.code == code
    assert_refused(judged, "standard input, line 2: 'more' is no JSON object")
    assert_refused(straggler("judge", "-", "-"), "only one can be standard input")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no file that is always full")
def test_a_full_disk_below_standard_output_is_one_sentence(work: Path) -> None:
    put(work, answers(work))
    command = f"{sys.executable} -m straggler.cli.main judge {work.name} trace.jsonl > /dev/full"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, shell=True, cwd=work.parent, env=environment, capture_output=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.decode().splitlines()[-1] == (
        "straggler: the output cannot be written: No space left on device."
    )


BAD_FIELDS: tuple[dict[str, Any], ...] = (
    {"flush": "no"},
    {"version": 3},
    {"seed": 1.5},
    {"cuts": ["a"]},
    {"name": "\udc00"},
    {"cut": []},
    {"faults": ...},
    {"arrivals": [[0, 1, "k", "2026-01-01", 1, 0, "R"]]},
)


def test_a_bad_field_of_a_workload_is_refused(
    straggler: Straggler, work: Path, snapshot: SnapshotAssertion
) -> None:
    put(work, answers(work))
    right, said = json.loads(work.read_text(encoding="utf-8")), []
    for changes in BAD_FIELDS:
        row = {name: value for name, value in (right | changes).items() if value is not ...}
        work.write_text(json.dumps(row) + "\n", encoding="utf-8")
        done = straggler("judge", "work.jsonl", "trace.jsonl")
        assert_refused(done, "work.jsonl, line 1")
        said += [repr(changes), done.err.removeprefix("straggler: ").rstrip()]
    assert "\n".join(said) == snapshot


def test_half_a_trace_is_refused(straggler: Straggler, work: Path) -> None:
    ask = ("judge", "work.jsonl", "trace.jsonl")
    put(work, answers(work)[:-1])
    assert_refused(straggler(*ask), "after line", "trace 1 of 1 has no end")
    put(work, answers(work)).write_bytes(b'{"trace":1}\n\xff\n')
    assert_refused(straggler(*ask), "line 2: the text is not UTF-8")
    work.write_text("", encoding="utf-8")
    assert_refused(straggler(*ask), "work.jsonl is empty")


@pytest.mark.parametrize("written", ["NaN", "-Infinity", '"NaN"', "1e999", "null", "9" * 5000])
def test_an_answer_that_is_no_number_is_broken_and_named(
    straggler: Straggler, tmp_path: Path, written: str
) -> None:
    (tmp_path / "w.jsonl").write_text(workload_line(windows()), encoding="utf-8")
    lines = list(find_room("slack").reference()(windows()).lines())
    number = next(n for n, line in enumerate(lines) if '"kind":"final"' in line)
    start_us = json.loads(lines[number])["start_us"]
    lines[number] = re.sub(r'"value":[^,}]*', f'"value":{written}', lines[number])
    (tmp_path / "t.jsonl").write_text("".join(lines), encoding="utf-8")
    done = straggler("judge", "w.jsonl", "t.jsonl", "--kinds", "final", "--json", "v.json")
    assert (done.code, done.err) == (1, "")
    assert f"start_us {start_us}, " in done.out
    value = "Infinity" if written[0] in "19" else written.strip('"')
    assert f" is {value}; it must be a finite number" in done.out
    (row,) = json.loads((tmp_path / "v.json").read_text(encoding="utf-8"))
    assert row["mismatches"] == 1, "every other step is judged as usual"


def test_no_answer_at_all_is_broken_unless_none_was_due(
    straggler: Straggler, tmp_path: Path
) -> None:
    (tmp_path / "t.jsonl").write_text('{"trace":1}\n{"end":0}\n', encoding="utf-8")
    for workload, code in ((windows(), 1), (windows().with_(arrivals=(), cuts=()), 3)):
        (tmp_path / "w.jsonl").write_text(workload_line(workload), encoding="utf-8")
        assert straggler("judge", "w.jsonl", "t.jsonl", "--kinds", "final").code == code
