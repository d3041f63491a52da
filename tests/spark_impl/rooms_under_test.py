"""The five rooms as queries over one small history, for contracts that each of them keeps.

The expected answers are computed from the readings by loops.
"""

from collections.abc import Callable, Mapping, Sequence
from math import isfinite, nan
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from model.vocabulary import ScriptConfig, SlackConfig, WatermarkConfig
from model.vocabulary.join import Equi
from model.vocabulary.script.tree import Sensor, Statement, Window, Workflow
from spark_impl import join, script, slack, watermark
from spark_impl.grouping import Grouping
from spark_impl.join import ChainJoin, from_history
from spark_impl.runtime.failures import QueryProblem
from spark_impl.runtime.histories import append, history_schema, numbers
from spark_impl.runtime.storage import InputProblem, locate
from spark_impl.script import ScriptQuery
from spark_impl.slack import SlackQuery
from spark_impl.watermark import WatermarkQuery

Answers: TypeAlias = list[tuple[Any, ...]]
Rows: TypeAlias = list[dict[str, Any]]
Sink: TypeAlias = Callable[[DataFrame, int], None]
PROBLEMS = (InputProblem, QueryProblem)
WINDOW_US, WAIT_US = 4_000, 20_000
UNCORRECTED = {"gamma_us": 10**6, "max_age_us": 10**6}
"""Settings with which late readings wait for the flush."""


class Reading(NamedTuple):
    """A row of a history."""

    stream: str
    identity: int
    ts_us: int
    value: float | None = 1.0


NOT_A_NUMBER, MISSING = Reading("R", 4, 30_000, nan), Reading("R", 13, 31_500, None)
FIRST = (
    Reading("R", 0, 20_000, 1.0),
    Reading("S", 1, 21_000, 2.0),
    Reading("R", 2, 23_000, 4.0),
    Reading("S", 3, 26_000, 8.0),
    NOT_A_NUMBER,
    Reading("S", 5, 31_000, 16.0),
    MISSING,
)
AGAIN = (*FIRST[:4], FIRST[5], Reading("S", 12, 32_000, 3.0))
"""Redeliveries of what has come, and one new reading."""
LATE = Reading("R", 8, 22_000, 128.0)
"""A reading that comes when every query has stopped to wait for it."""
LAST = (
    Reading("R", 6, 60_000, 32.0),
    Reading("S", 7, 61_000, 64.0),
    LATE,
    Reading("S", 9, 62_000, 256.0),
)
LATER = (Reading("R", 10, 90_000, 512.0), Reading("S", 11, 91_000, 1024.0))


def land(history: Path, readings: Sequence[Reading]) -> int:
    """Add a file to a history; return the number of its first row."""
    first = 100 * numbers(locate(history)).stop
    rows = [
        {
            "stream": stream,
            "seq": first + place,
            "source_id": identity,
            "key": "a",
            "event_time_us": ts_us,
            "value": value,
            "arrival_us": ts_us,
        }
        for place, (stream, identity, ts_us, value) in enumerate(readings)
    ]
    schema = history_schema(pa.field("stream", pa.string()))
    append(history, pa.Table.from_pylist(rows, schema))
    return first


class Room(NamedTuple):
    """A room, and what a user sees of its queries."""

    open: Callable[..., Any]
    """Open a query over a session, a history, a store and a sink, perhaps with other settings."""
    other: Mapping[str, Any]
    """Settings that a store of the usual query refuses."""
    found: Callable[[SparkSession, Path], Answers]
    expected: Callable[[Sequence[Reading]], Answers]
    """Compute the answers to finite readings; ``LATE`` is among them."""
    fold: Callable[[Mapping[int, Rows]], Answers]
    """Compute the answers from what a sink has kept by micro-batch, each batch sorted."""
    refuses_late: bool = False


def _once(readings: Sequence[Reading]) -> dict[Reading, float]:
    """Return the readings that have a finite value, each once, and their values."""
    valued = {each: each.value for each in readings if each.value is not None}
    return {each: value for each, value in valued.items() if isfinite(value)}


def _on_time(readings: Sequence[Reading]) -> dict[Reading, float]:
    return {each: value for each, value in _once(readings).items() if each != LATE}


def _windows(readings: Mapping[Reading, float]) -> Mapping[int, list[float]]:
    found: dict[int, list[float]] = {}
    for each, value in readings.items():
        found.setdefault(each.ts_us // WINDOW_US * WINDOW_US, []).append(value)
    return found


def _sums(readings: Sequence[Reading]) -> Answers:
    windows = _windows(_once(readings))
    return sorted((start, sum(values), len(values)) for start, values in windows.items())


def _scripted(readings: Sequence[Reading]) -> Answers:
    """Return the sum of every window at its last millisecond."""
    windows = _windows(_on_time(readings))
    return sorted((start + WINDOW_US - 1_000, sum(values)) for start, values in windows.items())


def _pairs(readings: Sequence[Reading]) -> Answers:
    sides = {name: [each for each in _on_time(readings) if each.stream == name] for name in "RS"}
    return sorted(
        (r.identity, s.identity)
        for r in sides["R"]
        for s in sides["S"]
        if abs(r.ts_us - s.ts_us) <= WINDOW_US
    )


def _routed(readings: Sequence[Reading]) -> Answers:
    """Return the rows of R, which a router passes on as they come."""
    return sorted((each.identity,) for each in readings if each.stream == "R")


def _every(*columns: str) -> Callable[[Mapping[int, Rows]], Answers]:
    def fold(kept: Mapping[int, Rows]) -> Answers:
        rows = (row for batch in kept.values() for row in batch)
        return sorted(tuple(row[column] for column in columns) for row in rows)

    return fold


def _latest(kept: Mapping[int, Rows]) -> Answers:
    rows = (row for batch in sorted(kept) for row in kept[batch])
    ordered = sorted(rows, key=lambda row: row["revision"] or 0)
    last = {row["start_us"]: (row["value"], row["n"]) for row in ordered}
    return sorted((start, *answer) for start, answer in last.items())


def _select(read: Any, *columns: str) -> Callable[[SparkSession, Path], Answers]:
    return lambda spark, store: sorted(map(tuple, read(spark, store).select(*columns).collect()))


def _limits(more: dict[str, Any]) -> dict[str, Any]:
    """Take the limits out of further arguments, so that settings are left."""
    names = [name for name in ("max_refused", "max_late", "max_shed") if name in more]
    return {name: more.pop(name) for name in names}


def _slack(*given: Any, sink: Sink, **more: Any) -> Any:
    limits = _limits(more)
    usual = {"control": "fixed", "fixed_slack_us": WAIT_US, **UNCORRECTED}
    config = SlackConfig(WINDOW_US, WINDOW_US, **{**usual, **more})
    return SlackQuery(given[0], config, *given[1:], sink=sink, **limits)


def _watermark(*given: Any, sink: Sink, **more: Any) -> Any:
    limits = _limits(more)
    usual = {"reading": "fixed", "corrections": True, **UNCORRECTED}
    config = WatermarkConfig(WINDOW_US, WINDOW_US, WAIT_US, **{**usual, **more})
    return WatermarkQuery(given[0], config, *given[1:], sink=sink, **limits)


def _script(*given: Any, sink: Sink, **more: Any) -> Any:
    limits = _limits(more)
    hall = Workflow("hall", (Statement("total", Window("sum", Sensor("a"), 4, 4)),))
    config = ScriptConfig((hall,), (("a", 3_600),), **{"lateness_us": WAIT_US, **more})
    return ScriptQuery(given[0], config, *given[1:], sink=sink, **limits)


def _join(spark: SparkSession, history: Path, store: Path, sink: Sink, **more: Any) -> Any:
    limits = _limits(more)
    chain = ChainJoin(2, WINDOW_US, Equi("key"), **{"lateness_us": WAIT_US, **more})
    return chain.stream(*from_history(spark, history), store, sink, **limits)


def _grouping(spark: SparkSession, history: Path, store: Path, sink: Sink, **more: Any) -> Any:
    """Open a stream of the rows of R; it has no end to come to."""
    options = {"value": "value", **_limits(more)}
    router = Grouping(**{"instances": 2, "senders": 2, **more})
    rows, _ = from_history(spark, history)
    stream = router.stream(
        rows, "key", store, lambda rows, batch: sink(rows, batch.number), "seq", **options
    )
    return SimpleNamespace(run_available=stream.run_available, flush=stream.run_available)


_ANSWER = ("start_us", "value", "n")
ROOMS: Mapping[str, Room] = {
    "slack": Room(
        _slack,
        {"fixed_slack_us": 7},
        _select(slack.results, *_ANSWER),
        _sums,
        _latest,
    ),
    "watermark": Room(
        _watermark,
        {"reading": "scaled"},
        _select(watermark.results, *_ANSWER),
        _sums,
        _latest,
    ),
    "script": Room(
        _script,
        {"lateness_us": 7},
        _select(script.results, "ts_us", "value"),
        _scripted,
        _every("ts_us", "value"),
        refuses_late=True,
    ),
    "join": Room(
        _join,
        {"lateness_us": 7},
        _select(join.results, "r_id", "s_id"),
        _pairs,
        _every("r_id", "s_id"),
        refuses_late=True,
    ),
    "grouping": Room(
        _grouping,
        {"instances": 3},
        lambda spark, store: [],
        _routed,
        _every("source_id"),
    ),
}
"""The rooms, by name. Room ``grouping`` has no results of its own but what its sink keeps."""
