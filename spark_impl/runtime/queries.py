"""Runs streaming queries, each in a session of its own, and reads what they have found."""

import json
import logging
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery

from model.vocabulary.durations import duration_us
from spark_impl.runtime import packages
from spark_impl.runtime.arrays import Values
from spark_impl.runtime.cell_times import Duration
from spark_impl.runtime.failures import QueryProblem, wait_for, without_stack_traces
from spark_impl.runtime.histories import read_parquet
from spark_impl.runtime.limits import Limits
from spark_impl.runtime.storage import InputProblem, Location, locate
from spark_impl.runtime.stores import FEW, TableStore
from spark_impl.runtime.tables import BATCH, TableWriter

_CHECKED = {"parquet.page.verify-checksum.enabled": "true"}
_SETTINGS = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    # A streaming query is not executed adaptively, and Spark warns of that at every start.
    "spark.sql.adaptive.enabled": "false",
}
_LOCAL_SETTINGS = {
    # In a local folder, one system call renames a file. Spark's default, for all file systems,
    # starts eight processes for every file of the checkpoint.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing"
        ".FileSystemBasedCheckpointFileManager"
    ),
}
PARTITIONS_MAX = 200
"""Most partitions of a query's state, each with a state store; Spark's own default."""
Sink: TypeAlias = Callable[[DataFrame, int], None]
"""Takes the answers of a micro-batch, and its number.

After a crash it may be called again with the number of the last micro-batch and the same answers. A
sink that replaces what it wrote under this number therefore holds every answer once. It is not
called for a micro-batch in which nothing arrived.
"""
log = logging.getLogger("straggler.queries")
STARTS = 3
TOO_SLOW = "Python worker failed to connect back"
"""Spark raises this error if the driver-side Python worker of a stateful operator does not connect
within ten seconds. The limit is not configurable, and a busy machine may exceed it."""


def session_of_query(spark: SparkSession, checkpoint: Location, tasks: int | None) -> SparkSession:
    """Return a session with the settings of a query; those of ``spark`` stay as they are.

    ``tasks`` is the number of different states of the query, ``None`` if it is not known. The query
    has at most as many partitions as states, and as the cluster has cores. A query that has run
    before keeps its number of partitions. Listeners of ``spark`` receive the query's events.
    """
    packages.prepare_workers(spark.sparkContext)
    own = spark.newSession()
    cores = max(spark.sparkContext.defaultParallelism, 1)
    partitions = min(cores, PARTITIONS_MAX, *([] if tasks is None else [tasks]))
    wanted = {**_SETTINGS, "spark.sql.shuffle.partitions": str(partitions)}
    if checkpoint.is_local:
        wanted |= _LOCAL_SETTINGS
    for name, value in wanted.items():
        own.conf.set(name, value)
    _share_listeners(spark, own)
    return own


def _share_listeners(spark: SparkSession, own: SparkSession) -> None:
    """Register the listeners of ``spark`` in ``own``: Spark tells each session of its own queries.

    A new session already has Spark's own listeners and those of the configuration.
    """
    known = list(own._jsparkSession.streams().listListeners())
    for listener in spark._jsparkSession.streams().listListeners():
        if listener not in known:
            own._jsparkSession.streams().addListener(listener)


class Runnable(ABC):
    """A stream with a store; every start resumes where the last one stopped."""

    _limits: Limits
    """Limits at which the query stops."""

    def run_available(self) -> None:
        """Process everything that is in the source now.

        If a Python worker was too slow for Spark, the query is started again and resumes. Raise
        :class:`QueryProblem` if it fails, or if a worker was too slow three times.

        Examples:
            >>> from pathlib import Path
            >>> _ = Path(folder, "readings", "2.csv").write_text("a,2026-03-01T08:00:12Z,7\\n")
            >>> landing.run_available()
            >>> query.run_available()
        """
        self._limits.resume(self._root)
        with without_stack_traces():
            for attempt in range(STARTS):
                try:
                    wait_for(self._start(), self._root)
                    break
                except QueryProblem as problem:
                    if TOO_SLOW not in str(problem) or attempt == STARTS - 1:
                        raise
                    log.info("the query of %s starts again: %s", self._root, problem)

    def start(self, interval: Duration = "0 seconds") -> StreamingQuery:
        """Start the query and leave it running.

        Args:
            interval: time from the start of a micro-batch to that of the next one, such as
                ``"10 seconds"``; by default one follows the other.

        Examples:
            >>> running = query.start("10 seconds")
            >>> running.stop()
        """
        self._limits.resume(self._root)
        return self._start(interval)

    @property
    @abstractmethod
    def _root(self) -> Location:
        """The folder that the query writes."""

    @abstractmethod
    def _start(self, interval: Duration | None = None) -> StreamingQuery:
        """Start the query; without an interval it ends when it has processed everything."""


class HistoryQuery(Runnable):
    """A query that reads a history, and ends its streams if it is asked to."""

    store: TableStore
    source: Location
    """The history."""
    _checkpoint: Location

    def flush(self, wanted: Callable[[Values], bool] | None = None) -> None:
        """Process everything that is in the source, then end all streams.

        Windows close, and pending pairs are corrected. The request is durable: if a flush is
        interrupted, the next run carries it out, once.

        Args:
            wanted: function that chooses among the combinations of the grouping columns' values;
                None chooses all.

        Examples:
            >>> query.flush()
            >>> slack.results(spark, store).select("key", "value", "n").collect()
            [Row(key='a', value=5.0, n=1)]
        """
        self.run_available()
        rows, columns = self._requests(wanted or (lambda _: True))
        if rows:
            self.store.request(rows, columns, self.source)
            self.run_available()

    @property
    def _root(self) -> Location:
        return self.store.root

    def _start(self, interval: Duration | None = None) -> StreamingQuery:
        self._open()
        writer = TableWriter(self.store.root, self.source, self._checkpoint)
        require_checkpoint(self._checkpoint, writer, writer.view.last)
        finish = partial(self._finish, writer=writer)
        return start_batches(self._reports(), self._checkpoint, finish, interval)

    @abstractmethod
    def _requests(self, wanted: Callable[[Values], bool]) -> tuple[list[Values], pa.Schema]:
        """Return a request to end for each task of the wanted groups, and its columns."""

    @abstractmethod
    def _open(self) -> None:
        """Open the store again: it may have been replaced since the query was made."""

    @abstractmethod
    def _reports(self) -> DataFrame:
        """Return the stream of what the tasks report."""

    @abstractmethod
    def _finish(self, reports: DataFrame, batch: int, writer: TableWriter) -> None:
        """Write everything of a micro-batch. After a crash, Spark calls it again."""


def start_batches(
    rows: DataFrame,
    checkpoint: Location,
    on_batch: Callable[[DataFrame, int], None],
    interval: Duration | None = None,
) -> StreamingQuery:
    """Start a stream that calls ``on_batch`` with every micro-batch and its number.

    A micro-batch begins after each ``interval``. Without an interval, the query ends when it has
    processed everything that is in the sources now.
    """

    def answer(rows: DataFrame, batch: int) -> None:
        try:
            on_batch(rows, batch)
        except Exception:
            raise
        except BaseException as error:  # Java gets no answer to its call, and waits for ever
            msg = f"micro-batch {batch} was given up: {type(error).__name__}: {error}"
            raise QueryProblem(msg) from error

    require_identity(checkpoint)
    remove_unwritten_plan(checkpoint)
    trigger: Any = {"availableNow": True}
    if interval is not None:
        trigger = {"processingTime": f"{duration_us('interval', interval)} microseconds"}
    writer = (
        rows.writeStream.outputMode("append")
        .option("checkpointLocation", checkpoint.for_spark)
        .foreachBatch(answer)
        .trigger(**trigger)
    )
    with settings_of_start(rows.sparkSession, checkpoint):
        return writer.start()


_starting = threading.Lock()


@contextmanager
def settings_of_start(spark: SparkSession, checkpoint: Location) -> Iterator[None]:
    """Set what a query takes along when it starts, unless the session says otherwise.

    A query runs in a copy of its session, made at the start, so the session itself stays as it is.
    """
    wanted = _LOCAL_SETTINGS if checkpoint.is_local else {}
    with _starting:
        ours = [name for name in wanted if spark.conf.get(name, None) is None]
        try:
            for name in ours:
                spark.conf.set(name, wanted[name])
            yield
        finally:
            for name in ours:
                spark.conf.unset(name)


def last_logged(checkpoint: Location, log: str) -> int:
    """Return the last micro-batch in a log of Spark's, ``offsets`` or ``commits``, or -1."""
    return max((int(file.name) for file in (checkpoint / log).children(r"\d+")), default=-1)


def require_checkpoint(checkpoint: Location, writer: TableWriter, last: int) -> None:
    """Raise :class:`InputProblem` if Spark has not planned the last micro-batch, as it was written.

    ``last`` is its number, or -1. Spark might plan other rows, or has done so, and the store would
    take them for those that it has. Nor may Spark have ended a later one.
    """
    if last > last_logged(checkpoint, "offsets") or last < last_logged(checkpoint, "commits"):
        msg = (
            f"{checkpoint} is not the checkpoint of {writer.root}, whose tables are at micro-batch"
            f" {last}"
        )
        raise InputProblem(msg)
    writer.require_plan()


def require_identity(checkpoint: Location) -> None:
    """Raise :class:`InputProblem` if the file that names the query of a checkpoint is damaged.

    Spark would raise the error of its JSON parser, which names neither file nor checkpoint, or
    three sentences of its own if the file is gone.
    """
    file = checkpoint / "metadata"
    if file.exists() or last_logged(checkpoint, "offsets") >= 0:
        with suppress(FileNotFoundError, ValueError, TypeError, KeyError):
            if isinstance(json.loads(file.read_bytes())["id"], str):
                return
        msg = f"{file} does not hold the id of a query: restore it, or the whole checkpoint"
        raise InputProblem(msg)


def remove_unwritten_plan(checkpoint: Location) -> None:
    """Remove the scratch files of a first plan that Spark could not write.

    Spark would take such files for those of another query, and would not start this one again.
    """
    if last_logged(checkpoint, "offsets") < 0:
        for file in (checkpoint / "offsets").children(r"\..*\.tmp.*"):
            file.remove()


def read_table(
    spark: SparkSession,
    store: TableStore,
    kind: str,
    first: int = 0,
    last: int | None = None,
) -> DataFrame:
    """Return the rows of a kind in a store, with the numbers of micro-batches.

    ``first`` and ``last`` choose micro-batches. Raise :class:`InputProblem` if a file was lost, or
    a part of it.
    """
    view = store.view
    end = view.last if last is None else last
    files, schema = view.of(kind, first, end), store.numbered(kind)
    store.require_whole(files)
    if len(files) <= FEW or not store.root.is_local:  # a folder has files of the last hour, too
        rows = read_files(spark, [each.file for each in files], schema)
    else:
        # One pattern is listed by the driver; a job of Spark's would look at more than 32 paths.
        names = {"pathGlobFilter": f"{{{','.join(each.file.name for each in files)}}}"}
        source = spark.read.schema(from_arrow_schema(schema)).options(**names, **_CHECKED)
        rows = source.parquet(escape_pattern(files[0].file.parent))
    return rows if (first, end) == (0, view.last) else rows.where(F.col(BATCH).between(first, end))


def read_files(spark: SparkSession, files: Sequence[Location], schema: pa.Schema) -> DataFrame:
    """Return the rows of Parquet files, wherever they are.

    Spark reads local files; workers read others with Arrow, which needs no connector.
    """
    kinds = from_arrow_schema(schema)
    if not files:
        return spark.createDataFrame([], kinds)
    if files[0].is_local:
        source = spark.read.schema(kinds).options(**_CHECKED)
        return source.parquet(*map(escape_pattern, files))

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for address in (each for batch in batches for each in batch.column("file").to_pylist()):
            yield from read_parquet([locate(address)], schema).to_batches()

    addresses = spark.createDataFrame([(str(file),) for file in files], "file string")
    return addresses.mapInArrow(read, kinds)


def frame_of(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """Return the rows of a table of Arrow; Spark alone loses those behind an empty chunk."""
    return spark.createDataFrame(rows.combine_chunks())


def escape_pattern(path: Location) -> str:
    """Return a pattern that matches this path only, for functions of Spark that take patterns."""
    return re.sub(r"([\\\[\]{}*?,^])", r"\\\1", path.for_spark)
