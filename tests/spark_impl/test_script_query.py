"""Whole queries of scripts: silent sensors, programs by hand."""

from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession, functions

from model.script import make_system
from model.vocabulary import Event, ScriptConfig, Workload
from model.vocabulary.script.config import END_US, REASON_LATE, REASON_NOT_FINITE, Result
from model.vocabulary.script.tree import Sensor, Statement, Union, Window, Workflow
from sim.kernel.seeds import Seeds
from sim.script.by_hand import WORKFLOWS, program_of
from spark_impl.runtime.histories import append, history_schema
from spark_impl.script import ScriptQuery, progress, results
from straggler.rooms.script.language import parse

# -------------------------------------------------------------------- sensors that fall silent


SECOND = 1_000_000
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
    assert seconds_of(spark, store) == dict.fromkeys(range(10, 13), 3.0)
    land(history, rows[len(early) :])
    query.run_available()
    found = seconds_of(spark, store)
    assert found == {s: 3.0 if s < 15 else 2.0 for s in range(10, 29)}
    assert progress(store).held_by in {"a", "b", "dead"}
    assert progress(store).watermark_us == 29 * SECOND
    land(history, [reading(200, "dead", 28), reading(201, "dead", 29), reading(202, "a", 5, None)])
    query.run_available()
    assert progress(store).rejected == {REASON_LATE: 1, REASON_NOT_FINITE: 1}
    query.flush()
    assert progress(store).held_by is None
    assert progress(store).watermark_us == progress(store).known_until_us == END_US


# ------------------------------------------------------------------------------- programs by hand


SENSORS = ("A", "B", "8MD1-AZ", "8MD2-A", "8MD3-A", "8MD4-AZ")
SECONDS = 1_500
SILENT_S = range(60, 100)
"""Time in which sensor A sends nothing, so that latest values differ from a join."""


def events() -> tuple[Event, ...]:
    """Return a tuple a second of every sensor, each a little off the second."""
    values = Seeds(1).stream("values").integers(-40, 120, size=SECONDS * len(SENSORS)).tolist()
    rows: list[tuple[int, str, float]] = []
    for second in range(SECONDS):
        for number, sensor in enumerate(SENSORS):
            if sensor != "A" or second not in SILENT_S:
                at_us = second * 1_000_000 + 1_000 * number
                rows.append((at_us, sensor, float(values[len(rows)])))
    return tuple(
        Event(seq, seq, sensor, at_us, value, at_us)
        for seq, (at_us, sensor, value) in enumerate(rows)
    )


@pytest.fixture(scope="module")
def tuples(spark: SparkSession) -> DataFrame:
    rows = pd.DataFrame([(each.key, each.event_time_us, each.value) for each in events()])
    table = spark.createDataFrame(rows, "sensor string, at long, value double")
    return table.select("sensor", functions.timestamp_micros("at").alias("ts"), "value").cache()


def _results_of(program: str, run: str, name: str, tuples: DataFrame) -> dict[object, float]:
    """Return the values that a function of a program finds, by workflow, name and time (us)."""
    module: dict[str, Callable[[DataFrame], dict[str, DataFrame]]] = {}
    exec(program, module)
    streams = [
        stream.toDF("ts", "value").select(
            functions.lit(name).alias("workflow"),
            functions.lit(result).alias("name"),
            functions.unix_micros("ts").alias("ts_us"),
            functions.col("value").cast("double"),
        )
        for result, stream in module[run](tuples).items()
    ]
    return {tuple(row[:3]): row[3] for row in reduce(DataFrame.union, streams).collect()}


@pytest.mark.long
@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_program_by_hand_gives_the_results_of_its_script(name: str, tuples: DataFrame) -> None:
    script, program = WORKFLOWS[name]
    found = _results_of(program, "run", name, tuples)
    config = ScriptConfig((parse(script, name),), tuple((sensor, 3_600) for sensor in SENSORS))
    trace = make_system()(Workload("script", events(), config.to_json()))
    expected = {tuple(step[:3]): step.value for step in trace.of(Result)}
    assert len(expected) > 5
    # Spark adds up floats in its own order.
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)
    # The second query of a generated program computes the same over its own sensors.
    generated = program_of([WORKFLOWS[name].renumber(number) for number in range(2)])
    renamed = tuples.withColumn("sensor", functions.concat("sensor", functions.lit("_1")))
    again = _results_of(generated, "run_1", name, renamed)
    assert again == pytest.approx(expected, rel=1e-9, abs=1e-9)
