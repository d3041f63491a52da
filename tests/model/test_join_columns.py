"""Columns of room ``join`` by hand: conditions as text, and what is refused."""

import re
from typing import Any

import pytest
from hypothesis import given

from model.checking.claims import Outcome
from model.join.claims import judge
from model.join.oracle import admission
from model.join.state_claims import LOST
from model.vocabulary import Event, JoinConfig, Trace, Workload
from model.vocabulary.iso_times import parse_time_us, write_time
from model.vocabulary.join import And, Apart, Band, Between, Equi, Ineq, Predicate, R, S, Where
from model.vocabulary.join_conditions import parse_condition, write_condition
from model.vocabulary.join_predicates import (
    check_predicate,
    parts_of,
    predicate_from_json,
    predicate_to_json,
)
from straggler.strategies.columns import R_COLUMNS, S_COLUMNS, predicates

HOUR_US = 3_600_000_000
MARCH_US = 1_393_632_000_000_000
"""1 March 2014, midnight."""
CONFIG = JoinConfig(9, (("all", And()),), r_columns=R_COLUMNS, s_columns=S_COLUMNS)
KINDS = CONFIG.kinds()
BIG = (1 << 53) + 1
"""An integer that float64 rounds."""

# -------------------------------------------------------------------------------------- conditions


@pytest.mark.parametrize(
    ("text", "predicate"),
    [
        (" any ", And()),
        ("key and value  within 2", And((Equi("key"), Band("value", 2.0)))),
        ("r.pm25 apart 2e300 of s.value", Apart("pm25", 2e300, "value")),
        ("value <", Ineq("value", "<", "value")),
        ("r.pm25 <= s.pm10", Ineq("pm25", "<=", "pm10")),
        ("0s <= s.at - r.at <= 1h", Between("at", 0, HOUR_US)),
        ("-1.5 <= s.pm10 - r.pm25", Between("pm25", -1.5, None, "pm10")),
        ('s.site = "Dongsi"', Where(S, "site", "=", "Dongsi")),
    ],
)
def test_a_condition_is_read(text: str, predicate: Predicate) -> None:
    assert parse_condition(text, KINDS[R], KINDS[S]) == predicate


@pytest.mark.parametrize(
    ("text", "usual"),
    [
        ("s.clicked = r.ad", "r.ad = s.clicked"),
        ("s.pm10 > r.pm25", "r.pm25 < s.pm10"),
        ("s.pm10 within 2 of r.pm25", "r.pm25 within 2 of s.pm10"),
        ("r.at - s.at <= 1h", "-1h <= s.at - r.at"),
        ("-1<=r.ad-s.clicked<=4", "-4 <= s.clicked - r.ad <= 1"),
        ("R.pm25  <  2", "r.pm25 < 2"),
        ("r.ok = s.ok", "ok"),
        ("s.site = 'a \\ \"b\"'", 's.site = "a \\\\ \\"b\\""'),
        ('r.at > "2014-03-01 08:00+08:00"', 'r.at > "2014-03-01T00:00:00Z"'),
    ],
)
def test_a_condition_is_written_in_one_way(text: str, usual: str) -> None:
    predicate = parse_condition(text, KINDS[R], KINDS[S])
    assert write_condition(predicate, KINDS[R], KINDS[S]) == usual


@given(predicate=predicates(R_COLUMNS, S_COLUMNS))
def test_a_condition_is_read_as_it_was_written(predicate: Predicate) -> None:
    check_predicate("q", predicate, KINDS[R], KINDS[S])
    parts = tuple(parts_of(predicate))
    text = write_condition(predicate, KINDS[R], KINDS[S])
    assert parse_condition(text, KINDS[R], KINDS[S]) == (
        parts[0] if len(parts) == 1 else And(parts)
    )
    assert predicate_from_json(predicate_to_json(predicate)) == predicate


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("pm25 within 1", "S has no column 'pm25'"),
        ("r.ok <= true", "R's ok is a boolean, which has no order"),
        ("r.ad within 2.5 of s.clicked", "'2.5' in 'r.ad within 2.5 of s.clicked' is not an int"),
        ("value within 1e999", "eps is inf"),
        ("r.site = 3", "'3' in 'r.site = 3' is not a text in quotes"),
        ("at apart -1min", "'-1min' in 'at apart -1min' is negative"),
        ("value within -2", "'-2' in 'value within -2' is negative"),
        ("r.ad = 9223372036854775808", "R's ad is an integer, which 9223372036854775808 is not"),
        ("", "'' is not a condition: write key"),
        ("pm25 > 100", "'pm25 > 100' is not a condition"),
        ("r.pm25", "is not a condition"),
        ("r.pm25 = r.pm25", "is not a condition"),
        ("value within 2 of", "is not a condition"),
        ("any and key", "is not a condition"),
        ("s.pm10 - s.pm10 <= 1", "is not a condition"),
        ('s.site = "a', "is not a text in quotes"),
    ],
)
def test_another_text_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        parse_condition(text, KINDS[R], KINDS[S])


@pytest.mark.parametrize(
    ("text", "time_us"),
    [
        ("1970-01-01", 0),
        ("2014-03-01T00:30", MARCH_US + HOUR_US // 2),
        ("2016-02-29 23:59:59.5-00:30", 1_456_792_199_500_000),
        ("+294247-01-10T04:00:54.775807Z", (1 << 63) - 1),
        ("-290308-12-21T19:59:05.224193Z", -(1 << 63) + 1),
    ],
)
def test_a_time_is_read_and_written(text: str, time_us: int) -> None:
    assert parse_time_us(text) == time_us
    assert parse_time_us(write_time(time_us)) == time_us


@pytest.mark.parametrize("text", ["2015-02-29", "2014-13-01", "2014-03-01T24:00", "03/01/2014"])
def test_a_time_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a time"):
        parse_time_us(text)


# ------------------------------------------------------------------------ configurations and tuples

ROW = (1.0, 7, MARCH_US, True, "a")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"r_columns": [["pm25", "float"]]}, "the kind of 'pm25' in r_columns is 'float'"),
        ({"s_columns": [["ts", "time"]]}, "a column of s_columns is 'ts'; it must be none of key"),
        ({"r_columns": [["event_time_us", "time"]]}, "is 'event_time_us'; it must be none of key"),
        ({"r_columns": [["any", "text"]]}, "is 'any'; it must be letters, digits and _"),
        ({"r_columns": [["a b", "text"]]}, "is 'a b'; it must be letters, digits and _"),
        ({"r_columns": [["a", "text"], ["a", "time"]]}, "is 'a'; it must be named once"),
        ({"r_columns": [["a"]]}, "it must be pairs of a name and a kind"),
        ({"r_columns": 3}, "it must be pairs of a name and a kind"),
        ({"queries": [["q", ["band", "event_time", 1.0]]]}, "64 bits, in microseconds, which 1.0"),
        ({"queries": [["q", ["band", "value", BIG]]]}, "is no number of float64"),
        (
            {"queries": [["q", ["where", "R", "value", "=", "x"]]]},
            "R's value is a number, which 'x' is not",
        ),
        ({"queries": [["q", ["where", "R", "value", "=", BIG]]]}, "is no number of float64"),
    ],
)
def test_columns_that_do_not_fit_are_refused(given: dict[str, object], sentence: str) -> None:
    data = {"window_us": 5, "queries": [["q", ["and"]]], **given}
    with pytest.raises(ValueError, match=re.escape(sentence)):
        JoinConfig.from_json(data)


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ((), "tuple 7 of R has 0 values for 5 columns: ()"),
        (("x", *ROW[1:]), "pm25 of tuple 7 of R is 'x'; it must be a number, or nothing"),
        ((1.0, -(1 << 63), *ROW[2:]), "ad of tuple 7 of R is -9223372036854775808; it must be an"),
        ((1.0, 7.0, *ROW[2:]), "ad of tuple 7 of R is 7.0; it must be an integer, or nothing"),
        ((*ROW[:3], 1, "a"), "ok of tuple 7 of R is 1; it must be a boolean, or nothing"),
    ],
)
def test_a_tuple_with_other_values_is_refused(more: tuple[Any, ...], sentence: str) -> None:
    odd = Event(0, 7, "a", 0, 0.0, 0, R)._replace(more=more)
    with pytest.raises(ValueError, match=re.escape(sentence)):
        admission(Workload("join", (odd,), CONFIG.to_json()))


def test_an_unknown_stream_is_refused() -> None:
    config = JoinConfig(2, (("all", And()),))
    with pytest.raises(ValueError, match="stream is 'T'"):
        admission(Workload("join", (Event(0, 0, "a", 0, 0.0, 0, "T"),), config.to_json()))


def test_a_lost_pair_is_told_with_its_columns() -> None:
    config = JoinConfig(9, (("all", And()),), r_columns=(("x", "number"),))
    one, other = Event(0, 0, "a", 0, 0.0, 0, R, (None,)), Event(1, 0, "b", 0, 0.0, 0, S)
    workload = Workload("join", (one, other), config.to_json())
    found = {each.claim: each for each in judge(workload, Trace("none", [])).verdicts}[LOST]
    assert found.outcome is Outcome.BROKEN
    assert "r #0 (at 0, key 'a', value 0, x None)" in found.sentence
