"""Conditions of room ``join`` on rows of any values: as text, as JSON, and by two readings."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from model.join.predicates import holds
from model.vocabulary import Event
from model.vocabulary.join import And, Predicate, R, S
from model.vocabulary.join_conditions import parse_condition, write_condition
from model.vocabulary.join_predicates import (
    NUMBER,
    TEXT,
    TIME,
    Columns,
    check_predicate,
    kinds_of,
    parts_of,
    predicate_from_json,
    predicate_to_json,
)
from properties.oracles.windows import matches
from properties.promised import Reached, promised
from straggler.strategies.columns import ODD, R_COLUMNS, S_COLUMNS, SORTS, USUAL, predicates

R_KINDS, S_KINDS = kinds_of(R_COLUMNS), kinds_of(S_COLUMNS)


@st.composite
def rows(draw: st.DrawFn, stream: str, columns: Columns) -> tuple[Event, dict[str, Any]]:
    """Draw a tuple, and the same as plain data in which NaN is missing."""
    more = {name: draw(st.sampled_from([*USUAL[kind], *ODD[kind]])) for name, kind in columns}
    key, value, at_us = (draw(st.sampled_from(USUAL[kind])) for kind in (TEXT, NUMBER, TIME))
    plain = {name: None if each != each else each for name, each in more.items()}
    event = Event(0, 0, key, at_us, value, 0, stream, tuple(more.values()))
    return event, {"key": key, "value": value, "event_time": at_us, **plain}


@given(predicate=predicates(R_COLUMNS, S_COLUMNS))
def test_a_condition_is_read_as_it_was_written(predicate: Predicate) -> None:
    check_predicate("q", predicate, R_KINDS, S_KINDS)
    parts = tuple(parts_of(predicate))
    text = write_condition(predicate, R_KINDS, S_KINDS)
    assert parse_condition(text, R_KINDS, S_KINDS) == (parts[0] if len(parts) == 1 else And(parts))
    assert predicate_from_json(predicate_to_json(predicate)) == predicate


@promised(*(f"{sort.__name__}: {found}" for sort in SORTS for found in (True, False)), examples=500)
@given(predicate=predicates(R_COLUMNS, S_COLUMNS), r=rows(R, R_COLUMNS), s=rows(S, S_COLUMNS))
def test_two_readings_of_a_condition_agree(
    reached: Reached,
    predicate: Predicate,
    r: tuple[Event, dict[str, Any]],
    s: tuple[Event, dict[str, Any]],
) -> None:
    for each in (predicate, *parts_of(predicate)):
        found = holds(each, r[0], s[0], R_COLUMNS, S_COLUMNS)
        assert found == matches(predicate_to_json(each), r[1], s[1])
        reached.add({f"{type(each).__name__}: {found}": 1})
