"""Speed of scripts on Spark: the time to compile many workflows, and the gain of sharing them.

*Compiling*: 1,024 workflows of three windows, each over two of 1,000 sensors drawn at random, for
four workers: seconds from trees to a plan.

*Shared against one by one*: the same workflows over the stream of these sensors (20 to 100 Hz),
windows of a minute every half a minute. ``shared`` is one query for all of them. ``one by one`` are
16 queries of Spark's own windows, one for each of the first 16 workflows, all at once on the same
cores; the time of more queries would grow at least in proportion. The ratio compares tuples read a
second, times the number of workflows that they answer.
"""

import random
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial, reduce
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks._windows import SECOND_US, START_US, in_a_folder
from model.vocabulary import ScriptConfig
from model.vocabulary.script import tree
from spark_impl.runtime.histories import append
from spark_impl.runtime.session import session
from spark_impl.script import ScriptQuery, compile_plan

ROWS, FILES = 500_000, 2
"""Rows of a file and number of files that are measured; one more file warms up."""
ONE_BY_ONE = 16
GOAL = 10.0
NAMES = [f"S{number:04d}" for number in range(1_000)]
"""Names of all sensors."""
WORKFLOWS = 1_024
LENGTH_MS, SLIDE_MS, LATENESS_US = 60_000, 30_000, SECOND_US
OPS = ("max", "avg", "sum")
"""Operation of each window of a workflow."""


def measure() -> dict[str, float]:
    """Return all figures; rates are in tuples a second."""
    figures = compiling()
    with session(long_running=True) as spark:
        return figures | in_a_folder(partial(side_by_side, spark))


def drawn() -> list[list[tuple[str, ...]]]:
    """Draw the sensors of the windows of each workflow."""
    draw = random.Random("workflows")
    return [[tuple(draw.sample(NAMES, 2)) for _ in OPS] for _ in range(WORKFLOWS)]


def rates_hz() -> list[int]:
    """Return the number of tuples a second of each sensor."""
    draw = random.Random("rates")
    return [draw.randint(20, 100) for _ in NAMES]


def config_of(workers: int) -> ScriptConfig:
    """Return the configuration of all workflows on ``workers`` workers."""
    flows = tuple(
        tree.Workflow(f"flow {number}", tuple(map(_statement, OPS, pairs)))
        for number, pairs in enumerate(drawn())
    )
    rates = zip(NAMES, (3_600 * hz for hz in rates_hz()), strict=True)
    return ScriptConfig(flows, tuple(rates), workers, LATENESS_US)


def _statement(op: str, pair: tuple[str, ...]) -> tree.Statement:
    both = tree.Union(tuple(map(tree.Sensor, pair)))
    return tree.Statement(f"of_{op}", tree.Window(op, both, LENGTH_MS, SLIDE_MS))


def files() -> Iterator[pa.Table]:
    """Yield files of an endless history, whose tuples arrive up to half a second late."""
    rng = np.random.default_rng(5)
    share = np.array(rates_hz(), np.float64)
    every_us = SECOND_US / share.sum()
    names, seq = pa.array(NAMES), 0
    while True:
        number = np.arange(seq, seq + ROWS)
        arrival_us = START_US + (number * every_us).astype(np.int64)
        delay_us = np.minimum(rng.exponential(SECOND_US / 10, ROWS), SECOND_US / 2)
        sensor = rng.choice(len(NAMES), ROWS, p=share / share.sum())
        columns = {
            "seq": number,
            "source_id": number,
            "key": names.take(pa.array(sensor)),
            "event_time_us": arrival_us - delay_us.astype(np.int64),
            "value": rng.integers(0, 100, ROWS).astype(np.float64),
            "arrival_us": arrival_us,
        }
        yield pa.table(columns)
        seq += ROWS


def compiling() -> dict[str, float]:
    """Return the median time of five compilations, and the number of computations."""
    config, took = config_of(workers=4), []
    for _ in range(5):
        begun = time.perf_counter()
        plan = compile_plan(config)
        took.append(time.perf_counter() - begun)
    return {
        "compiling 1,024 workflows, s": statistics.median(took),
        "computations written": plan.graph.written,
        "computations made": len(plan.graph.computed),
    }


def side_by_side(spark: SparkSession, place: Path) -> dict[str, float]:
    """Return the rates of one query for 1,024 workflows and of 16 queries for 16 workflows."""
    shared, apart = place / "shared", place / "apart"

    def one_query() -> list[StreamingQuery]:
        return [ScriptQuery(spark, config_of(workers=2), shared, place / "store").start()]

    def one_by_one() -> list[StreamingQuery]:
        return [
            native(spark, place / f"native-{number}", apart, pairs)
            for number, pairs in enumerate(drawn()[:ONE_BY_ONE])
        ]

    shared_s = seconds(shared, one_query)
    apart_s = seconds(apart, one_by_one)
    rate, rate_apart = (ROWS * FILES / each for each in (shared_s, apart_s))
    return {
        "shared, 1,024 workflows": rate,
        "one by one, 16 workflows": rate_apart,
        "shared, times workflows": rate * WORKFLOWS,
        "one by one, times workflows": rate_apart * ONE_BY_ONE,
        "shared / one by one": rate * WORKFLOWS / (rate_apart * ONE_BY_ONE),
        "goal of the ratio": GOAL,
    }


def native(
    spark: SparkSession, own: Path, history: Path, pairs: list[tuple[str, ...]]
) -> StreamingQuery:
    """Start Spark's own streaming windows of one workflow, in one pass over its sensors."""
    reads: Mapping[str, list[int]] = {
        sensor: [number for number, pair in enumerate(pairs) if sensor in pair]
        for sensor in {sensor for pair in pairs for sensor in pair}
    }
    which = reduce(
        lambda rest, each: F.when(F.col("key") == each[0], F.array(*map(F.lit, each[1]))).otherwise(
            rest
        ),
        reads.items(),
        F.array().cast("array<int>"),
    )
    length, slide = (f"{ms} milliseconds" for ms in (LENGTH_MS, SLIDE_MS))
    return (
        spark.readStream.schema("key string, event_time_us long, value double")
        .option("maxFilesPerTrigger", 1)
        .parquet(str(history))
        .where(F.col("key").isin(*reads))
        .withColumn("statement", F.explode(which))
        .withColumn("at", F.timestamp_micros("event_time_us"))
        .withWatermark("at", f"{LATENESS_US} microseconds")
        .groupBy(F.window("at", length, slide), "statement")
        .agg(*(getattr(F, op)("value").alias(op) for op in OPS))
        .writeStream.outputMode("append")
        .format("parquet")
        .option("path", str(own / "answers"))
        .option("checkpointLocation", str(own / "checkpoint"))
        .start()
    )


def seconds(history: Path, start: Callable[[], list[StreamingQuery]]) -> float:
    """Return the seconds that running queries take for new files, after a warm-up file."""
    tables = files()
    append(history, next(tables))
    queries = start()
    for query in queries:
        query.processAllAvailable()
    for table in islice(tables, FILES):
        append(history, table)
    begun = time.perf_counter()
    for query in queries:
        query.processAllAvailable()
    took = time.perf_counter() - begun
    for query in queries:
        query.stop()
    return took
