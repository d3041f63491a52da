"""Workloads, plans, traces and durations are read as they were written; others are refused."""

import hashlib
import json
from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from math import inf, nan
from typing import Any, get_args, get_origin, get_type_hints

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.vocabulary import (
    Event,
    Fault,
    SlackConfig,
    Trace,
    Workload,
    grouping,
    join,
    slack,
    watermark,
)
from model.vocabulary.durations import duration_us, parse_duration_us
from model.vocabulary.script import config as script
from model.vocabulary.trace import TraceReader, field_types
from sim.kernel.plain import from_plain, to_plain
from straggler.strategies import grouping as grouping_strategies
from straggler.strategies import streams

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
TEXTS = st.text(max_size=4) | st.sampled_from(["", "Zürich", "日本", "NaN", '"\\\n', "\U0001f600"])

# --------------------------------------------------------------------------------------- durations

UNITS_US = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
OTHER_WORDS = ("5", "h", "1 h,", "- 1 h", "1. h", "1e3 s", "interval")
UNKNOWN = ("month", "year", "ns", "sec", "hs", "mins", "x")
NUMBERS = st.builds(
    lambda sign, whole, places: f"{sign}{Decimal(whole).scaleb(-places):f}",
    st.sampled_from(["", "+", "-"]),
    st.integers(0, 99) | st.sampled_from([86_400, 106_751_991, 106_751_992]),
    st.integers(0, 2),
)
SPELLED = [
    *UNITS_US,
    *(f"{unit}s" for unit in UNITS_US if len(unit) > 3),
    *(unit.upper() for unit in UNITS_US),
]
PARTS = st.lists(
    st.tuples(NUMBERS, st.sampled_from(["", " ", "  "]), st.sampled_from(SPELLED)),
    min_size=1,
    max_size=3,
)


def text_of(parts: list[tuple[str, str, str]], first: str = "") -> str:
    """Return a duration as a person writes it."""
    return f" {first}{' '.join(map(''.join, parts))} "


@given(PARTS, st.sampled_from(["", "interval ", "INTERVAL  "]))
def test_a_duration_is_the_sum_of_its_parts(parts: list[tuple[str, str, str]], first: str) -> None:
    text = text_of(parts, first)
    total = Fraction()
    for number, _, unit in parts:
        name = unit.lower()
        total += Fraction(number) * UNITS_US.get(name, UNITS_US.get(name.removesuffix("s"), 0))
    if total.denominator == 1 and abs(total) < 1 << 63:
        assert parse_duration_us(text) == total
        if 0 < total < 1 << 61:
            assert SlackConfig.of(size=text, slide="1 s").size_us == total
    else:
        with pytest.raises(ValueError, match=r"is longer than|is not a whole number"):
            parse_duration_us(text)


@given(PARTS, st.sampled_from(UNKNOWN), st.integers(0, 3), st.sampled_from(OTHER_WORDS))
def test_a_duration_with_other_words_is_refused(
    parts: list[tuple[str, str, str]], unit: str, at: int, words: str
) -> None:
    unknown = [*parts[:at], ("1", " ", unit), *parts[at:]]
    for text in (text_of(unknown), words, f"{text_of(parts)}{words}"):
        with pytest.raises(ValueError, match="is not a duration"):
            parse_duration_us(text)


@given(st.timedeltas() | st.timedeltas(timedelta(0), timedelta(2)))
def test_a_timedelta_is_its_number_of_microseconds(time: timedelta) -> None:
    assert duration_us("size", time) == time // timedelta(microseconds=1)
    one_more = pd.Timedelta(days=1) + pd.Timedelta(time.microseconds % 999 + 1, "ns")
    with pytest.raises(ValueError, match="size is Timedelta"):
        duration_us("size", one_more)


# --------------------------------------------------------------------------------------- workloads

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
WORKLOADS = st.builds(
    lambda arrivals, cuts, **fields: Workload(
        arrivals=tuple(arrivals),
        cuts=tuple(sorted(min(cut, len(arrivals)) for cut in cuts)),
        **fields,
    ),
    room=TEXTS,
    arrivals=st.lists(EVENTS, max_size=4),
    config=st.dictionaries(TEXTS, st.none() | st.booleans() | INT64 | TEXTS, max_size=3),
    cuts=st.lists(st.integers(0, 4), max_size=3),
    faults=st.lists(st.builds(Fault, TEXTS, st.integers(0, 9), TEXTS), max_size=2).map(tuple),
    seed=st.integers(0, 1 << 63),
    flush=st.booleans(),
    name=TEXTS,
)


def value_in_file(value: float) -> float | str:
    """Return a value as JSON has it, which knows finite numbers alone."""
    if value in (inf, -inf):
        return "Infinity" if value > 0 else "-Infinity"
    return "NaN" if value != value else value


@given(WORKLOADS)
def test_a_workload_is_read_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, case: Workload
) -> None:
    path = tmp_path_factory.getbasetemp() / "workload.json"
    case.write(path)
    written = json.loads(path.read_text(encoding="utf-8"), parse_constant=pytest.fail)
    assert written == {
        "version": 1,
        "room": case.room,
        "name": case.name,
        "seed": case.seed,
        "config": case.config,
        "cuts": list(case.cuts),
        "faults": [list(fault) for fault in case.faults],
        "flush": case.flush,
        "arrivals": [
            [*event[:4], value_in_file(event.value), *event[5:]] for event in case.arrivals
        ],
    }
    # No value equals itself if it is not a number.
    assert repr(Workload.from_json(written)) == repr(case)


@given(case=streams.timed_cases() | grouping_strategies.timed_cases())
def test_a_plan_comes_back_from_its_file(case: Any) -> None:
    plan = case.timing.plan
    # No value equals itself if it is not a number.
    assert repr(from_plain(json.loads(json.dumps(to_plain(plan))))) == repr(plan)


# ------------------------------------------------------------------------------------------ traces

WORDS = tuple(
    dict.fromkeys((*slack.WORDS, *watermark.WORDS, *grouping.WORDS, *join.WORDS, *script.WORDS))
)
ROOMS = (slack.WORDS, watermark.WORDS, grouping.WORDS, join.WORDS, script.WORDS)
GOOD: Mapping[type, st.SearchStrategy[Any]] = {
    int: INT64,
    float: st.floats(allow_nan=False, allow_infinity=False),
    str: TEXTS,
    bool: st.booleans(),
}
BAD: Mapping[type, list[Any]] = {
    int: [True, 1 << 63, -(1 << 63) - 1, 0.5, "1", None, [1]],
    float: [True, "1.0", [1.0]],  # what is no number is for the judge
    str: [1, None, ["a"], "\ud800", "é\udfff", True],
    bool: [1, 0, "true", None, 1.0],
}
"""Values that a field of a type cannot have, as JSON has them."""
BLANKS: Mapping[type, Any] = {int: 0, float: 0.0, str: "", bool: True}


def declared(word: Any) -> dict[str, tuple[type, bool]]:
    """Return the type of each field, and whether the field has several values of it."""
    hints = get_type_hints(word)
    found = {}
    for name in word._fields:
        is_tuple = get_origin(hints[name]) is tuple
        found[name] = get_args(hints[name])[0] if is_tuple else hints[name], is_tuple
    return found


def steps_of(words: tuple[type, ...]) -> st.SearchStrategy[Any]:
    """Draw a step of one of some kinds."""
    return st.one_of(
        [
            st.builds(
                word,
                **{
                    name: st.lists(GOOD[kind], max_size=3).map(tuple) if is_tuple else GOOD[kind]
                    for name, (kind, is_tuple) in declared(word).items()
                },
            )
            for word in words
        ]
    )


TRACES = st.sampled_from(ROOMS).flatmap(
    lambda words: st.tuples(st.just(words), st.lists(steps_of(words), max_size=6))
)
HEADER = '{"trace":1,"producer":"x"}'


def line_of(step: Any) -> dict[str, Any]:
    """Return a step as an object of JSON."""
    return {"kind": type(step).__name__.lower(), **step._asdict()}


@given(TRACES, TEXTS)
def test_a_trace_is_read_as_it_was_written(
    drawn: tuple[tuple[type, ...], list[Any]], producer: str
) -> None:
    words, steps = drawn
    trace = Trace(producer, steps)
    reader = TraceReader(words)
    *before, again = map(reader.feed, trace.lines())
    assert before == [None] * (len(steps) + 1)
    assert again is not None
    for wrong in (len(steps) + 1, len(steps) - 1, bool(steps), str(len(steps)), None):
        *lines, _ = trace.lines()
        cut = TraceReader(words)
        for line in lines:
            cut.feed(line)
        with pytest.raises(ValueError, match="the number of steps"):
            cut.feed(json.dumps({"end": wrong}))
    in_order = sorted(steps, key=lambda step: (type(step).__name__.lower(), tuple(step)))
    assert [*map(line_of, again.steps())] == [*map(line_of, in_order)]
    assert again.producer == producer
    lines = [
        json.dumps(line_of(step), ensure_ascii=False, separators=(",", ":")) for step in in_order
    ]
    digest = hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()
    assert trace.digest() == again.digest() == digest


@given(st.sampled_from(WORDS).flatmap(lambda word: steps_of((word,))), st.data())
def test_a_step_with_one_bad_value_is_refused(step: Any, data: st.DataObject) -> None:
    word, row = type(step), line_of(step)
    name, (kind, is_tuple) = data.draw(st.sampled_from([*declared(word).items()]))
    good, every_bad = row[name], BAD[kind]
    if is_tuple:
        good = tuple(data.draw(st.lists(GOOD[kind], max_size=2)))
        at = data.draw(st.integers(0, len(good)))
        every_bad = [5, "a", None, *((*good[:at], each, *good[at:]) for each in every_bad)]
    allows = field_types(word)[name].allows
    assert allows(good)
    reader = TraceReader([word])
    reader.feed(HEADER)
    reader.feed(json.dumps({**row, name: good}))
    for bad in every_bad:
        assert not allows(bad)
        with pytest.raises(ValueError, match=r"it must be|surrogate without the other"):
            reader.feed(json.dumps({**row, name: bad}))


@given(st.sampled_from(WORDS).flatmap(lambda word: steps_of((word,))), st.data())
def test_a_field_may_be_missing_if_it_is_not_required(step: Any, data: st.DataObject) -> None:
    word, row = type(step), line_of(step)
    left_out = data.draw(st.sets(st.sampled_from(word._fields), min_size=1))
    kept = {name: value for name, value in row.items() if name not in left_out}
    strict = TraceReader([word])
    strict.feed(HEADER)
    with pytest.raises(ValueError, match=r"the field '.*' of .* step is missing"):
        strict.feed(json.dumps(kept))
    reader = TraceReader([word], {word: [name for name in word._fields if name not in left_out]})
    reader.feed(HEADER)
    reader.feed(json.dumps(kept))
    trace = reader.feed('{"end":1}')
    blanks = {
        name: () if is_tuple else BLANKS[kind]
        for name, (kind, is_tuple) in declared(word).items()
        if name in left_out
    }
    assert trace is not None
    assert [line_of(each) for each in trace.of(word)] == [{**row, **blanks}]
