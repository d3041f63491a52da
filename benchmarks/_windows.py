"""Shared parts of benchmarks: a stream of files, Spark's own windows, rates of micro-batches."""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)
from pyspark.sql.streaming.query import StreamingQuery

from model.vocabulary import WindowSpec
from spark_impl.runtime.histories import append
from spark_impl.windows.store import WindowStore

SECOND_US = 1_000_000
START_US = 1_700_000_000 * SECOND_US
KEYS = 16
FILES = 5
"""Number of new files in a round."""
_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
_LOCAL_FILES = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)


class Stream(NamedTuple):
    """Tuples at a constant rate, delayed at random."""

    rows: int = 500_000
    """Number of tuples sent while a file is filled."""
    rate_hz: float = 10_000
    delay_s: float = 0.5
    """Mean of the exponential delays."""

    def files(self, seed: int) -> Iterator[pa.Table]:
        """Yield files of an endless history; each has the tuples of one span of arrivals."""
        random = np.random.default_rng(seed)
        span_us = int(self.rows * SECOND_US / self.rate_hz)
        end_us, seq = START_US, 0
        waiting = np.empty((2, 0), np.int64)
        while True:
            sent_us = end_us + np.arange(self.rows) * span_us // self.rows
            end_us += span_us
            delay_us = random.exponential(self.delay_s * SECOND_US, self.rows).astype(np.int64)
            waiting = np.concatenate((waiting, (sent_us, sent_us + delay_us)), axis=1)
            waiting = waiting[:, np.argsort(waiting[1], kind="stable")]
            arrived = int(np.searchsorted(waiting[1], end_us))
            yield _file(random, seq, waiting[0, :arrived], waiting[1, :arrived])
            seq += arrived
            waiting = waiting[:, arrived:]


def _file(
    random: np.random.Generator, seq: int, sent: NDArray[np.int64], arrival: NDArray[np.int64]
) -> pa.Table:
    size = len(sent)
    keys = pa.array([f"key-{number}" for number in range(KEYS)])
    columns = {
        "seq": np.arange(seq, seq + size),
        "source_id": np.arange(seq, seq + size),
        "key": keys.take(pa.array(random.integers(KEYS, size=size))),
        "event_time_us": sent,
        "value": random.integers(1, 9, size=size).astype(np.float64),
        "arrival_us": arrival,
    }
    return pa.table(columns)


def native(
    spark: SparkSession, place: Path, name: str, windows: WindowSpec, delay_us: int
) -> StreamingQuery:
    """Start Spark's own windows over the history in ``place``.

    The query has a watermark with a fixed delay, append mode, a Parquet sink and Spark's default
    settings. Under the name ``native_same_settings`` it writes checkpoint files as our queries do.
    """
    length, slide = (f"{us} microseconds" for us in windows)
    own = spark.newSession()
    if name == "native_same_settings":
        own.conf.set(_MANAGER, _LOCAL_FILES)
    return (
        own.readStream.schema("key string, event_time_us long, value double")
        .option("maxFilesPerTrigger", 1)
        .parquet(str(place / "history"))
        .withColumn("at", F.timestamp_micros("event_time_us"))
        .withWatermark("at", f"{delay_us} microseconds")
        .groupBy(F.window("at", length, slide), "key")
        .agg(F.sum("value").alias("value"), F.count("*").alias("n"))
        .writeStream.outputMode("append")
        .format("parquet")
        .option("path", str(place / name / "answers"))
        .option("checkpointLocation", str(place / name / "checkpoint"))
        .start()
    )


def batch_rates(start: Callable[[], StreamingQuery], sizes: list[int]) -> list[float]:
    """Run a query over new files of these sizes; return tuples/s of each batch after the first."""
    query = start()
    try:
        query.processAllAvailable()
        done = [p.durationMs["triggerExecution"] for p in query.recentProgress if p.numInputRows]
    finally:
        query.stop()
    assert len(done) == len(sizes), "a file is not a micro-batch"
    return [1000 * size / ms for size, ms in zip(sizes, done, strict=True)][1:]


def in_a_folder(job: Callable[[Path], dict[str, float]]) -> dict[str, float]:
    """Return the figures of a job, which gets a temporary folder."""
    place = Path(tempfile.mkdtemp(prefix="straggler-bench-"))
    try:
        return job(place)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def median_rates(
    contenders: Mapping[str, Callable[[], StreamingQuery]],
    history: Path,
    tables: Iterator[pa.Table],
    rounds: int,
) -> dict[str, float]:
    """Return the median rate of each contender in tuples a second, over the same files.

    In every round all contenders read the same new files, one after the other, and take turns in
    being first. The first round warms up.
    """
    names = tuple(contenders)
    rates: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rounds):
        sizes = add(history, tables)
        turn = number % len(names)
        for name in (*names[turn:], *names[:turn]):
            found = batch_rates(contenders[name], sizes)
            if number:
                rates[name] += found
    return {name: median(each) for name, each in rates.items()}


def add(history: Path, tables: Iterator[pa.Table], files: int = FILES) -> list[int]:
    """Add new files to a history, and return their numbers of tuples."""
    sizes = []
    for _ in range(files):
        table = next(tables)
        append(history, table)
        sizes.append(table.num_rows)
    return sizes


def rows_of(store: WindowStore, table: str, first_batch: int = 0) -> pa.Table:
    """Return the rows of a query's table from a micro-batch on."""
    rows = store.at().read_kind(table)
    return rows.filter(pc.greater_equal(rows.column("batch"), first_batch))


def late_pairs(store: WindowStore, first_batch: int) -> float:
    """Return the share of (tuple, window) pairs that are late, from a micro-batch on."""
    late, received = (
        pc.sum(rows_of(store, table, first_batch).column(column)).as_py() or 0
        for table, column in (("late", "windows"), ("result", "n_rcv"))
    )
    return float(late / (late + received))
