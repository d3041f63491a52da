"""The programs whose lines are counted do what their scripts say: Spark runs them."""

from collections.abc import Callable
from functools import reduce

import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession, functions

from model.script import make_system
from model.vocabulary import Event, ScriptConfig, Workload
from model.vocabulary.script.config import Result
from sim.kernel.seeds import Seeds
from sim.script.by_hand import WORKFLOWS, line_count
from straggler.rooms.script.language import parse

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


FIRST, *OTHERS = WORKFLOWS


@pytest.mark.parametrize(
    "name", [FIRST, *(pytest.param(each, marks=pytest.mark.long) for each in OTHERS)]
)
def test_a_program_by_hand_gives_the_results_of_its_script(name: str, tuples: DataFrame) -> None:
    script, program = WORKFLOWS[name]
    module: dict[str, Callable[[DataFrame], dict[str, DataFrame]]] = {}
    exec(program, module)
    streams = [
        stream.toDF("ts", "value").select(
            functions.lit(name).alias("workflow"),
            functions.lit(result).alias("name"),
            functions.unix_micros("ts").alias("ts_us"),
            functions.col("value").cast("double"),
        )
        for result, stream in module["run"](tuples).items()
    ]
    found = {tuple(row[:3]): row[3] for row in reduce(DataFrame.union, streams).collect()}
    config = ScriptConfig((parse(script, name),), tuple((sensor, 3_600) for sensor in SENSORS))
    trace = make_system()(Workload("script", events(), config.to_json()))
    expected = {tuple(step[:3]): step.value for step in trace.of(Result)}
    assert len(expected) > 5
    # Spark adds up floats in its own order.
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_blank_lines_and_comments_do_not_count() -> None:
    assert line_count("# head\n\na = 1\n    # why\nb = 2\n") == 2
