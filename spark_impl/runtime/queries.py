"""How streaming queries run: alone on their store, file by file, with settings of their own."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import (
    BinaryType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from spark_impl.runtime import lock
from spark_impl.runtime.failures import wait_for, without_stack_traces
from spark_impl.runtime.histories import DATA_FILES, tidy

_SETTINGS = {
    "stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # A store is a folder, where one call to the system renames a file. Spark's usual way, made for
    # all file systems, starts eight processes for every file of the checkpoint.
    "checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing"
        ".FileSystemBasedCheckpointFileManager"
    ),
}
"""Settings of these queries alone, behind ``spark.sql.streaming``."""
_STARTING = threading.Lock()
"""Held while a query starts: the session has one set of settings, for all threads."""
_SOON_S = 0.01
STARTS = 3
TOO_SLOW = "Python worker failed to connect back"
"""Says Spark when the worker that prepares a stateful operator on the driver has not called within
ten seconds, which no setting changes. On a busy machine that happens."""
_BINARY_FILES = StructType(
    [
        StructField("path", StringType()),
        StructField("modificationTime", TimestampType()),
        StructField("length", LongType()),
        StructField("content", BinaryType()),
    ]
)
"""What Spark's source ``binaryFile`` gives for a file."""


class QueryProblem(RuntimeError):  # noqa: N818 (a problem of the user, not a bug)
    """A query that stopped; the message is one sentence that says why."""


class Run:
    """What keeps the runs of a query apart from each other, and from those of others."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._writing = threading.Lock()

    def to_the_end(self, root: Path, begin: Callable[[BinaryIO], StreamingQuery]) -> None:
        """Run a query as the only one that writes a store, until it has ended.

        It is begun again, where it stopped, if a worker of Python was too slow for Spark. Raises
        :class:`QueryProblem` with a sentence when it fails, or was too slow three times.
        """
        with without_stack_traces():
            for start in range(STARTS):
                query, letting_go = self.alone(root, begin)
                try:
                    wait_for(query, QueryProblem, root)
                    break
                except QueryProblem as problem:
                    if TOO_SLOW not in str(problem) or start == STARTS - 1:
                        raise
                finally:
                    letting_go.join()  # whoever comes next finds the store free

    def alone(
        self, root: Path, begin: Callable[[BinaryIO], StreamingQuery]
    ) -> tuple[StreamingQuery, threading.Thread]:
        """Start a query as the only one that writes a store, until the thread has ended.

        ``begin`` is told what the store is held by.
        """
        held = lock.hold(root)
        try:
            query = begin(held)
        except BaseException:
            lock.let_go(held)
            raise

        def let_go() -> None:
            with suppress(Exception):  # whoever waits for the query is told why it ended
                query.awaitTermination()
            with self._writing:  # when Java is gone, we may still be at work
                lock.let_go(held)

        letting_go = threading.Thread(target=let_go, daemon=True)
        letting_go.start()
        return query, letting_go

    def begin(
        self,
        held: BinaryIO,
        rows: DataFrame,
        checkpoint: Path,
        finish: Callable[[DataFrame, int], None],
        **trigger: Any,
    ) -> StreamingQuery:
        """Start the query with the settings that it needs; other queries keep theirs."""

        def guarded(answers: DataFrame, batch: int) -> None:
            with self._writing:
                if held.closed:  # Java was gone before we began
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
                    .foreachBatch(guarded)
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
    """Wait until a query has looked up the settings that its sources keep their logs by.

    Spark copies the settings for everything else when it starts a query.
    """
    with suppress(Exception):  # whoever waits for the query is told why it ended
        while query.isActive and query.status["message"].startswith("Initializing"):
            time.sleep(_SOON_S)


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
    """The files of some folders as a stream of their paths, in the order in which they came.

    ``at_once`` is how many make a micro-batch; None: all that there are. A file that ``is_removed``
    goes when Spark has noted that its micro-batch is done, so that nobody will want it again. The
    kind ``binaryFile`` gives paths and leaves the reading to others.
    """
    files = (
        spark.readStream.format("binaryFile")
        .schema(_BINARY_FILES)
        .option("pathGlobFilter", DATA_FILES)
        .option("maxFileAge", "36500d")  # an old file is an early one, never one to leave out
    )
    if is_removed:
        files = files.option("cleanSource", "delete")
    if at_once is not None:
        files = files.option("maxFilesPerTrigger", at_once)
    return files.load(where).select("path")  # Spark does not read what nobody asks for
