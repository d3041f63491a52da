"""Speed of the chain and of Spark's own joins: the same band join, the same files, side by side.

Two streams of 200,000 tuples each take turns, in the order of time, one of each a millisecond;
values are drawn from a million. A pair matches if its values differ by at most 50 and its times by
at most 20 s: about 766,000 pairs. A file has 40,000 tuples of one stream, a micro-batch takes a
file of each; every contestant writes Parquet. There are four task slots, two shuffle partitions.

Spark joins two streams only by an equality, so a band join needs a work-around: each tuple gets the
number of the bucket that its value lies in, a row of R is repeated for every bucket within its
band, and rows of the same bucket are compared. Buckets are as wide as the band reaches: with wider
ones fewer rows are repeated, and more are compared.

``chain m, zeta`` (m workers, blocks of zeta tuples) and ``native`` join two streams; ``chain
batch`` and ``batch`` join two tables. ``native, renaming`` has the
setting of Spark with which the chain starts its query: one system call renames a file of a local
checkpoint. Rates are tuples a second: for streams the median over the micro-batches without the
first of each run, by ``triggerExecution`` of Spark's progress report, and ``whole`` from the start
of a run to the last pair, the flush included; for tables the median over runs.
"""

import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks._windows import START_US, in_a_folder
from model.vocabulary.join import STREAMS, Band
from spark_impl.join import ChainJoin, results
from spark_impl.runtime.queries import settings_of_start
from spark_impl.runtime.session import session
from spark_impl.runtime.storage import locate

TUPLES, FILES = 200_000, 5
"""Number of tuples and of files of a stream."""
STEP_US = 1_000
WINDOW = 20_000
"""Length of the window, in steps."""
VALUES, EPS = 1_000_000, 50
CREDIT_TUPLES = 1024
"""Tuples in flight over a boundary, for every size of blocks."""
SCHEMA = "seq long, source_id long, key string, event_time_us long, value double"
ROUNDS = 2
"""Measured rounds, after one that warms up."""
CHAINS = [(1, 64), (2, 20), (2, 64), (2, 256), (4, 64)]
"""Number of workers and block size of each chain."""


class JoinRun(NamedTuple):
    """Rates of one run of a contestant."""

    batch_rates: list[float]
    whole: float
    pairs: int


def measure() -> dict[str, float]:
    """Return all figures; rates are in tuples a second."""
    with session("local[4]", long_running=True) as spark:
        return in_a_folder(partial(side_by_side, spark))


def arrivals(stream: str) -> pa.Table:
    """Return all arrivals of one stream."""
    order = STREAMS.index(stream)
    number = np.arange(TUPLES)
    keys = pa.array([f"key-{each}" for each in range(16)])
    return pa.table(
        {
            "seq": 2 * number + order,
            "source_id": number,
            "key": keys.take(pa.array(number % 16)),
            "event_time_us": START_US + number * STEP_US,
            "value": np.random.default_rng(order).integers(VALUES, size=TUPLES).astype(np.float64),
        }
    )


def side_by_side(spark: SparkSession, place: Path) -> dict[str, float]:
    """Return the rates of all contestants, and their ratios."""
    for stream in STREAMS:
        (place / stream).mkdir()
        table, size = arrivals(stream), TUPLES // FILES
        for number in range(FILES):
            pq.write_table(table.slice(number * size, size), place / stream / f"{number}.parquet")
    contestants: dict[str, Callable[[], JoinRun]] = {
        **{f"chain {m}, {zeta}": partial(chain_run, spark, place, m, zeta) for m, zeta in CHAINS},
        "native": partial(native_run, spark, place),
        "native, renaming": partial(native_run, spark, place, renaming=True),
        "chain batch": partial(table_run, spark, place, _chain_table),
        "batch": partial(table_run, spark, place, _bucketed),
    }
    warm = ("chain 2, 64", "native", "batch")
    runs: dict[str, list[JoinRun]] = {name: [] for name in contestants}
    for number in range(ROUNDS + 1):
        for name, run in contestants.items():
            if number:
                runs[name].append(run())
            elif name in warm:
                run()
    assert len({run.pairs for own in runs.values() for run in own}) == 1, "the pairs differ"
    rate = {
        name: median(each for run in own for each in run.batch_rates or [run.whole])
        for name, own in runs.items()
    }
    whole = {name: median(run.whole for run in own) for name, own in runs.items()}
    return {
        **{f"{name}: tuples/s": each for name, each in rate.items()},
        **{f"{name}: whole": each for name, each in whole.items() if runs[name][0].batch_rates},
        "chain 2, 64 / native": rate["chain 2, 64"] / rate["native"],
        "goal, chain / native": 4.0,
        "chain 2, 64 / native, whole": whole["chain 2, 64"] / whole["native"],
        "chain 2, 64 / native, renaming, whole": whole["chain 2, 64"] / whole["native, renaming"],
        "chain 2, 64 / batch": rate["chain 2, 64"] / rate["batch"],
        "chain batch / batch": rate["chain batch"] / rate["batch"],
        "goal, chain / batch": 0.6,
        "pairs": runs["batch"][0].pairs,
    }


def chain_run(spark: SparkSession, place: Path, workers: int, zeta: int) -> JoinRun:
    """Run the chain over two streams, with a flush."""
    with tempfile.TemporaryDirectory(dir=place) as out:
        store = Path(out) / "chain"
        begun = time.perf_counter()
        r, s = (_stream(spark, place, stream) for stream in STREAMS)
        joined = _chain(workers, zeta).stream(r, s, store)
        batches = _batches(joined.start())
        joined.flush()
        took_s = time.perf_counter() - begun
        return JoinRun(_rates(batches), 2 * TUPLES / took_s, results(spark, store).count())


def native_run(spark: SparkSession, place: Path, *, renaming: bool = False) -> JoinRun:
    """Run Spark's own join of two streams on buckets, if ``renaming`` with the chain's setting."""
    with tempfile.TemporaryDirectory(dir=place) as out:
        begun = time.perf_counter()
        r, s = (
            _at(_stream(spark, place, each)).withWatermark("at", "0 seconds") for each in STREAMS
        )
        pairs = _in_buckets(r, s)
        written = pairs.writeStream.format("parquet").option("path", f"{out}/pairs")
        query = written.option("checkpointLocation", f"{out}/checkpoint")
        with settings_of_start(spark, locate(out)) if renaming else nullcontext():
            started = query.start()
        batches = _batches(started)
        took_s = time.perf_counter() - begun
        found = _count(spark, f"{out}/pairs")
        return JoinRun(_rates(batches), 2 * TUPLES / took_s, found)


def table_run(spark: SparkSession, place: Path, join: Callable[..., DataFrame | None]) -> JoinRun:
    """Run a join of two tables, which returns the pairs, or ``None`` if it has stored them."""
    with tempfile.TemporaryDirectory(dir=place) as out:
        r, s = (spark.read.schema(SCHEMA).parquet(str(place / stream)) for stream in STREAMS)
        begun = time.perf_counter()
        pairs = join(r, s, Path(out))
        if pairs is not None:
            pairs.write.parquet(f"{out}/pairs")
        took_s = time.perf_counter() - begun
        found = results(spark, out).count() if pairs is None else _count(spark, f"{out}/pairs")
        return JoinRun([], 2 * TUPLES / took_s, found)


def _count(spark: SparkSession, path: str) -> int:
    return spark.read.parquet(path).count()


def _chain(workers: int, zeta: int) -> ChainJoin:
    return ChainJoin(
        workers,
        WINDOW * STEP_US,
        {"pairs": Band("value", EPS)},
        block_size=zeta,
        credit=max(4, CREDIT_TUPLES // zeta),
        lateness_us=0,
    )


def _chain_table(r: DataFrame, s: DataFrame, out: Path) -> None:
    _chain(2, 64).join(r, s, out)


def _stream(spark: SparkSession, place: Path, stream: str) -> DataFrame:
    files = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    return files.parquet(str(place / stream))


def _batches(query: StreamingQuery) -> list[StreamingQueryProgress]:
    """Wait until a query has read all files; return what Spark says about its micro-batches."""
    try:
        query.processAllAvailable()
        done = [each for each in query.recentProgress if each.numInputRows]
    finally:
        query.stop()
    assert len(done) == FILES, "a micro-batch is not a file of each stream"
    return done


def _rates(batches: list[StreamingQueryProgress]) -> list[float]:
    """Return tuples a second of every micro-batch but the first."""
    return [1000 * each.numInputRows / each.durationMs["triggerExecution"] for each in batches[1:]]


def _bucketed(r: DataFrame, s: DataFrame, _: Path) -> DataFrame:
    return _in_buckets(_at(r), _at(s))


def _at(rows: DataFrame) -> DataFrame:
    return rows.withColumn("at", F.timestamp_micros("event_time_us"))


def _in_buckets(r: DataFrame, s: DataFrame) -> DataFrame:
    """Return the band join, expressed as an equality of buckets."""
    bounds = (F.floor((F.col("value") + reach) / EPS) for reach in (-EPS, EPS))
    r = r.withColumn("bucket", F.explode(F.sequence(*bounds)))
    s = s.withColumn("bucket", F.floor(F.col("value") / EPS))
    window = F.expr(f"INTERVAL {WINDOW * STEP_US} MICROSECONDS")
    near = F.abs(F.col("r.value") - F.col("s.value")) <= EPS
    since, until = F.col("s.at") - window, F.col("s.at") + window
    same = F.col("r.bucket") == F.col("s.bucket")
    fits = same & near & (F.col("r.at") >= since) & (F.col("r.at") <= until)
    chosen = F.col("r.source_id").alias("r_id"), F.col("s.source_id").alias("s_id")
    return r.alias("r").join(s.alias("s"), fits).select(*chosen)
