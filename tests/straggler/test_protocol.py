"""``straggler workload`` and ``straggler judge``: two files, no Spark, any language."""

import io
import json
import operator
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from model.vocabulary.trace import TraceReader, field_types, kind_of
from straggler.inputs.protocol import parse_workload, workload_line
from straggler.inputs.schemas import FOLDER
from straggler.rooms import Room, find_room, room_names
from tests.house.repository import ROOT
from tests.straggler.command import Straggler, assert_refused
from tests.straggler.small_workloads import drawn, windows

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
    assert "agrees with the reference in 4 matches" in done.out
    (row,) = json.loads(work.with_name("verdict.json").read_text(encoding="utf-8"))
    assert (row["level"], row["reference"], row["verdict"]) == ("answers", "model", "holds")
    kept = [line for line in lines if '"match"' not in line][:-1]
    put(work, [*kept, json.dumps({"end": len(kept) - 1})])
    lost = straggler("judge", "work.jsonl", "trace.jsonl")
    assert lost.code == 1
    assert "no pair lost: r #0" in lost.out


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
        assert not is_valid(row, schema("workload")) or "name" in changes
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


# ---------------------------------- the part of JSON Schema that the published schemas use


TYPES: Mapping[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "null": type(None),
    "number": (int, float),
    "integer": (int, float),
}
Checks = Mapping[str, Callable[[Any, Any], bool]]
"""Checks of a value by keyword; each gets the value and what the schema asks for."""


def is_valid(value: Any, schema: dict[str, Any]) -> bool:
    """Return whether a value obeys a schema; fail for a keyword that is not known here."""
    known = NOTES | OF_ALL.keys() | OF_NUMBERS.keys() | OF_OBJECTS.keys() | OF_ARRAYS.keys()
    assert schema.keys() <= known, schema.keys() - known
    checks = dict(OF_ALL)
    if isinstance(value, dict):
        checks.update(OF_OBJECTS)
        if not schema.get("additionalProperties", True) and value.keys() - schema["properties"]:
            return False
    elif isinstance(value, list):
        checks.update(OF_ARRAYS)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        checks.update(OF_NUMBERS)
    return all(checks[name](value, asked) for name, asked in schema.items() if name in checks)


def _has_type(value: Any, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    is_whole = name != "integer" or not isinstance(value, float) or value.is_integer()
    return isinstance(value, TYPES[name]) and is_whole


def _equals(value: Any, other: Any) -> bool:
    return bool(value == other) and type(value) is type(other)


NOTES = {"$schema", "title", "description", "additionalProperties"}
OF_ALL: Checks = {
    "type": _has_type,
    "const": _equals,
    "enum": lambda value, asked: any(_equals(value, each) for each in asked),
    "oneOf": lambda value, asked: sum(is_valid(value, each) for each in asked) == 1,
    "anyOf": lambda value, asked: any(is_valid(value, each) for each in asked),
}
OF_NUMBERS: Checks = {
    "minimum": operator.ge,
    "maximum": operator.le,
    "exclusiveMinimum": operator.gt,
    "exclusiveMaximum": operator.lt,
}
OF_OBJECTS: Checks = {
    "required": lambda value, asked: value.keys() >= set(asked),
    "properties": lambda value, asked: all(
        is_valid(value[name], each) for name, each in asked.items() if name in value
    ),
}
OF_ARRAYS: Checks = {
    "minItems": lambda value, asked: len(value) >= asked,
    "maxItems": lambda value, asked: len(value) <= asked,
    "items": lambda value, asked: all(is_valid(each, asked) for each in value),
    "prefixItems": lambda value, asked: all(map(is_valid, value, asked)),
}


# ---------------------------------------------------------------- schemas and reader agree


def schema(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.schema.json").read_text(encoding="utf-8"))
    return found


def is_read(room: Room, row: dict[str, Any]) -> bool:
    """Return whether the reader takes a line, as the header or after one."""
    reader = TraceReader(room.words, room.answers)
    try:
        if "trace" not in row:
            reader.feed('{"trace":1}')
        reader.feed(json.dumps(row))
    except ValueError:
        return False
    return True


def spoilt(row: dict[str, Any], data: st.DataObject) -> dict[str, Any]:
    """Return a line without a field, with one more, or with another value of one."""
    name = data.draw(st.sampled_from(sorted(row)))
    values: st.SearchStrategy[Any] = st.sampled_from(
        [None, True, 0, -1, 2.0, 2.5, 1 << 63, "", "a", [], [1], [2.5], {}]
    )
    how = data.draw(st.sampled_from(["drop", "add", "change", "keep"]))
    if how == "drop":
        return {key: value for key, value in row.items() if key != name}
    if how == "keep":
        return row
    return row | {name if how == "change" else "more": data.draw(values)}


@pytest.mark.parametrize(
    "name",
    [
        each if each in ("slack", "join") else pytest.param(each, marks=pytest.mark.long)
        for each in room_names()
    ],
)
def test_schema_and_reader_take_the_same_lines(name: str, seed: int) -> None:
    room, published = find_room(name), schema(f"trace-{name}")
    rows: dict[str, dict[str, Any]] = {}
    for workload in drawn(name, seed):
        row = json.loads(workload_line(workload), parse_constant=pytest.fail)
        assert is_valid(row, schema("workload"))
        assert repr(parse_workload(row)) == repr(workload)  # not a number is not itself
    for workload in drawn(name, seed)[:20]:
        for line in room.reference()(workload).lines():
            row = json.loads(line)
            rows.setdefault(row.get("kind", min(row)), row)
    rows["end"] = {"end": 0}
    numbers = {
        kind_of(word): [name for name, each in field_types(word).items() if each == (float, False)]
        for word in room.words
    }

    @given(st.data())
    def agree(data: st.DataObject) -> None:
        kind = data.draw(st.sampled_from(sorted(rows)))
        row = spoilt(rows[kind], data)
        if row.get("end", 0) == 0:  # a schema cannot know the number of steps
            # A null number is read, so that the judge can name it.
            nulls = [name for name in numbers.get(kind, ()) if row.get(name, ...) is None]
            told = row | dict.fromkeys(nulls, 0.0)
            assert is_valid(told, published) == is_read(room, row), row
            assert told == row or not is_valid(row, published)

    agree()
    assert len(rows) > len(room.answers)


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
