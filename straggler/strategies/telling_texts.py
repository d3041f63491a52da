"""Texts of users with what they are read as, and the nearest ones that cannot be read.

Expected values are written by hand, or are those of Python's calendar.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from functools import partial
from math import nan
from typing import Any

from model.join.oracle import admission
from model.script import run
from model.vocabulary import Event, GroupingConfig, JoinConfig, ScriptConfig, Trace, Workload
from model.vocabulary.durations import (
    duration_us,
    parse_duration_us,
    write_duration,
    write_rough_duration,
)
from model.vocabulary.grouping import Answer
from model.vocabulary.iso_times import DAY_US, parse_time_us, write_time
from model.vocabulary.join import (
    And,
    Apart,
    Band,
    Between,
    Equi,
    Ineq,
    Predicate,
    R,
    Rejected,
    S,
    Where,
)
from model.vocabulary.join_conditions import parse_condition, write_condition
from model.vocabulary.join_predicates import check_columns, kinds_of
from model.vocabulary.script.tree import Sensor, Statement, Window, Workflow
from model.vocabulary.trace import TraceReader, describe_bad_step
from straggler.strategies.columns import R_COLUMNS, S_COLUMNS

HOUR_US = 3_600_000_000
MARCH_US = 1_393_632_000_000_000
"""1 March 2014, midnight."""
LONGEST_US = (1 << 63) - 1
ANSWER = Answer(0, "a", 2, 3.0, 1.0, 2.0, 2, (2.0, 1.0))
KINDS = kinds_of(R_COLUMNS), kinds_of(S_COLUMNS)
YEARS_BY_DAY = (1900, 1996, 1999, 2000, 2400)


def _parse(text: str) -> Predicate:
    return parse_condition(text, *KINDS)


def _rewrite(text: str) -> str:
    return write_condition(_parse(text), *KINDS)


def _days() -> Iterator[tuple[str, int]]:
    """Yield every day of some years with its number of microseconds since 1970."""
    for year in YEARS_BY_DAY:
        for n in range(366):
            day = date(year, 1, 1) + timedelta(n)
            yield str(day), (day - date(1970, 1, 1)).days * DAY_US


CONDITIONS: Mapping[str, Predicate] = {
    " any ": And(),
    "key and value  within 2": And((Equi("key"), Band("value", 2.0))),
    "value within 0": Band("value", 0.0),
    "r.pm25 apart 2e300 of s.value": Apart("pm25", 2e300, "value"),
    "value <": Ineq("value", "<", "value"),
    "r.pm25 <= s.pm10": Ineq("pm25", "<=", "pm10"),
    "0s <= s.at - r.at <= 1h": Between("at", 0, HOUR_US),
    "-1.5 <= s.pm10 - r.pm25": Between("pm25", -1.5, None, "pm10"),
    "1 <= s.clicked - r.ad <= 1": Between("ad", 1, 1, "clicked"),
    's.site = "Dongsi"': Where(S, "site", "=", "Dongsi"),
    "r.ok != false": Where(R, "ok", "!=", False),
}
"""Predicates, by the conditions that are read as them."""
USUAL: Mapping[str, str] = {
    " any ": "any",
    "s.clicked = r.ad": "r.ad = s.clicked",
    "s.pm10 > r.pm25": "r.pm25 < s.pm10",
    "s.pm10 within 2 of r.pm25": "r.pm25 within 2 of s.pm10",
    "r.at - s.at <= 1h": "-1h <= s.at - r.at",
    "-1<=r.ad-s.clicked<=4": "-4 <= s.clicked - r.ad <= 1",
    "R.pm25  <  2": "r.pm25 < 2",
    "r.ok = s.ok": "ok",
    "value apart 1234567.5": "value apart 1234567.5",
    "s.site = 'a \\ \"b\"'": 's.site = "a \\\\ \\"b\\""',
    "r.site != 'é'": 'r.site != "é"',
    'r.at > "2014-03-01 08:00+08:00"': 'r.at > "2014-03-01T00:00:00Z"',
}
"""The one way in which a condition is written, by another way."""
NO_CONDITIONS: Mapping[str, str] = {
    "pm25 within 1": "S has no column 'pm25'",
    "r": "R has no column 'r'",
    "r.pm26 = 3": "query 'r.pm26 = 3': R has no column 'pm26'",
    "r.ok <= true": "R's ok is a boolean, which has no order",
    "r.ok = 1": "'1' in 'r.ok = 1' is not true or false",
    "r.ad within 2.5 of s.clicked": "'2.5' in 'r.ad within 2.5 of s.clicked' is not an integer",
    "r.ad = 2h": "'2h' in 'r.ad = 2h' is not an integer",
    "value within 2h": "'2h' in 'value within 2h' is not a number",
    "value within 1e999": "eps is inf",
    "r.site = 3": "'3' in 'r.site = 3' is not a text in quotes",
    "r.site = b": "'b' in 'r.site = b' is neither r.b nor s.b; a text stands in quotes",
    'r.pm25 = "a"': "is not a plain number",
    "at apart -1us": "'-1us' in 'at apart -1us' is negative",
    "value within -2": "'-2' in 'value within -2' is negative",
    "2 <= s.clicked - r.ad <= 1": "'2' in '2 <= s.clicked - r.ad <= 1' is more than '1'",
    "r.ad = 9223372036854775808": "R's ad is an integer, which 9223372036854775808 is not",
    "": "'' is not a condition: write key",
    "key and valeu > 2": "did you mean 'value'?",
    "pm25 > 100": "'pm25 > 100' is not a condition",
    "key = 3": "'key = 3' is not a condition",
    "r.pm25": "is not a condition",
    "r.pm25 = r.pm25": "is not a condition",
    "r.of = 3": "is not a condition",
    "t.site = 'a'": "is not a condition",
    "value within": "is not a condition",
    "value within 2 of": "is not a condition",
    "r.pm25 within 2 s.pm10": "is not a condition",
    "any and key": "is not a condition",
    "s.pm10 - s.pm10 <= 1": "is not a condition",
    "1 < s.clicked - r.ad": "is not a condition",
    "1 <= s.clicked r.ad": "is not a condition",
    's.site = "a': "is not a text in quotes",
    's.site = "\\q"': "is not a condition",
}
"""Reasons, by the texts that are refused for them."""
TIMES: Mapping[str, int] = {
    "1970-01-01": 0,
    "2014-03-01T00:30": MARCH_US + HOUR_US // 2,
    "2014-03-01T23:59:59+23:59": MARCH_US + 59_000_000,
    "2016-02-29 23:59:59.5-00:30": 1_456_792_199_500_000,
    "+294247-01-10T04:00:54.775807Z": LONGEST_US,
    "-290308-12-21T19:59:05.224193Z": -LONGEST_US,
    **dict(_days()),
}
"""Microseconds since 1970, by the times that stand for them."""
NO_TIMES = (
    "2015-02-29",
    "2014-13-01",
    "2014-00-01",
    "2014-03-00",
    "2014-03-01T24:00",
    "2014-03-01T00:60",
    "2014-03-01T00:00:60",
    "2014-03-01T00:00+00:60",
    "2014-03-01T00:00+24:00",
    "03/01/2014",
)
YEARS = {
    -62_167_219_200_000_001: "-0001-12-31T23:59:59.999999Z",
    -62_167_219_200_000_000: "0000-01-01T00:00:00Z",
    253_402_300_799_900_000: "9999-12-31T23:59:59.9Z",
    253_402_300_800_000_000: "+10000-01-01T00:00:00Z",
    LONGEST_US: "+294247-01-10T04:00:54.775807Z",
}
"""Times as they are written, from year to year."""
ROUGHLY = {0: "0s", 7: "7us", 999: "999us", 601_100_000: "601s", 12_345_678: "12300ms"}

READ: Sequence[tuple[Callable[[Any], object], Any, object]] = (
    *((_parse, text, predicate) for text, predicate in CONDITIONS.items()),
    *((_rewrite, text, usual) for text, usual in USUAL.items()),
    *((parse_time_us, text, time_us) for text, time_us in TIMES.items()),
    *((write_time, time_us, f"{text}T00:00:00Z") for text, time_us in _days()),
    *((write_time, time_us, text) for time_us, text in YEARS.items()),
    *((write_rough_duration, us, text) for us, text in ROUGHLY.items()),
    (write_duration, 0, "0s"),
    (write_duration, 90_000_000, "90s"),
    (
        lambda given: GroupingConfig.of(**given).latency_us,
        {"instances": 1, "latency": ["1ms"]},
        (1_000,),
    ),
    (
        lambda given: GroupingConfig.of(**given).latency_us,
        {"instances": 1, "latency_us": [7]},
        (7,),
    ),
    (lambda policy: "later_tiers" in GroupingConfig(2, policy).to_json(), "tag", False),
    (lambda policy: "later_tiers" in GroupingConfig(2, policy).to_json(), "nag-dynamic", True),
    (
        lambda pairs: GroupingConfig(1, later_tiers=pairs).to_json()["later_tiers"],
        ((1, (2,)),),
        [[1, [2]]],
    ),
    (GroupingConfig(2).times_of, 0, (1, 1)),
    (GroupingConfig(2).tiers_of, 0, (0, 0)),
    (
        lambda key: [*Trace("x", [Rejected(key, 1, 2, "a")]).lines()][1],
        "é",
        '{"kind":"rejected","stream":"é","seq":1,"source_id":2,"reason":"a"}\n',
    ),
    (lambda name: Workload("join", (), {}, name=name) == Workload("join", (), {}), "x", True),
    (lambda unit: Workload("join", (), {}, time_unit=unit) == Workload("join", (), {}), "ms", True),
)
"""Functions, what they are given, and what they return."""


def _feed(lines: Sequence[str]) -> None:
    reader = TraceReader(())
    for number, line in enumerate(lines):
        assert reader.is_between == (number == 0)
        reader.feed(line)
    assert reader.is_between


def _record(given: Mapping[str, Any], *, is_judged: bool = False) -> None:
    """Record an answer with other values, as a system does, or hand it to the judge."""
    step = Answer(**{**ANSWER._asdict(), **given})
    if reason := describe_bad_step(step, [Answer], passes_no_numbers=not is_judged):
        raise ValueError(reason)


def _measure(event_time_us: int) -> None:
    """Let the model admit a reading of a script."""
    flow = Workflow("w", (Statement("x", Window("sum", Sensor("a"), 1, 1)),))
    config = ScriptConfig((flow,), (("a", 1),)).to_json()
    event = Event(0, 0, "a", event_time_us, 1.0, 0)
    run(Workload("script", (event,), config, flush=False))


def _admit(own: Mapping[str, Any]) -> None:
    """Admit a tuple of R that has columns."""
    config = JoinConfig(9, (("all", And()),), r_columns=R_COLUMNS)
    event = Event(0, 7, "a", 0, 0.0, 0, R, ROW)._replace(**own)
    admission(Workload("join", (event,), config.to_json()))


HEADER = '{"trace":1}'
ROW = (1.0, 7, MARCH_US, True, "a")
TEXTS_READ: Mapping[str, Callable[[Any], object]] = {
    "condition": _parse,
    "time": parse_time_us,
    "duration": parse_duration_us,
    "timedelta": lambda delta: duration_us("size", delta),
    "columns": lambda columns: check_columns("r_columns", columns),
    "offered": _admit,
    "queries": lambda queries: JoinConfig(5, queries),
    "measured": _measure,
    "lines": _feed,
    "recorded": _record,
    "judged": partial(_record, is_judged=True),
}
MOST = timedelta(microseconds=LONGEST_US)
OF_TEXTS: Sequence[tuple[str, Any, Any, str]] = (
    *(("condition", "any", text, said) for text, said in NO_CONDITIONS.items()),
    *(("time", "1970-01-01", text, "is not a time") for text in NO_TIMES),
    ("duration", f"{LONGEST_US}us", f"{LONGEST_US + 1}us", "us' is longer than 9,223,372,036,854"),
    ("timedelta", MOST, MOST + timedelta(microseconds=1), "longer than 9,223,372,036,854"),
    ("columns", (("a", "text"),), [("a", "text")], "it must be a tuple of names and kinds"),
    ("columns", (("a", "text"),), (("a",),), "it must be a pair of a name and a kind"),
    ("columns", (("a", "text"),), (["a", "text"],), "it must be a pair of a name and a kind"),
    ("queries", (("q", And()),), (("q", 3),), "query 'q' is 3; it must be a predicate"),
    ("queries", (("q", And()),), ((3, And()),), "is 3; it must be a text that is not empty"),
    ("queries", (("é", And()),), (("é\ud800", And()),), "it must be a text that is not empty"),
    ("offered", {"stream": R}, {"stream": "T"}, "stream is 'T'"),
    ("offered", {"more": ROW}, {"more": ()}, "tuple 7 of R has 0 values for 5 columns: ()"),
    ("offered", {"more": (None,) * 5}, {"more": ("x", *ROW[1:])}, "must be a number, or nothing"),
    ("offered", {"more": (nan, *ROW[1:])}, {"more": (True, *ROW[1:])}, "must be a number, or"),
    ("offered", {}, {"more": (1.0, -(1 << 63), *ROW[2:])}, "ad of tuple 7 of R is -9223372036854"),
    ("offered", {}, {"more": (1.0, 7.0, *ROW[2:])}, "7.0; it must be an integer, or nothing"),
    ("offered", {}, {"more": (*ROW[:3], 1, "a")}, "ok of tuple 7 of R is 1; it must be a boolean"),
    ("lines", (HEADER, '{"end":0}'), (HEADER, '{"end":0,"x":1}'), "the end has no field 'x'"),
    ("measured", 0, -1, "arrival 0 has the event time -1; it must be at least 0 and below 2^61"),
    ("measured", (1 << 61) - 1, 1 << 61, "time 2305843009213693952; it must be at least 0 and"),
    ("lines", (HEADER, '{"end":0}'), (HEADER, "{}"), "the field 'kind' is missing"),
    ("recorded", {"total": nan}, {"total": "NaN"}, "is 'NaN'; it must be a finite number"),
    ("recorded", {"least": None}, {"n": None}, "is None; it must be an integer"),
    ("recorded", {"top": (1, nan, None)}, {"top": (nan, "1")}, "must be a list of finite numbers"),
    ("recorded", {"top": ()}, {"top": [1.0]}, "is [1.0]; it must be a list of finite numbers"),
    ("judged", {"total": 1}, {"total": nan}, "(window 0, key 'a', n 2, least 1.0) is NaN; it must"),
    ("judged", {"top": (-1.0,)}, {"top": (1.0, None)}, "null]; it must be a list of finite numb"),
)
"""Texts and values: what can be read, what cannot, and why."""
