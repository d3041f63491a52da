"""Runs streaming queries: one writer per store, file by file, with settings of their own."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import (
    BinaryType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from spark_impl.runtime import stores
from spark_impl.runtime.failures import wait_for, without_stack_traces
from spark_impl.runtime.histories import DATA_FILES, escape_pattern, tidy
from spark_impl.runtime.stores import TableStore

_SETTINGS = {
    "stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # In a folder, one system call renames a file. Spark's default, made for all file systems,
    # starts eight processes for every file of the checkpoint.
    "checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing"
        ".FileSystemBasedCheckpointFileManager"
    ),
}
"""Settings of these queries only; the names follow ``spark.sql.streaming``."""
_STARTING = threading.Lock()
"""Locked while a query starts: the settings of a session are shared by all threads."""
_POLL_S = 0.01
STARTS = 3
TOO_SLOW = "Python worker failed to connect back"
"""Spark raises this error if the driver-side Python worker of a stateful operator does not connect
within ten seconds. The limit is not configurable, and a busy machine may exceed it."""
_BINARY_FILES = StructType(
    [
        StructField("path", StringType()),
        StructField("modificationTime", TimestampType()),
        StructField("length", LongType()),
        StructField("content", BinaryType()),
    ]
)
"""Columns of Spark's source ``binaryFile``."""


class QueryProblem(RuntimeError):  # noqa: N818 (a problem of the user, not a bug)
    """A query stopped; the message is one sentence that says why."""


class QueryRunner:
    """Serialises the runs of one query: a store has a single writer at a time."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._writing = threading.Lock()

    def run_to_end(self, root: Path, start: Callable[[BinaryIO], StreamingQuery]) -> None:
        """Run a query as the only writer of a store until it ends.

        The query is started again, where it stopped, if a Python worker was too slow for Spark.
        Raises :class:`QueryProblem` if it fails, or if a worker was too slow three times.
        """
        with without_stack_traces():
            for attempt in range(STARTS):
                query, unlocking = self.start_alone(root, start)
                try:
                    wait_for(query, QueryProblem, root)
                    break
                except QueryProblem as problem:
                    if TOO_SLOW not in str(problem) or attempt == STARTS - 1:
                        raise
                finally:
                    unlocking.join()  # the next run finds the store unlocked

    def start_alone(
        self, root: Path, start: Callable[[BinaryIO], StreamingQuery]
    ) -> tuple[StreamingQuery, threading.Thread]:
        """Start a query as the only writer of a store.

        ``start`` takes the locked file. The thread that is returned unlocks the store when the
        query has ended.
        """
        lock_file = stores.lock(root)
        try:
            query = start(lock_file)
        except BaseException:
            stores.unlock(lock_file)
            raise

        def unlock() -> None:
            with suppress(Exception):  # whoever waits for the query is told why it ended
                query.awaitTermination()
            with self._writing:  # Java may be gone while a micro-batch is still being written
                stores.unlock(lock_file)

        unlocking = threading.Thread(target=unlock, daemon=True)
        unlocking.start()
        return query, unlocking

    def start(
        self,
        lock_file: BinaryIO,
        rows: DataFrame,
        checkpoint: Path,
        finish: Callable[[DataFrame, int], None],
        **trigger: Any,  # Spark's triggers are str, bool or int
    ) -> StreamingQuery:
        """Start a query with the settings that it needs; other queries keep theirs.

        ``finish`` writes the results of a micro-batch, given its answers and its number.
        """

        def finish_if_locked(answers: DataFrame, batch: int) -> None:
            with self._writing:
                if lock_file.closed:  # Java was gone before the micro-batch was written
                    msg = f"the query that was to write micro-batch {batch} has ended"
                    raise QueryProblem(msg)
                finish(answers, batch)

        tidy(checkpoint)
        with _STARTING:
            conf = self._spark.conf
            wanted = {f"spark.sql.streaming.{name}": value for name, value in _SETTINGS.items()}
            before = {name: conf.get(name, None) for name in wanted}
            for name, value in wanted.items():
                conf.set(name, value)
            try:
                query = (
                    rows.writeStream.outputMode("append")
                    .option("checkpointLocation", str(checkpoint))
                    .foreachBatch(finish_if_locked)
                    .trigger(**trigger)
                    .start()
                )
                wait_for_sources(query)
                return query
            finally:
                for name, was in before.items():
                    if was is None:
                        conf.unset(name)
                    else:
                        conf.set(name, was)


def wait_for_sources(query: StreamingQuery) -> None:
    """Wait until a query has read the settings with which its sources keep their logs.

    Spark copies all other settings when it starts a query.
    """
    with suppress(Exception):  # whoever waits for the query is told why it ended
        while query.isActive and query.status["message"].startswith("Initializing"):
            time.sleep(_POLL_S)


def start_batches(
    rows: DataFrame,
    checkpoint: Path,
    on_batch: Callable[[DataFrame, int], None],
    interval: str | None = None,
) -> StreamingQuery:
    """Start a stream that calls ``on_batch`` with every micro-batch and its number.

    Micro-batches begin at this interval. Without an interval the query ends after everything that
    is in the sources now.
    """
    tidy(checkpoint)
    writer = rows.writeStream.option("checkpointLocation", str(checkpoint)).foreachBatch(on_batch)
    if interval is None:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=interval).start()


def paths(
    spark: SparkSession, where: str, at_once: int | None = 1, *, is_removed: bool = False
) -> DataFrame:
    """Return the files of some folders as a stream of their paths, in the order of their times.

    ``at_once`` is the number of files in a micro-batch; None takes all files that are there. With
    ``is_removed``, Spark deletes a file when it has committed its micro-batch. The source
    ``binaryFile`` only lists the files; others read them.
    """
    files = (
        spark.readStream.format("binaryFile")
        .schema(_BINARY_FILES)
        .option("pathGlobFilter", DATA_FILES)
        .option("maxFileAge", "36500d")  # no file is ever too old
    )
    if is_removed:
        files = files.option("cleanSource", "delete")
    if at_once is not None:
        files = files.option("maxFilesPerTrigger", at_once)
    return files.load(where).select("path")  # so Spark never reads the content


def read_table(
    spark: SparkSession, store: TableStore, name: str, last: int | None = None
) -> DataFrame:
    """Return a table of a store up to micro-batch ``last``, with a column ``batch``.

    ``last`` is by default the last complete micro-batch.
    """
    upto = store.committed() if last is None else last
    schema = from_arrow_schema(store.schema(name)).add("batch", LongType())
    if upto < 0 or not (store.root / name).exists():
        return spark.createDataFrame([], schema)
    rows = spark.read.schema(schema).parquet(escape_pattern(store.root / name))
    return rows.where(F.col("batch") <= upto)
