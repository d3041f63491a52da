"""Text of users and their systems is read as what it says, or refused.

These doors are JSON (workloads and traces), texts of settings and of durations, and sentences that
quote a stranger. What is due is said with the standard library alone.
"""

import hashlib
import json
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from math import inf, isfinite, nan
from typing import Any, get_args, get_origin, get_type_hints

import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from model.vocabulary import (
    Event,
    Fault,
    GroupingConfig,
    JoinConfig,
    SlackConfig,
    Trace,
    WatermarkConfig,
    Workload,
    grouping,
    join,
    slack,
    watermark,
)
from model.vocabulary.durations import duration_us, parse_duration_us
from model.vocabulary.script import config as script
from model.vocabulary.settings import read_settings, settings_of
from model.vocabulary.texts import escaped, escaped_lines
from model.vocabulary.trace import TraceReader, field_types, parse_object, refuse_long_integers
from straggler.inputs.protocol import read_workloads, workload_line
from straggler.strategies import collect, workloads
from straggler.strategies.cells import BEYOND_ASCII, CONTROLS

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
TOO_LONG = (1 << 63, -(1 << 63) - 1)
TEXTS = st.text(max_size=4) | st.sampled_from([*BEYOND_ASCII, *CONTROLS, "", "NaN"])
NO_NUMBERS: Mapping[str, float] = {"NaN": nan, "Infinity": inf, "-Infinity": -inf}
HEADER = '{"trace":1,"producer":"x"}'

# ---------------------------------------------------------------------------- durations, settings

UNITS_US = {
    "us": 1,
    "ms": 1_000,
    "s": 10**6,
    "min": 60 * 10**6,
    "h": 3_600 * 10**6,
    "d": 86_400 * 10**6,
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 10**6,
    "minute": 60 * 10**6,
    "hour": 3_600 * 10**6,
    "day": 86_400 * 10**6,
    "week": 604_800 * 10**6,
}
NO_DURATIONS = ("", "5", "h", "1 h,", "- 1 h", "1. h", "1e3 s", "interval", "1 month", "2 ns", "3x")
NUMBERS = st.builds(
    lambda sign, whole, places: f"{sign}{Decimal(whole).scaleb(-places):f}",
    st.sampled_from(["", "+", "-"]),
    st.integers(0, 99) | st.sampled_from([86_400, 106_751_991, 106_751_992]),
    st.integers(0, 2),
)
SPELLED = [*UNITS_US, *(f"{unit}s" for unit in UNITS_US if len(unit) > 3), "H", "Days"]
BLANKS = st.sampled_from(["", " ", "  "])
PARTS = st.lists(st.tuples(NUMBERS, BLANKS, st.sampled_from(SPELLED)), min_size=1, max_size=3)


@given(PARTS, st.sampled_from(["", "interval ", "INTERVAL  "]), st.sampled_from(NO_DURATIONS))
def test_a_duration_is_the_sum_of_its_parts(
    parts: Sequence[tuple[str, str, str]], first: str, other: str
) -> None:
    text = f" {first}{' '.join(map(''.join, parts))} "
    units = [unit.lower() for _, _, unit in parts]
    of_unit = [UNITS_US.get(unit, UNITS_US.get(unit.removesuffix("s"), 0)) for unit in units]
    numbers = [Fraction(number) for number, *_ in parts]
    total = sum((number * us for number, us in zip(numbers, of_unit, strict=True)), Fraction())
    if total.denominator == 1 and abs(total) < 1 << 63:
        assert parse_duration_us(text) == duration_us("size", text) == total
        if 0 < total < 1 << 61:
            assert SlackConfig.of(size=text, slide="1 s").size_us == total
    else:
        with pytest.raises(ValueError, match=r"is longer than|is not a whole number"):
            parse_duration_us(text)
    for wrong in (other, f"{text}{other or ','}", f"{other or 'x'} {text}"):
        with pytest.raises(ValueError, match=r"^size: .* is not a duration"):
            duration_us("size", wrong)


@given(st.timedeltas() | st.timedeltas(timedelta(0), timedelta(2)))
def test_a_timedelta_is_its_number_of_microseconds(time: timedelta) -> None:
    assert duration_us("size", time) == time // timedelta(microseconds=1)
    one_more = pd.Timedelta(days=1) + pd.Timedelta(time.microseconds % 999 + 1, "ns")
    for wrong in (one_more, time.days, None):
        with pytest.raises(ValueError, match="size is "):
            duration_us("size", wrong)


CONFIGS: Mapping[str, Any] = {"slack": SlackConfig, "watermark": WatermarkConfig}
CONFIGS = {**CONFIGS, "join": JoinConfig, "grouping": GroupingConfig, "script": script.ScriptConfig}


@pytest.mark.parametrize("room", CONFIGS)
def test_settings_are_read_as_they_were_written(room: str, seed: int) -> None:
    for case in collect(workloads(room), 5, seed):
        config = CONFIGS[room].from_json(case.config)
        assert config == CONFIGS[room].from_json(json.loads(json.dumps(config.to_json())))
        known = settings_of(CONFIGS[room])
        known = {name: each for name, each in known.items() if getattr(config, name) != ()}
        texts = {name: each.write(getattr(config, name)) for name, each in known.items()}
        assert not any(each in ("True", "False", "None") for each in texts.values())
        found = read_settings(texts, known)
        assert found == {name: getattr(config, name) for name in known}


# -------------------------------------------------------------------------------------- workloads

EVENTS = st.builds(
    Event,
    seq=st.integers(0, 99),
    source_id=INT64,
    key=TEXTS,
    event_time_us=INT64,
    value=st.floats() | st.sampled_from([nan, inf, -inf, -0.0]),
    arrival_us=INT64,
    stream=st.sampled_from(["", "R", "S"]),
)
TELLING = (
    Event(0, -(1 << 63), BEYOND_ASCII[0], -(1 << 63), nan, 0),
    Event(1, (1 << 63) - 1, CONTROLS[0], 0, inf, 0),
    Event(2, 0, "", (1 << 63) - 1, -inf, 0),
)
"""Arrivals of every workload."""
PLAIN = st.none() | st.booleans() | INT64 | TEXTS
WORKLOADS = st.builds(
    lambda arrivals, cuts, **fields: Workload(
        arrivals=(*TELLING, *arrivals),
        cuts=tuple(sorted(min(cut, len(TELLING) + len(arrivals)) for cut in cuts)),
        **fields,
    ),
    room=TEXTS,
    arrivals=st.lists(EVENTS, max_size=4),
    config=st.dictionaries(TEXTS, PLAIN, max_size=3),
    cuts=st.lists(st.integers(0, 4), max_size=3),
    faults=st.lists(st.builds(Fault, st.just("kill"), st.integers(0, 9), TEXTS), max_size=2).map(
        tuple
    ),
    seed=INT64,
    flush=st.booleans(),
    name=TEXTS,
)


def value_in_file(value: float) -> float | str:
    """Return a value as JSON has it, which knows finite numbers alone."""
    if isfinite(value):
        return value
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
            [*event[:4], value_in_file(event.value), *event[5:]] for event in case.arrivals
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

ROOMS = (slack.WORDS, watermark.WORDS, grouping.WORDS, join.WORDS, script.WORDS)
WORDS = tuple(dict.fromkeys(word for words in ROOMS for word in words))
GOOD: Mapping[type, st.SearchStrategy[Any]] = {
    int: INT64,
    float: st.floats(allow_nan=False, allow_infinity=False),
    str: TEXTS,
    bool: st.booleans(),
}
BAD: Mapping[type, list[Any]] = {
    int: [True, *TOO_LONG, 0.5, "1", None, [1]],
    float: [True, "1.0", [1.0]],  # what is no number is for the judge
    str: [1, None, ["a"], "\ud800", "é\udfff", True],
    bool: [1, 0, "true", None, 1.0],
}
"""Values that a field of a type cannot have, as JSON has them."""
BLANKS_OF: Mapping[type, Any] = {int: 0, float: 0.0, str: "", bool: True}


def declared(word: Any) -> dict[str, tuple[type, bool]]:
    """Return the type of each field, and whether the field has several values of it."""
    hints = {name: get_type_hints(word)[name] for name in word._fields}
    return {
        name: (get_args(hint)[0], True) if get_origin(hint) is tuple else (hint, False)
        for name, hint in hints.items()
    }


def steps_of(word: type) -> st.SearchStrategy[Any]:
    """Draw a step of a kind."""
    fields = {
        name: st.lists(GOOD[kind], max_size=3).map(tuple) if is_tuple else GOOD[kind]
        for name, (kind, is_tuple) in declared(word).items()
    }
    return st.builds(word, **fields)


STEPS = st.sampled_from(WORDS).flatmap(steps_of)
TRACES = st.sampled_from(ROOMS).flatmap(
    lambda words: st.tuples(st.just(words), st.lists(st.one_of(*map(steps_of, words)), max_size=6))
)


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
    whole: list[Any] = [2.0, -1e15, 1e999, "NaN"] if kind is float else [2.0] * (kind is int)
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
    return kind(value)


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
    for wrong in (json.dumps([row]), "", " ", "{", "{} {}", "[" * 10**5):
        with pytest.raises(ValueError, match=r"is no JSON object|is empty|nested too deep"):
            parse_object(wrong)


@given(st.text() | st.lists(TEXTS).map("".join))
def test_a_text_of_strangers_shows_what_it_is(text: str) -> None:
    seen = [
        each
        if each.isprintable() or unicodedata.category(each) == "Zs"
        else each.encode("unicode_escape").decode()
        for each in text
    ]
    assert escaped(text) == "".join(seen)
    assert escaped_lines(text).split("\n") == [escaped(line) for line in text.split("\n")]
