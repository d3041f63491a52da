"""The adaptive query against Spark's own windows: same files, same windows, comparable delay.

Both sum a value by key in sliding windows of ten seconds, a micro-batch a file, with two cores, two
shuffle partitions and the Java that pays in long runs. Sixteen keys send 10,000 tuples a second,
each delayed at random (exponential, mean half a second), 500,000 tuples a file. A file has one row
group, as every writer makes it at this size; so neither side reads it on two cores.

``adaptive`` is the whole query of room ``slack`` (conformal control, eps 0.02, four tasks, no
recognition of redeliveries): stream, tables, corrections with their check of the assumption.
``native`` is ``withWatermark``, ``window``, append mode, Parquet sink, as Spark comes.
``native_same_settings`` has its checkpoint files written as the adaptive query has them written
(``spark_impl.windows.query``), a setting that Spark does not document. Both wait for a fixed
watermark delay: the mean slack K that the adaptive query has over the measured batches, known from
a run of it over the same files beforehand. So all three wait equally long on the mean.

In every round all three take the same new files, one after the other, each first by turns. A rate
is the median over all batches, except the first of every round, which starts the query, of tuples
in the file over ``triggerExecution`` of Spark's progress report.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import mean, median
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import BinaryType

from model.vocabulary import SlackConfig
from spark_impl.session import session
from spark_impl.slack import SlackQuery
from spark_impl.slack.room import SLACK
from spark_impl.streams import append
from spark_impl.windows.processor import state_schema
from spark_impl.windows.store import Store

SECOND_US = 1_000_000
START_US = 1_700_000_000 * SECOND_US
SIZE_US = 10 * SECOND_US
SLIDES_US = {5: 2 * SECOND_US, 50: SECOND_US // 5}
"""Slide for each number of windows that a tuple has."""
GOALS = {5: 1.0, 50: 3.0}
ROUNDS, FILES = 4, 5
"""Rounds, of which the first warms up, and files in each."""
KEYS = 16
_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
_LOCAL_FILES = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
NAMES = ("adaptive", "native", "native_same_settings")


class Stream(NamedTuple):
    """Tuples at a constant rate, delayed at random."""

    rows: int = 500_000
    """Tuples sent while a file is filled."""
    rate_hz: float = 10_000
    delay_s: float = 0.5
    """Mean of the exponential delays."""
    delayed: float = 1.0
    """Share of the tuples that are delayed; the others arrive at once."""

    def files(self, seed: int) -> Iterator[pa.Table]:
        """The files of an endless history, each with what arrived while it was filled."""
        random = np.random.default_rng(seed)
        span_us = int(self.rows * SECOND_US / self.rate_hz)
        end_us, seq = START_US, 0
        waiting = np.empty((2, 0), np.int64)
        while True:
            sent_us = end_us + np.arange(self.rows) * span_us // self.rows
            end_us += span_us
            delay_us = random.exponential(self.delay_s * SECOND_US, self.rows).astype(np.int64)
            delay_us[random.random(self.rows) >= self.delayed] = 0
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


def measure() -> dict[str, float]:
    """All figures; rates in tuples a second."""
    figures: dict[str, float] = {}
    with session(long_running=True) as spark:
        for per_tuple in SLIDES_US:
            found = _in_a_folder(partial(side_by_side, spark, per_tuple))
            figures |= {f"{per_tuple} windows: {name}": each for name, each in found.items()}
        figures |= _in_a_folder(partial(late_tuples, spark))
        figures |= _in_a_folder(partial(an_hour, spark))
    return figures


def _in_a_folder(job: Callable[[Path], dict[str, float]]) -> dict[str, float]:
    place = Path(tempfile.mkdtemp(prefix="straggler-bench-"))
    try:
        return job(place)
    finally:
        shutil.rmtree(place, ignore_errors=True)


# ------------------------------------------------------------------------- against Spark's own


def side_by_side(spark: SparkSession, per_tuple: int, place: Path) -> dict[str, float]:
    """Rates of the three, their ratios, and what the adaptive query had to do."""
    slide_us = SLIDES_US[per_tuple]
    config = SlackConfig(SIZE_US, slide_us, tasks=4, eps=0.02, dedup=False)
    delay_us = int(_calibrated_s(spark, config, per_tuple, place / "calibration") * SECOND_US)
    tables, history = Stream().files(seed=per_tuple), place / "history"
    rates: dict[str, list[float]] = {}
    for number in range(ROUNDS):
        sizes = _add(history, tables)
        query = SlackQuery(spark, config, history, place / "store")
        turn = number % len(NAMES)
        for name in [*NAMES, *NAMES][turn : turn + len(NAMES)]:
            if name == "adaptive":
                found = batch_rates(query.start, sizes)
            else:
                found = batch_rates(partial(native, spark, place, name, slide_us, delay_us), sizes)
            if number:
                rates.setdefault(name, []).extend(found)
    rate = {name: median(each) for name, each in rates.items()}
    return {
        **rate,
        "ratio": rate["adaptive"] / rate["native"],
        "goal of the ratio": GOALS[per_tuple],
        "ratio at same settings": rate["adaptive"] / rate["native_same_settings"],
        "delay of native, s": delay_us / SECOND_US,
        "mean K of adaptive, s": _mean_slack_s(query.store, FILES),
        "late pairs, share": _late_pairs(query.store),
        "rows read a correction / rows needed": _read_to_needed(query.store),
    }


def _calibrated_s(spark: SparkSession, config: SlackConfig, seed: int, place: Path) -> float:
    """Mean K of the adaptive query over the batches that will be measured, seconds."""
    _add(place / "history", Stream().files(seed), ROUNDS * FILES)
    query = SlackQuery(spark, config, place / "history", place / "store")
    query.run_available()
    return _mean_slack_s(query.store, FILES)


def native(
    spark: SparkSession, place: Path, name: str, slide_us: int, delay_us: int
) -> StreamingQuery:
    """Start Spark's own sliding windows over the history in ``place``."""
    answers = (
        spark.readStream.schema("key string, event_time_us long, value double")
        .option("maxFilesPerTrigger", 1)
        .parquet(str(place / "history"))
        .withColumn("at", F.timestamp_micros("event_time_us"))
        .withWatermark("at", f"{delay_us} microseconds")
        .groupBy(F.window("at", f"{SIZE_US} microseconds", f"{slide_us} microseconds"), "key")
        .agg(F.sum("value").alias("value"), F.count("*").alias("n"))
        .writeStream.outputMode("append")
        .format("parquet")
        .option("path", str(place / name / "answers"))
        .option("checkpointLocation", str(place / name / "checkpoint"))
    )
    if name == "native_same_settings":
        spark.conf.set(_MANAGER, _LOCAL_FILES)
    try:
        return answers.start()
    finally:
        spark.conf.unset(_MANAGER)


def batch_rates(start: Callable[[], StreamingQuery], sizes: list[int]) -> list[float]:
    """Tuples a second of every batch of a run over new files, without the first."""
    query = start()
    try:
        query.processAllAvailable()
        done = [p.durationMs["triggerExecution"] for p in query.recentProgress if p.numInputRows]
    finally:
        query.stop()
    assert len(done) == len(sizes), "a file is a batch"
    return [1000 * size / ms for size, ms in zip(sizes, done, strict=True)][1:]


def _add(history: Path, tables: Iterator[pa.Table], files: int = FILES) -> list[int]:
    """New files in a history, and how many tuples each has."""
    sizes = []
    for _ in range(files):
        table = next(tables)
        append(history, table)
        sizes.append(table.num_rows)
    return sizes


def _table(store: Store, name: str, first_batch: int = 0) -> pa.Table:
    rows = store.read_all(name, store.committed())
    return rows.filter(pc.greater_equal(rows.column("batch"), first_batch))


def _mean_slack_s(store: Store, first_batch: int) -> float:
    slack_us = _table(store, "progress", first_batch).column("slack_us")
    return float(pc.mean(slack_us).as_py()) / SECOND_US


def _late_pairs(store: Store) -> float:
    """Share of the (tuple, window) pairs that were late, after the warm-up."""
    late, received = (
        pc.sum(_table(store, table, FILES).column(column)).as_py() or 0
        for table, column in (("late", "windows"), ("result", "n_rcv"))
    )
    return float(late / (late + received))


def _read_to_needed(store: Store) -> float:
    """Rows of the files that corrections opened, for each row that lay in a corrected window."""
    by_batch = _table(store, "correction").group_by("batch")
    sums = by_batch.aggregate([("rows_read", "max"), ("rows_needed", "sum")])
    read, needed = (
        pc.sum(sums.column(name)).as_py() or 0 for name in ("rows_read_max", "rows_needed_sum")
    )
    return float(read / max(needed, 1))


# ----------------------------------------------------------------------------- lateness, memory


def late_tuples(spark: SparkSession, place: Path) -> dict[str, float]:
    """Rates where a percent of the tuples, and where thirty percent, are late for some window.

    Coverage of 0.3 is enough for these queries, so that K comes down and lets them be late.
    """
    config = SlackConfig(SIZE_US, SLIDES_US[5], tasks=4, lambda_thr=0.3, learning_rate=0.5)
    streams = {"1%": 0.013, "30%": 0.39}
    tables = {
        name: Stream(delay_s=3, delayed=delayed).files(seed=9) for name, delayed in streams.items()
    }
    rates: dict[str, list[float]] = {name: [] for name in streams}
    late: dict[str, float] = {}
    for number in range(3):
        for name in streams:
            sizes = _add(place / name, tables[name])
            query = SlackQuery(spark, config, place / name, place / f"store-{name}")
            found = batch_rates(query.start, sizes)
            if number:
                rates[name].extend(found)
                late[name] = _table(query.store, "late", number * FILES).num_rows / sum(sizes)
    return {
        **{f"{name} late: tuples/s": median(each) for name, each in rates.items()},
        **{f"{name} late: share in the last round": each for name, each in late.items()},
        "30% late against 1%": median(rates["30%"]) / median(rates["1%"]),
        "arrivals/s": Stream().rate_hz,
    }


def an_hour(spark: SparkSession, place: Path) -> dict[str, float]:
    """State of the default query, redeliveries recognised, over an hour at a constant rate."""
    files = 40
    stream = Stream(rows=90_000, rate_hz=1_000)
    config = SlackConfig(SIZE_US, SLIDES_US[50], tasks=4)
    _add(place / "history", stream.files(seed=3), files)
    query = SlackQuery(spark, config, place / "history", place / "store")
    query.run_available()
    first, last = (
        [_state_bytes(spark, query.store, batch) for batch in range(end - 7, end, 2)]
        for end in (files // 4, files)
    )
    return {
        "state in the first quarter of an hour, bytes": mean(first),
        "state in the last, bytes": mean(last),
        "state, last quarter / first": mean(last) / mean(first),
    }


def _state_bytes(spark: SparkSession, store: Store, batch: int) -> float:
    """Bytes of all tasks' states after a batch, as Spark's state store holds them."""
    state = (
        spark.read.format("statestore")
        .option("stateVarName", "task")
        .option("batchId", batch)
        .load(str(store.checkpoint))
    )
    arrays = [field.name for field in state_schema(SLACK) if field.dataType == BinaryType()]
    parts = [F.length(f"value.{name}") for name in arrays]
    size = sum(parts, F.lit(0))
    found: Any = state.agg(F.sum(size)).first()
    return float(found[0])
