"""Seconds of the check of a job, beside those of running the job once over the same rows.

Two jobs sum readings of a minute: one waits as long as rows may be late, the other is impatient and
loses one. "Once" is a plain query with Spark's defaults, which reads the rows of the drawn streams
from a Parquet file in one micro-batch and keeps its answers in memory. Seconds are medians; the
first round warms up.
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from model.checking.claims import Outcome
from spark_impl.runtime.session import session
from straggler.jobs.api import STREAMS, inputs_of, judge_job
from straggler.jobs.check import begin, drawn_streams
from straggler.jobs.running import Job

SCHEMA = "device string, at timestamp, watts double"
ROUNDS = 3
"""Number of rounds; the first one warms up."""


def minutes(readings: DataFrame, delay: str = "10 seconds") -> DataFrame:
    """Sum the watts of each device and minute."""
    windows = readings.withWatermark("at", delay).groupBy("device", F.window("at", "1 minute"))
    return windows.agg(F.sum("watts").alias("watts"))


def impatient(readings: DataFrame) -> DataFrame:
    """Sum them too, without waiting as long as rows may be late."""
    return minutes(readings, "1 second")


def measure() -> dict[str, float]:
    """Return seconds, streams and their ratios."""
    seconds: dict[str, list[float]] = {}
    streams: dict[str, int] = {}
    jobs = {"right": (minutes, Outcome.HOLDS), "wrong": (impatient, Outcome.BROKEN)}
    with session("local[2]") as spark, tempfile.TemporaryDirectory() as folder:
        rows = write_rows(spark, Path(folder) / "rows")
        for number in range(ROUNDS):
            taken = {"once": timed(lambda: run_once(spark, rows))}
            for name, (job, expected) in jobs.items():
                report = judge_job(
                    job, spark, schema=SCHEMA, event_time="at", lateness="10 seconds"
                )
                assert report.outcome is expected, str(report)
                taken[name], streams[name] = report.seconds, report.streams
            for name, each in taken.items() if number else ():
                seconds.setdefault(name, []).append(each)
    found = {name: median(each) for name, each in seconds.items()}
    figures = {"job, once: s": found["once"]}
    for name in jobs:
        figures[f"check, {name} job: s"] = found[name]
        figures[f"check, {name} job: streams"] = streams[name]
        figures[f"check, {name} job: streams/s"] = streams[name] / found[name]
        figures[f"check, {name} job / once"] = found[name] / found["once"]
    return figures


def write_rows(spark: SparkSession, folder: Path) -> Path:
    """Write the rows of the drawn streams of a check to a file."""
    job = Job(minutes, inputs_of(SCHEMA, "at"), is_named=False)
    check = begin(spark, job)
    rows = [row for stream in drawn_streams(check, STREAMS) for row in stream.rows]
    check.reference.runner.frames.frame(0, rows).coalesce(1).write.parquet(str(folder))
    return folder


def run_once(spark: SparkSession, folder: Path) -> None:
    """Run the right job over the rows."""
    rows = spark.readStream.schema(SCHEMA).parquet(str(folder))
    out = minutes(rows).writeStream.format("memory").queryName("once")
    out.trigger(availableNow=True).start().awaitTermination()


def timed(call: Callable[[], None]) -> float:
    """Return the seconds of a call."""
    started = time.monotonic()
    call()
    return time.monotonic() - started
