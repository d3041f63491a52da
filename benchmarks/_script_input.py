"""Workflows and streams for the benchmark of scripts, and a script written by hand in PySpark."""

import inspect
import random
from collections.abc import Iterator, Mapping
from functools import reduce
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from model.vocabulary import ScriptConfig
from model.vocabulary.script import tree

SECOND_US = 1_000_000
START_US = 1_700_000_000 * SECOND_US
OPS = ("max", "avg", "sum")
"""Operations of the windows of a workflow, in turn."""


class Network(NamedTuple):
    """Many sensors, and workflows of three windows, each over two sensors drawn at random."""

    sensors: int = 1_000
    workflows: int = 1_024
    length_ms: int = 60_000
    slide_ms: int = 30_000
    lateness_us: int = SECOND_US
    hz: tuple[int, int] = (20, 100)
    """Bounds of the tuples a second of a sensor."""

    @property
    def names(self) -> list[str]:
        """Names of all sensors."""
        return [f"S{number:04d}" for number in range(self.sensors)]

    def rates_hz(self) -> list[int]:
        """Return tuples a second of each sensor."""
        draw = random.Random("rates")
        return [draw.randint(*self.hz) for _ in range(self.sensors)]

    def drawn(self) -> list[list[tuple[str, ...]]]:
        """Draw the sensors of the windows of each workflow."""
        draw, names = random.Random("workflows"), self.names
        return [[tuple(draw.sample(names, 2)) for _ in OPS] for _ in range(self.workflows)]

    def config(self, workers: int) -> ScriptConfig:
        """Return the configuration of all workflows on ``workers`` workers."""
        flows = tuple(
            tree.Workflow(
                f"flow {number}",
                tuple(
                    tree.Statement(
                        f"of_{op}", self._window(op, tree.Union(tuple(map(tree.Sensor, pair))))
                    )
                    for op, pair in zip(OPS, pairs, strict=True)
                ),
            )
            for number, pairs in enumerate(self.drawn())
        )
        rates = zip(self.names, (3_600 * hz for hz in self.rates_hz()), strict=True)
        return ScriptConfig(flows, tuple(rates), workers, self.lateness_us)

    def _window(self, op: str, source: tree.Expression) -> tree.Window:
        return tree.Window(op, source, self.length_ms, self.slide_ms)

    def files(self, rows: int) -> Iterator[pa.Table]:
        """Yield files of an endless history, ``rows`` tuples each, a little out of order."""
        random_ = np.random.default_rng(5)
        share = np.array(self.rates_hz(), np.float64)
        every_us = SECOND_US / share.sum()
        names, seq = pa.array(self.names), 0
        while True:
            number = np.arange(seq, seq + rows)
            arrival_us = START_US + (number * every_us).astype(np.int64)
            delay_us = np.minimum(random_.exponential(SECOND_US / 10, rows), SECOND_US / 2)
            sensor = random_.choice(self.sensors, rows, p=share / share.sum())
            columns = {
                "seq": number,
                "source_id": number,
                "key": names.take(pa.array(sensor)),
                "event_time_us": arrival_us - delay_us.astype(np.int64),
                "value": random_.integers(0, 100, rows).astype(np.float64),
                "arrival_us": arrival_us,
            }
            yield pa.table(columns)
            seq += rows


def native(rows: DataFrame, network: Network, pairs: list[tuple[str, ...]]) -> DataFrame:
    """Return one workflow in Spark's own streaming windows, in one pass over its sensors."""
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
    length, slide = (f"{ms} milliseconds" for ms in (network.length_ms, network.slide_ms))
    return (
        rows.where(F.col("key").isin(*reads))
        .withColumn("statement", F.explode(which))
        .withColumn("at", F.timestamp_micros("event_time_us"))
        .withWatermark("at", f"{network.lateness_us} microseconds")
        .groupBy(F.window("at", length, slide), "statement")
        .agg(*(getattr(F, op)("value").alias(op) for op in OPS))
    )


SCRIPT = """\
ewr = avg("EWR.temp", 21_600_000, 3_600_000)
jfk = avg("JFK.temp", 21_600_000, 3_600_000)
both = avg(union("EWR.temp", "JFK.temp"), 21_600_000, 3_600_000)
inland = (ewr - jfk) * 5 / 9
"""
"""The first script of docs/script.md."""


def by_hand(spark: SparkSession, history: str) -> DataFrame:
    """Return the results of that script as a PySpark programmer would write it, not as a stream."""
    rows = spark.read.parquet(history)
    rows = rows.withColumn("at", F.timestamp_micros("event_time_us"))

    def average(name: str, *sensors: str) -> DataFrame:
        chosen = rows.where(F.col("key").isin(*sensors))
        windows = chosen.groupBy(F.window("at", "6 hours", "1 hour"))
        averages = windows.agg(F.avg("value").alias("value"))
        stamp = F.unix_micros(F.col("window.end")) - 1_000
        return averages.select(F.lit(name).alias("name"), stamp.alias("ts_us"), "value")

    ewr = average("ewr", "EWR.temp")
    jfk = average("jfk", "JFK.temp")
    both = average("both", "EWR.temp", "JFK.temp")
    until_now = Window.orderBy("ts_us").rowsBetween(Window.unboundedPreceding, 0)

    def value_of(name: str) -> Column:
        return F.max(F.when(F.col("name") == name, F.col("value"))).alias(name)

    def latest(name: str) -> Column:
        return F.last(name, ignorenulls=True).over(until_now).alias(name)

    sides = ewr.unionByName(jfk).groupBy("ts_us").agg(value_of("ewr"), value_of("jfk"))
    known = sides.select("ts_us", latest("ewr"), latest("jfk")).dropna()
    value = (F.col("ewr") - F.col("jfk")) * 5 / 9
    inland = known.select(F.lit("inland").alias("name"), "ts_us", value.alias("value"))
    return ewr.unionByName(jfk).unionByName(both).unionByName(inland)


def lines() -> tuple[int, int]:
    """Count the lines of the script and of :func:`by_hand`, without blank ones and docstring."""
    said = [line for line in inspect.getsource(by_hand).splitlines() if line.strip()]
    return len(SCRIPT.splitlines()), len([line for line in said if '"""' not in line])
