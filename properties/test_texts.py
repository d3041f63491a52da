"""Durations, settings, addresses and errors are read as what their texts say, or refused.

Expected values are computed with the standard library alone.
"""

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from functools import partial
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyspark.errors import PySparkException

from model.vocabulary import GroupingConfig, JoinConfig, ScriptConfig, SlackConfig, WatermarkConfig
from model.vocabulary.durations import (
    duration_us,
    in_unit_of_name,
    parse_duration_us,
    write_duration,
)
from model.vocabulary.hashing import stable_hash
from model.vocabulary.join_load import LoadRules
from model.vocabulary.settings import read_settings, settings_of
from model.vocabulary.texts import escaped, escaped_lines
from properties.oracles.hashing import signed_hash
from spark_impl.aggregates import avg, count, quantile
from spark_impl.landed import LandedQueries
from spark_impl.over import Stream, over
from spark_impl.runtime.failures import QueryProblem, last_error, wait_for
from spark_impl.runtime.limits import Limits
from spark_impl.runtime.storage import InputProblem, locate
from straggler.strategies import collect, workloads
from straggler.strategies.declared_settings import (
    ANSWERS,
    APPLIED,
    DECLARED,
    answers_of,
    declared_by,
)
from straggler.strategies.telling_inputs import NEAREST_INPUTS, OPENED
from straggler.strategies.telling_settings import BUILT, NEAREST, READ, edges_of
from straggler.strategies.traces import TEXTS

# ---------------------------------------------------------------------------- durations, settings

MOST = timedelta(106_751_991)  # whole days of 64 bits
_WORDS_OF = {
    1: "us microsecond",
    1_000: "ms millisecond",
    10**6: "s second",
    60 * 10**6: "min minute",
    3_600 * 10**6: "h hour",
    86_400 * 10**6: "d day",
    604_800 * 10**6: "week",
}
UNITS_US = {unit: us for us, words in _WORDS_OF.items() for unit in words.split()}
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
            allowed = r"(a duration > 0|less than 2305843009213693952us)$"
            with pytest.raises(ValueError, match=rf"^size is \S+; it must be {allowed}") as refused:
                SlackConfig.of(size=text, slide="1 s")
            assert parse_duration_us(re.split(r"[ ;]", str(refused.value))[2]) == total
    else:
        with pytest.raises(ValueError, match=r"is longer than|is not a whole number"):
            parse_duration_us(text)
    for wrong in (other, f"{text}{other or ','}", f"x {text}"):
        with pytest.raises(ValueError, match=r"^size: .* is not a duration"):
            duration_us("size", wrong)


@given(st.timedeltas(-MOST, MOST) | st.timedeltas(timedelta(0), timedelta(2)))
def test_a_timedelta_is_its_number_of_microseconds(time: timedelta) -> None:
    us = duration_us("size", time)
    assert us == time // timedelta(microseconds=1) == parse_duration_us(write_duration(us))
    one_more = pd.Timedelta(days=1) + pd.Timedelta(time.microseconds % 999 + 1, "ns")
    for wrong in (one_more, time.days, None, MOST + timedelta(1)):
        with pytest.raises(ValueError, match="size is "):
            duration_us("size", wrong)


@given(st.integers(1, 10**12))
def test_a_time_is_a_text_a_timedelta_or_a_number_in_the_unit_of_its_name(us: int) -> None:
    given: Any
    for given in (us, timedelta(microseconds=us), write_duration(us)):
        assert SlackConfig(given, given) == SlackConfig(us, us)
        assert LoadRules(out_after_us=given).out_after_us == us
        assert GroupingConfig(2, latency_us=(given, 0)) == GroupingConfig(2, latency_us=(us, 0))
        seconds = given / 1e6 if given is us else given
        assert in_unit_of_name("patience_s", seconds) == us / 1e6
    for name, value in {"size_us": "5 s", "gamma_us": "1"}.items():
        with pytest.raises(ValueError, match=f"^{name} is '{value}'; it must be an integer"):
            SlackConfig.from_json({"size_us": us, "slide_us": us, name: value})


_KINDS = SlackConfig, WatermarkConfig, JoinConfig, GroupingConfig, ScriptConfig
CONFIGS: Mapping[str, Any] = {each.__name__.removesuffix("Config").lower(): each for each in _KINDS}


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


@pytest.mark.parametrize("config", [*_KINDS, LoadRules])
def test_a_setting_ends_where_it_says(config: type) -> None:
    for name, each in settings_of(config).items():
        good, bad = edges_of(each)
        for value in good:
            each.check((value,) if each.is_tuple else value)
        for value, words in bad:
            said = re.escape(f"{name} is {value!r}; it must be {words}")
            with pytest.raises(ValueError, match=f"^{said}$"):
                each.check((value,) if each.is_tuple else value)
        if each.kind is not str or each.choices:
            with pytest.raises(ValueError, match=f"^{name} is 'x'; it must be "):
                each.read("x")


def test_settings_and_answers_are_those_of_the_pages() -> None:
    assert {each.__name__: declared_by(each) for each in (*_KINDS, LoadRules)} == DECLARED
    assert {room: answers_of(room) for room in CONFIGS} == ANSWERS
    for what, given_settings, name, due in APPLIED:
        assert getattr(BUILT[what](given_settings), name) == due, (what, given_settings, name)
    assert [text for read, text, told in READ if read(text) != told] == []


@pytest.mark.parametrize(("what", "good", "bad", "said"), [*NEAREST, *NEAREST_INPUTS])
def test_what_does_not_fit_together_is_refused(what: str, good: Any, bad: Any, said: str) -> None:
    {**BUILT, **OPENED}[what](good)
    with pytest.raises(ValueError, match=re.escape(said)):
        {**BUILT, **OPENED}[what](bad)


@given(st.text() | st.lists(TEXTS).map("".join))
def test_a_text_of_strangers_shows_what_it_is_and_has_one_hash(text: str) -> None:
    assert stable_hash(text) == signed_hash(text)
    seen = [
        each
        if each.isprintable() or unicodedata.category(each) == "Zs"
        else each.encode("unicode_escape").decode()
        for each in text
    ]
    assert escaped(text) == "".join(seen)
    assert escaped_lines(text).split("\n") == [escaped(line) for line in text.split("\n")]


@given(
    limit=st.integers(0, 99).map(lambda n: n / 100) | st.integers(0, 300) | st.none(),
    rows=st.integers(0, 100),
    others=st.integers(0, 100),
    earlier=st.integers(0, 200),
)
@example(limit=3, rows=1, others=0, earlier=2)
@example(limit=0.29, rows=29, others=71, earlier=0)
def test_a_limit_stops_what_is_above_it(
    tmp_path_factory: pytest.TempPathFactory,
    limit: float | None,
    rows: int,
    others: int,
    earlier: int,
) -> None:
    """A share is one of each micro-batch, a number one of all rows; 29 of 100 rows are 0.29."""
    folder = tmp_path_factory.getbasetemp() / "limited"
    listed = pa.table({"seq": range(rows)})

    def ask() -> None:
        counts = rows, rows + others, 7, locate(folder)
        Limits(late=limit, shed=0).require(
            "late", *counts, earlier=lambda: earlier, listed=lambda: listed
        )

    is_share = isinstance(limit, float)
    found = Fraction(rows, max(rows + others, 1)) if is_share else rows + earlier
    if limit is None or not rows or found <= Fraction(str(limit)):
        ask()
        return
    with pytest.raises(InputProblem, match=f"{rows} of its {rows + others} rows are late"):
        ask()
    assert pq.read_table(folder / "_stopped" / "00000007.parquet").equals(listed)


# ------------------------------------------------------------------------------------- queries

HOUR_US = 3_600_000_000
ORDER, CALLS = "labc", ("run_available", "flush", "start")  # a landing, and what it feeds


@given(failing=st.sets(st.sampled_from(ORDER)))
@example(failing={"b", "c"})
def test_the_first_failure_of_several_is_told_and_none_is_left_running(failing: set[str]) -> None:
    noted = list[str]()

    def note(name: str, *_: object) -> Any:
        noted.append(name)
        if name in failing:
            raise QueryProblem(name)
        return SimpleNamespace(stop=lambda: noted.append(f"{name} stops"))

    made = {each: dict.fromkeys(CALLS, partial(note, each)) for each in ORDER}
    parts: Any = {each: SimpleNamespace(**methods) for each, methods in made.items()}
    queries = LandedQueries(parts.pop("l"), parts, {}, None)  # type: ignore[arg-type]  # no Spark is asked
    first = min(map(ORDER.index, failing), default=len(ORDER))
    stopped = [f"{each} stops" for each in reversed(ORDER[:first])] if failing else []
    ran, started = [*(ORDER if first else "l")], [*ORDER[: first + 1], *stopped]
    for run, due in zip(CALLS, (ran, ran, started), strict=True):
        noted.clear()
        with pytest.raises(QueryProblem, match=ORDER[first]) if failing else nullcontext():
            assert len(getattr(queries, run)() or ORDER) == len(ORDER)
        assert noted == due


def test_an_aggregate_has_the_windows_the_wait_and_its_own_settings() -> None:
    stream: Stream = over(None, event_time="at", key="device")  # type: ignore[arg-type]  # no row is read
    shared: dict[str, Any] = {"tasks": 2, "gamma_us": 7}
    own = {"gamma_us": 0, "feedback_us": 3}
    hours = {"size_us": HOUR_US, "slide_us": HOUR_US}
    found = stream.window("1 hour", None, lambda_thr=0.9, **shared).agg(
        avg("watts", **own), quantile("watts", q=0.25).alias("low"), count()
    )
    common = {**hours, "lambda_thr": 0.9, **shared}
    assert found.configs == {
        "avg_watts": SlackConfig(**{**common, **own, "aggregate": "avg"}),
        "low": SlackConfig(**common, aggregate="quantile", q=0.25),
        "count": SlackConfig(**common, aggregate="count"),
    }
    assert found.values == {"avg_watts": "watts", "low": "watts", "count": None}
    waiting = stream.window(timedelta(hours=1), "30 minutes", max_wait="2 hours").agg(count())
    wait = WatermarkConfig(HOUR_US, HOUR_US // 2, max_wait_us=2 * HOUR_US, aggregate="count")
    assert waiting.configs == {"count": wait}


# ------------------------------------------------------------------------- addresses and errors

FOLDERS = st.lists(st.sampled_from(["a", "b c", "..", ".", "", "#1", "x=1"]), max_size=4)
CLIENTS = {"?region=x&endpoint_override=h": {"region": "x", "endpoint": "https://h"}}
"""Settings of a client of S3, by the end of an address."""


def folder_of(parts: list[str]) -> str:
    """Return the absolute path of a folder without detours."""
    found: list[str] = []
    for part in parts:
        if part == "..":
            found = found[:-1]
        elif part not in ("", "."):
            found.append(part)
    return "".join(f"/{part}" for part in found)


@given(FOLDERS, st.sampled_from(["", "?user=a&b=c", *CLIENTS]))
def test_addresses_of_one_folder_name_one_place(parts: list[str], query: str) -> None:
    given_path, path = "/" + "/".join(parts), folder_of(parts)
    for scheme in ("s3", "s3a"):
        place = locate(f"{scheme}://bucket{given_path}{query}")
        assert (str(place), place.s3_client) == (
            f"s3://bucket{path}{query}",
            CLIENTS.get(query, {}),
        )
    for prefix in ("", "file://"):
        assert str(locate(f"{prefix}{given_path}")) == (path or "/")
    for address in (f"s3://bucket{given_path}{query}", given_path):
        place = locate(address)
        assert locate(str(place)) == locate(place) == place
        assert locate(str(place / "more")) == place / "more"
        assert (place / "more").parent == place


ERRORS = st.lists(
    st.tuples(
        st.sampled_from(["InputProblem", "ValueError", "NeighbourLost", "org.a.b.SparkException"]),
        st.sampled_from(["the file x is missing", "worker 1: lost", "a b: c"]),
    ),
    min_size=1,
    max_size=4,
)
"""Errors in the order in which they are printed: each led to the one before or behind it."""


def text_of(errors: list[tuple[str, str]]) -> str:
    """Return errors as Spark prints them, with lines of stacks in between."""
    lines = [f'{name}: {said}\n  File "task.py", line 3, in run' for name, said in errors]
    return "Job aborted\n" + "\n".join(lines)


@given(ERRORS)
def test_the_last_error_is_the_one_that_counts(errors: list[tuple[str, str]]) -> None:
    name, said = errors[-1]
    found = last_error(PySparkException(text_of(errors)))
    assert found == (name.rpartition(".")[2], said)


@given(ERRORS, st.sampled_from(["ends", "fails", "dies"]))
def test_a_query_that_fails_is_no_query_that_has_ended(
    errors: list[tuple[str, str]], outcome: str
) -> None:
    stopped: list[int] = []
    failure = {"fails": PySparkException(text_of(errors)), "dies": OSError("no answer")}

    def wait() -> None:
        if outcome != "ends":
            raise failure[outcome]

    query: Any = SimpleNamespace(awaitTermination=wait, stop=lambda: stopped.append(1))
    if outcome == "ends":
        wait_for(query, locate("store"))
        return
    with pytest.raises(QueryProblem) as raised:
        wait_for(query, locate("store"))
    assert raised.value.__cause__ is failure[outcome]
    assert not stopped, "a call to a query that has failed may wait for ever"
    sentence = str(raised.value)
    assert "\n" not in sentence
    if outcome == "fails" and not errors[-1][0].endswith("Exception"):
        assert sentence == errors[-1][1]
