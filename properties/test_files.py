"""Files of workloads and traces are read as what they say, or refused.

What is due is computed with the standard library alone.
"""

import hashlib
import json
from collections.abc import Mapping
from math import inf, isfinite, nan
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from model.vocabulary import Trace, Workload
from model.vocabulary.trace import TraceReader, field_types, parse_object, refuse_long_integers
from straggler.inputs.protocol import read_workloads, workload_line
from straggler.strategies.cells import BEYOND_ASCII
from straggler.strategies.traces import GOOD, INT64, STEPS, TEXTS, TRACES, WORKLOADS, declared

TOO_LONG = (1 << 63, -(1 << 63) - 1)
NO_NUMBERS: Mapping[str, float] = {"NaN": nan, "Infinity": inf, "-Infinity": -inf}
HEADER = '{"trace":1,"producer":"x"}'

# -------------------------------------------------------------------------------------- workloads


def value_in_file(value: Any) -> Any:
    """Return a value as JSON has it; a number that is not finite is a text there."""
    if not isinstance(value, float) or isfinite(value):
        return [*map(value_in_file, value)] if isinstance(value, tuple) else value
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"


@given(case=WORKLOADS)
def test_a_workload_is_read_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, case: Workload
) -> None:
    path = tmp_path_factory.getbasetemp() / "workload.json"
    case.write(path)
    text = path.read_text(encoding="utf-8")
    due = {
        "version": 1,
        "room": case.room,
        "name": case.name,
        "seed": case.seed,
        "config": case.config,
        "cuts": list(case.cuts),
        "flush": case.flush,
        "faults": [list(fault) for fault in case.faults],
        "arrivals": [
            [value_in_file(each) for each in row[: 7 + bool(row.more)]] for row in case.arrivals
        ],
    }
    assert json.loads(text, parse_constant=pytest.fail) == due
    assert BEYOND_ASCII[0] in text  # for people to read and edit
    # No value equals itself if it is not a number.
    assert repr(Workload.from_json(due)) == repr(case)
    in_order = sorted(case.arrivals, key=lambda event: event.arrival_us)
    events = [event._replace(seq=seq) for seq, event in enumerate(in_order)]
    judged = case.with_(arrivals=tuple(events))
    path.write_text(workload_line(judged), encoding="utf-8")
    assert repr(read_workloads(path)) == repr([judged])


# ----------------------------------------------------------------------------------------- traces

BAD: Mapping[type, list[Any]] = {
    int: [True, *TOO_LONG, 0.5, "1", None, [1]],
    float: [True, "1.0", [1.0]],  # NaN and infinities are for the judge
    str: [1, None, ["a"], "\ud800", "é\udfff", True],
    bool: [1, 0, "true", None, 1.0],
}
"""Values that a field of a type cannot have, as JSON has them."""
BLANKS_OF: Mapping[type, Any] = {int: 0, float: 0.0, str: "", bool: True}


def line_of(step: Any) -> dict[str, Any]:
    """Return a step as an object of JSON."""
    return {"kind": type(step).__name__.lower(), **step._asdict()}


def reader_of(word: type, *lines: str, **required: Any) -> TraceReader:
    """Return a reader that has read a header and some lines."""
    reader = TraceReader([word], **required)
    for line in (HEADER, *lines):
        assert reader.feed(line) is None
    return reader


@given(TRACES, TEXTS)
def test_a_trace_is_read_as_it_was_written(
    drawn: tuple[tuple[type, ...], list[Any]], producer: str
) -> None:
    words, steps = drawn
    trace = Trace(producer, steps)
    reader, *lines = TraceReader(words), *trace.lines()
    for _ in range(2):  # one trace after the other
        *before, again = map(reader.feed, lines)
        assert before == [None] * (len(steps) + 1)
    assert again is not None
    for wrong in (len(steps) + 1, len(steps) - 1, bool(steps), str(len(steps)), None):
        cut = TraceReader(words)
        for line in lines[:-1]:
            cut.feed(line)
        with pytest.raises(ValueError, match="the number of steps"):
            cut.feed(json.dumps({"end": wrong}))
    in_order = sorted(steps, key=lambda step: (type(step).__name__.lower(), tuple(step)))
    assert [*map(line_of, again.steps())] == [*map(line_of, in_order)]
    assert again.producer == producer
    written = [
        json.dumps(line_of(step), ensure_ascii=False, separators=(",", ":")) for step in in_order
    ]
    digest = hashlib.sha256("".join(f"{line}\n" for line in written).encode()).hexdigest()
    assert trace.digest() == again.digest() == digest


@given(STEPS, st.data())
def test_a_step_with_one_bad_value_is_refused(step: Any, data: st.DataObject) -> None:
    word, row = type(step), line_of(step)
    name, (kind, is_tuple) = data.draw(st.sampled_from([*declared(word).items()]))
    good, every_bad = row[name], BAD[kind]
    whole: list[Any] = [2.0, -(10**400), 1e999, "NaN"] if kind is float else [2.0] * (kind is int)
    if is_tuple:
        good = tuple(data.draw(st.lists(GOOD[kind], max_size=2)))
        at = data.draw(st.integers(0, len(good)))
        every_bad = [5, "a", None, *((*good[:at], each, *good[at:]) for each in every_bad)]
        whole = [(*good[:at], each, *good[at:]) for each in whole]
    allows = field_types(word)[name].allows
    assert allows(good)
    lines = [json.dumps({**row, name: each}) for each in (good, *whole)]
    reader = reader_of(word, *lines)
    for bad in every_bad:
        assert not allows(bad)
        with pytest.raises(ValueError, match=r"it must be|surrogate without the other"):
            reader.feed(json.dumps({**row, name: bad}))
    trace = reader.feed(json.dumps({"end": len(lines)}))
    assert trace is not None
    read = sorted(map(repr, (getattr(each, name) for each in trace.of(word))))
    numbers = [number_in(each, kind) for each in (good, *whole)]
    assert read == sorted(map(repr, numbers))


def number_in(value: Any, kind: type) -> Any:
    """Return a value of JSON as a field of a type holds it."""
    if isinstance(value, tuple):
        return tuple(number_in(each, kind) for each in value)
    return kind(value) if value != -(10**400) else -inf


@given(STEPS, st.data())
def test_a_field_may_be_missing_if_it_is_not_required(step: Any, data: st.DataObject) -> None:
    word, row = type(step), line_of(step)
    left_out = data.draw(st.sets(st.sampled_from(word._fields), min_size=1))
    kept = {name: value for name, value in row.items() if name not in left_out}
    with pytest.raises(ValueError, match=r"the field '.*' of .* step is missing"):
        reader_of(word, json.dumps(kept))
    required = {word: [name for name in word._fields if name not in left_out]}
    trace = reader_of(word, json.dumps(kept), required=required).feed('{"end":1}')
    blanks = {
        name: () if is_tuple else BLANKS_OF[kind]
        for name, (kind, is_tuple) in declared(word).items()
        if name in left_out
    }
    assert trace is not None
    assert [line_of(each) for each in trace.of(word)] == [{**row, **blanks}]


# ------------------------------------------------------------------------------------- any JSON

NESTED = st.recursive(
    st.none() | st.booleans() | INT64 | st.sampled_from(TOO_LONG) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


def has_long(data: Any) -> bool:
    """Return whether an integer in plain data has more than 64 bits."""
    if isinstance(data, dict | list):
        return any(map(has_long, data.values() if isinstance(data, dict) else data))
    return isinstance(data, int) and not -(1 << 63) <= data < 1 << 63


@example(data={"a": [{"b": 1 << 63}]}, lone="\ud800")
@given(data=NESTED, lone=st.characters(categories=["Cs"]))
def test_json_is_taken_whole_or_refused(data: Any, lone: str) -> None:
    if has_long(data):
        with pytest.raises(ValueError, match="it must be an integer of 64 bits"):
            refuse_long_integers(data)
    else:
        refuse_long_integers(data)
    row = {"a": data, "é": "\U0001f600"}
    for text in (json.dumps(row), json.dumps(row, ensure_ascii=False)):
        assert parse_object(text) == row
    for name, value in NO_NUMBERS.items():
        assert repr(parse_object(f'{{"a":[{name}]}}', has_constants=True)) == repr({"a": [value]})
        with pytest.raises(ValueError, match=f"^{name} is no JSON number"):
            parse_object(f'{{"a":[{name}]}}')
    for wrong in (json.dumps({**row, "b": [lone]}), json.dumps({lone: row})):
        with pytest.raises(ValueError, match="surrogate without the other"):
            parse_object(wrong)
    said = {"": "is empty", " ": "is empty", "[" * 10**5: "nested too deep"}
    for wrong in (*said, json.dumps([row]), "{", "{} {}"):
        with pytest.raises(ValueError, match=said.get(wrong, "is no JSON object")):
            parse_object(wrong)
