"""The job whose lines are counted does what the scripts say: Spark runs it."""

from functools import reduce

import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession, functions

from model.script import make_system
from model.vocabulary import ScriptConfig, Workload
from model.vocabulary.script.config import Result, Undefined
from model.vocabulary.script.tree import (
    Across,
    Arithmetic,
    Expression,
    Name,
    Number,
    Sensor,
    Statement,
    Union,
    Window,
    Workflow,
)
from sim.kernel.log import simulate_arrivals
from sim.script.by_hand import job, job_lines, script_lines
from sim.script.settings import prepare

A, B = Sensor("8MD1-0"), Sensor("8MD1-1")
EXPRESSIONS: dict[str, Expression] = {
    "twice": Window("count", Union((A, A, B)), 3_000, 2_000),
    "again": Name("twice"),
    "least": Window("min", Union((Name("twice"), B)), 4_000, 1_000),
    "worst": Across("avg", (Name("twice"), Name("least"))),
    "broken": Arithmetic("/", A, Arithmetic("-", Name("twice"), Number(45.0))),
    "half": Arithmetic("*", Name("worst"), Arithmetic("/", Number(1.0), Number(2.0))),
}
OTHERS = Workflow("others", tuple(Statement(*each) for each in EXPRESSIONS.items()))
"""Cases that the bridge lacks: repetitions, names, operations on sensors, divisions by zero."""


def test_a_job_written_by_hand_does_what_scripts_say(spark: SparkSession) -> None:
    settings = {"sensors": "2", "rates_hz": "5", "seconds": "8", "disorder": "calm"}
    asked = prepare({**settings, "lateness_us": "none"}, 1)
    flows = (*asked.config.workflows, OTHERS)
    config = ScriptConfig(flows, asked.config.sensors)
    events = simulate_arrivals(asked.plan, 1).events
    expected = make_system()(Workload("script", events, config.to_json()))
    assert expected.of(Undefined), "nothing was divided by zero"

    module: dict[str, object] = {}
    exec(job(flows), module)
    rows = pd.DataFrame([(event.key, event.event_time_us, event.value) for event in events])
    tuples = spark.createDataFrame(rows, "sensor string, at long, value double")
    tuples = tuples.select("sensor", functions.timestamp_micros("at").alias("ts"), "value")
    streams = [
        stream.select(
            functions.lit(flow.name),
            functions.lit(name),
            functions.unix_micros("ts"),
            functions.col("value").cast("double"),
        )
        for number, flow in enumerate(flows)
        for name, stream in module[f"workflow_{number}"](tuples).items()  # type: ignore[operator]  # the module is written by the test
    ]
    found = sorted(Result(*row) for row in reduce(DataFrame.union, streams).collect())
    assert found == list(expected.of(Result))


def test_lines_are_those_that_are_not_blank() -> None:
    one = Workflow("w", (Statement("x", Window("max", A, 1_000, 1_000)),))
    two = Workflow("v", (*one.statements, Statement("y", Arithmetic("+", Name("x"), A))))
    assert (script_lines([one]), script_lines([one, two])) == (1, 3)
    # A function, its return, six lines per window, two per operation.
    head = job_lines([])
    assert (job_lines([one]) - head, job_lines([one, two]) - head) == (8, 18)


def test_a_window_that_slides_further_than_it_is_long_is_refused() -> None:
    with pytest.raises(ValueError, match="the slide of a window is 2000; it must be at most 1000"):
        job([Workflow("w", (Statement("x", Window("max", A, 1_000, 2_000)),))])
