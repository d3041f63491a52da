"""Sensors that fall silent: they hold nothing back, and what is refused or held back is named."""

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from model.vocabulary import Event, Fault, ScriptConfig, Workload
from model.vocabulary.script.config import (
    END_US,
    REASON_LATE,
    REASON_NOT_FINITE,
    Rejected,
    Result,
    Undefined,
)
from model.vocabulary.script.tree import Sensor, Statement, Union, Window, Workflow
from spark_impl.runtime.histories import append, history_schema
from spark_impl.runtime.queries import QueryProblem
from spark_impl.script import (
    ScriptQuery,
    progress,
    rejected,
    results,
    run_in_process,
    run_workloads,
)
from spark_impl.script.admission import Arrivals, Clock, Waiting, admit
from tests.spark_impl import brute_script
from tests.spark_impl.script_cases import SENSORS, random_config, random_workload

SECOND = 1_000_000
WORDS = (Result, Undefined, Rejected)


def silent_case(seed: int) -> Workload:
    """Return a random case in which sensors fall silent, and arrivals may come out of order."""
    draw = random.Random(f"silence {seed}")
    config = replace(
        random_config(seed),
        lateness_us=draw.choice([0, 3_000, 15_000]),
        watermark=draw.choice(["fixed", "fixed", "disorder", "scaled"]),
        cluster=draw.choice([2, 5]),
        idle_after_us=draw.choice([1_000, 5_000, 20_000]),
    )
    case = random_workload(seed, config, size=draw.randint(5, 60))
    silent = {sensor: draw.randint(0, 60) for sensor in SENSORS if draw.random() < 0.5}
    events = [
        each._replace(arrival_us=each.arrival_us - draw.choice([0, 0, 0, 4_000]))
        for each in case.arrivals
        if not silent.get(each.key, 99) <= each.seq < silent.get(each.key, 0) + 25
    ]
    cuts = tuple(sorted(draw.randint(0, len(events)) for _ in range(draw.randint(0, 4))))
    return case.with_(arrivals=tuple(events), cuts=cuts, flush=draw.random() < 0.3)


def without(case: Workload) -> Workload:
    """Return the same case with sensors that are never idle."""
    plain = {name: value for name, value in case.config.items() if name != "idle_after_us"}
    return case.with_(config=plain)


def test_silent_sensors_follow_as_defined() -> None:
    met: Counter[str] = Counter()
    for seed in range(200):
        case = silent_case(seed)
        found, expected = run_in_process(case), brute_script.run(case)
        for word in WORDS:
            assert found.of(word) == expected.of(word), (seed, word.__name__)
        never = brute_script.run(without(case))
        met["late after a silence"] += len(expected.of(Rejected)) > len(never.of(Rejected))
        met["known earlier"] += {*expected.of(Result)} > {*never.of(Result)}
        met[case.config.get("watermark", "fixed")] += expected.of(Result) != never.of(Result)
    assert min(met.values()) >= 15, met
    assert len(met) == 5


def test_a_pack_on_spark_that_is_killed_follows_as_well(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Files of a micro-batch are packed by several tasks; the clock runs over all of them."""
    config = ScriptConfig(
        (Workflow("hall", (Statement("all", UNION), Statement("mine", MEAN))),),
        tuple((sensor, 3_600) for sensor in SENSORS),
        workers=2,
        cap_percent=100,
        lateness_us=3_000,
        idle_after_us=5_000,
    )
    cases = {}
    for seed in range(10):
        case = silent_case(seed)
        size = len(case.arrivals)
        cases[f"case {seed}"] = case.with_(
            config=config.to_json(), cuts=(size // 3, size // 2), faults=(Fault("kill", 1),)
        )
    traces = run_workloads(spark, cases, tmp_path)
    differ = 0
    for name, case in cases.items():
        expected = brute_script.run(case)
        for word in WORDS:
            assert traces[name].of(word) == expected.of(word), (name, word.__name__)
        differ += brute_script.run(without(case)).of(Result) != expected.of(Result)
    assert differ >= 3


MEAN = Window("avg", Sensor("A"), 4, 2)
UNION = Window("count", Union((Sensor("A"), Sensor("B"), Sensor("D"))), 8, 4)
EVERY_SECOND = Window("count", Union(tuple(map(Sensor, ("a", "b", "dead")))), 1_000, 1_000)
HALL = ScriptConfig(
    (Workflow("hall", (Statement("all", EVERY_SECOND),)),),
    tuple((sensor, 3_600) for sensor in ("a", "b", "dead", "spare")),
    workers=2,
    lateness_us=SECOND,
    idle_after_us=3 * SECOND,
)


def reading(seq: int, sensor: str, second: int, value: float | None = 1.0) -> dict[str, Any]:
    """Return a reading that arrives when it is taken."""
    at_us = second * SECOND
    row = Event(seq, seq, sensor, at_us, 0.0, at_us)._asdict()
    return {**row, "value": value}


def land(folder: Path, rows: list[dict[str, Any]]) -> None:
    append(folder, pa.Table.from_pylist(rows, schema=history_schema()))


def seconds_of(spark: SparkSession, store: Path) -> dict[int, float]:
    """Return the tuples of every second that is known, by the second in which they came."""
    return {row.ts_us // SECOND: row.value for row in results(spark, store).collect()}


def test_a_sensor_that_falls_silent_is_named_and_then_holds_nothing_back(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The union gave nothing until the flush, and nothing named the sensor."""
    history, store = tmp_path / "history", tmp_path / "store"
    rows = [
        reading(3 * second + place, sensor, second)
        for second in range(10, 31)
        for place, sensor in enumerate(("a", "b", "dead"))
        if sensor != "dead" or second < 15
    ]
    early = [row for row in rows if row["event_time_us"] < 16 * SECOND]
    land(history, early)
    query = ScriptQuery(spark, HALL, history, store)
    query.run_available()
    at = progress(store)
    assert (at.batch, at.held_by, at.watermark_us) == (0, "dead", 13 * SECOND)
    assert at == query.progress()
    assert seconds_of(spark, store) == dict.fromkeys(range(10, 13), 3.0)
    land(history, rows[len(early) :])
    query.run_available()
    found = seconds_of(spark, store)
    assert found == {s: 3.0 if s < 15 else 2.0 for s in range(10, 29)}
    assert progress(store).held_by in {"a", "b", "dead"}
    assert progress(store).watermark_us == 29 * SECOND
    land(history, [reading(200, "dead", 28), reading(201, "dead", 29), reading(202, "a", 5, None)])
    query.run_available()
    refused = [tuple(row) for row in query.rejected().orderBy("seq").collect()]
    assert refused == [
        (200, "dead", 200, 28 * SECOND, REASON_LATE, 2),
        (202, "a", 202, 5 * SECOND, REASON_NOT_FINITE, 2),
    ]
    assert refused == [tuple(row) for row in rejected(spark, store).orderBy("seq").collect()]
    assert progress(store).rejected == {REASON_LATE: 1, REASON_NOT_FINITE: 1}
    query.flush()
    assert progress(store).held_by is None
    assert progress(store).watermark_us == progress(store).known_until_us == END_US


def test_a_sensor_that_never_sent_is_named(spark: SparkSession, tmp_path: Path) -> None:
    history, store = tmp_path / "history", tmp_path / "store"
    land(history, [reading(n, "a", n) for n in range(20)])
    never = replace(HALL, idle_after_us=None, workers=3)
    query = ScriptQuery(spark, never, history, store)
    assert progress(store) == (-1, 0, {}, None, 0)
    query.run_available()
    assert progress(store).held_by in {"b", "dead"}
    assert progress(store).watermark_us == 0
    assert seconds_of(spark, store) == {}
    idle = ScriptQuery(spark, replace(HALL, workers=3), history, tmp_path / "idle")
    idle.run_available()
    assert seconds_of(spark, tmp_path / "idle") == dict.fromkeys(range(18), 1.0)


def test_scripts_that_change_know_of_every_silence(spark: SparkSession, tmp_path: Path) -> None:
    """The later query needs no early tuples, but without them a sensor would have been silent."""
    history = tmp_path / "history"
    rows = [reading(n, "a", n) for n in range(10, 30)]
    # Readings of dead lie far behind, and say that it is alive.
    rows += [{**reading(0, "dead", 1), "arrival_us": n * SECOND} for n in range(10, 27, 2)]
    rows += [reading(0, "dead", 20), reading(0, "b", 20)]
    rows.sort(key=lambda row: row["arrival_us"])
    land(history, [{**row, "seq": n, "source_id": n} for n, row in enumerate(rows)])
    for name, since_us in (("whole", 0), ("later", 15 * SECOND)):
        query = ScriptQuery(spark, HALL, history, tmp_path / name, since_us=since_us)
        query.run_available()
        query.flush()
    whole = seconds_of(spark, tmp_path / "whole")
    later = seconds_of(spark, tmp_path / "later")
    assert later == {second: n for second, n in whole.items() if second >= 15}
    assert later[20] == whole[20]


@pytest.mark.fails_tasks
def test_the_clock_needs_arrival_times(spark: SparkSession, tmp_path: Path) -> None:
    rows = [reading(0, "a", 1), {**reading(1, "nobody's", 2), "arrival_us": None}]
    land(tmp_path / "history", rows)
    ScriptQuery(
        spark, replace(HALL, idle_after_us=None), tmp_path / "history", tmp_path / "never"
    ).run_available()
    query = ScriptQuery(spark, HALL, tmp_path / "history", tmp_path / "idle")
    with pytest.raises(QueryProblem, match=r"^arrival_us of sensor .nobody.s. is NULL"):
        query.run_available()


def test_an_unknown_watermark_is_refused() -> None:
    nothing = np.empty(0, np.int64)
    arrivals = Arrivals(nothing, nothing, nothing, np.empty(0))
    with pytest.raises(ValueError, match=r"^watermark is 'calm', which no rule"):
        admit(arrivals, nothing, Clock(), Waiting(0, "calm"))
