"""The streaming query over windows, and the answers in its store, for every windowed room."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Generic, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery

from spark_impl.runtime import queries
from spark_impl.runtime.arrays import Values
from spark_impl.runtime.histories import VALUE
from spark_impl.runtime.locks import Lock
from spark_impl.runtime.queries import Sink, require_checkpoint
from spark_impl.runtime.sources import PATH, paths
from spark_impl.runtime.storage import Address, locate
from spark_impl.windows import processor
from spark_impl.windows.arrival_files import FileShares
from spark_impl.windows.blocks import SLOT, block_schema, pack_files, slots
from spark_impl.windows.correction import Corrections
from spark_impl.windows.history import History, check_source
from spark_impl.windows.room import ConfigT, WindowRoom, WindowSettings
from spark_impl.windows.store import (
    WindowStore,
    all_tables,
    load_store,
    open_store,
    record_types,
    report_columns,
    written_column,
)

FEW_TASKS = 16
"""Most tasks that read files themselves; the arrivals of more tasks travel."""
FARTHEST_US = 291 * 366 * 86_400_000_000
"""Distance from 1970 up to which pandas, which counts nanoseconds in 64 bits, has timestamps."""
EXACT, PROVISIONAL = "exact", "provisional"
_T = TypeVar("_T")


class WindowedQuery(Generic[ConfigT]):
    """Windows over a history that wait as long as the rule of a room says.

    ``source`` is a history: a folder of numbered Parquet files, one micro-batch each
    (:class:`Landing` writes such folders). A history without files is waited for. ``store`` is the
    folder for the answers; a query that opens it again resumes where the last one stopped. Both
    must be reachable under the same address from the driver and from all workers.

    ``group_columns`` are further columns of the history. Every combination of their values is a
    query of its own.

    ``value`` is the column of the history with the values, for histories with several such columns;
    with None every arrival has the value 1, which is enough to count them. An arrival whose value
    is NULL is rejected by this query only.

    ``sink`` is called with the new and revised answers of every micro-batch: the grouping columns,
    ``task``, ``key``, ``start_us``, ``end_us``, ``value``, ``n`` and ``revision``. ``checkpoint``
    is the folder for Spark's own files, by default one in the store; Spark needs a connector for
    its file system.

    Raises :class:`InputProblem` with one sentence, and writes nothing, if the source cannot be read
    or the store belongs to another query. Running the query raises it if another query, here or
    elsewhere, writes the same store.
    """

    def __init__(
        self,
        spark: SparkSession,
        room: WindowRoom[ConfigT],
        config: ConfigT,
        source: Address,
        store: Address,
        group_columns: Collection[str] = (),
        *,
        value: str | None = VALUE,
        sink: Sink | None = None,
        checkpoint: Address | None = None,
    ) -> None:
        self._spark = spark
        self._room = room = room.of(config)
        self._config = config
        self._settings = replace(room.settings(config), value=value)
        self._source = locate(source)
        columns = set(chain.from_iterable(all_tables(room).values()))
        groups = check_source(self._source, columns, group_columns, value)
        self._store = open_store(locate(store), room, config, groups, value)
        self._checkpoint = locate(checkpoint) if checkpoint else self._store.checkpoint
        self._sink = sink
        self._history = History(spark, self._settings, self._source, groups)
        self._reached: int | None = None
        self._corrections = Corrections(self._settings, self._store, self._history)
        self._runner = queries.QueryRunner()

    @property
    def store(self) -> WindowStore:
        """The store with the answers."""
        return self._store

    @property
    def restarts(self) -> int:
        """Number of starts again by ``run_available``, because a Python worker was too slow."""
        return self._runner.restarts

    def run_available(self) -> None:
        """Process everything that is in the source now, one file per micro-batch."""
        self._runner.run_to_end(self._store.root, partial(self._start, availableNow=True))

    def start(self, interval: str = "0 seconds") -> StreamingQuery:
        """Start the query and leave it running; it takes files as they come."""
        start = partial(self._start, processingTime=interval)
        return self._runner.start_alone(self._store.root, start)[0]

    def flush(self, wanted: Callable[[Values], bool] | None = None) -> None:
        """Process everything in the source, then close all windows and correct all pending pairs.

        ``wanted`` chooses among the combinations of the grouping columns' values. The request is
        durable: if a flush is interrupted, the next run carries it out, once.
        """
        self.run_available()
        known = self._store.known_tasks()
        tasks = [who for who in known if wanted is None or wanted(who[:-1])]
        if tasks:
            self._store.request_flush(tasks, self._source)
            self.run_available()

    def _start(self, lock: Lock, **trigger: str | bool) -> StreamingQuery:
        # Open the store again under the lock: another query may have created it meanwhile.
        store = self._store
        open_store(store.root, self._room, self._config, store.groups, store.value)
        require_checkpoint(self._checkpoint, store.root, store.committed())
        self._corrections = Corrections(self._settings, self._store, self._history)
        return self._runner.start(lock, self._reports(), self._checkpoint, self._finish, **trigger)

    def _reports(self) -> DataFrame:
        """Return the reports of tasks; the workers write the stream tables themselves."""
        settings, store = self._settings, self._store
        travel = bool(store.groups) or settings.tasks > FEW_TASKS
        operator = processor.WindowProcessor(
            self._room,
            self._config,
            store.by[:-1],
            None if travel else FileShares(settings, store.control),
            processor.table_writer(store, settings),
        )
        return (
            (self._blocks() if travel else self._slots())
            .groupBy(*store.by[:-1], SLOT)
            .transformWithState(
                operator,
                outputStructType=from_arrow_schema(store.schema_of(report_columns(self._room))),
                outputMode="append",
                timeMode="none",
            )
        )

    def _slots(self) -> DataFrame:
        """Return a row for every task and file."""
        every = F.explode(F.lit([*slots(self._settings.tasks)]))
        return self._paths().select(every.alias(SLOT), PATH)

    def _blocks(self) -> DataFrame:
        """Return a row with a block for every task and file that has arrivals for it."""
        store = self._store
        pack = partial(
            pack_files,
            control=store.control,
            groups=store.groups,
            settings=self._settings,
            slots=slots(self._settings.tasks),
        )
        return self._paths().mapInArrow(pack, from_arrow_schema(block_schema(store.groups)))

    def _paths(self) -> DataFrame:
        tasks = None if self._store.groups else self._settings.tasks
        session = queries.session_of_query(self._spark, self._checkpoint, tasks)
        return paths(session, self._source, self._store.control)

    def _finish(self, answers: DataFrame, batch: int) -> None:
        """Write everything of a micro-batch; Spark calls this, and again after a crash."""
        if self._reached is not None and self._settings.corrects:
            self._history.read_ahead(self._reached)
        self._store.begin(batch)
        reports = answers.toArrow()
        progress, written = self._require_written(batch, reports)
        self._corrections.run(batch, progress, written)
        if self._sink is not None and reports.num_rows:  # else nothing was read
            self._sink(self._answers_of(batch), batch)
        if self._store.compact(batch):
            self._corrections = Corrections(self._settings, self._store, self._history)
        self._reached = pc.max(progress.column("seq")).as_py()

    def _require_written(self, batch: int, reports: pa.Table) -> tuple[pa.Table, Mapping[str, int]]:
        """Return the progress of tasks, and their rows by table, once these are found."""
        progress = reports.filter(reports.column("active"))
        written = {
            name: pc.sum(reports.column(written_column(name))).as_py() or 0
            for name in record_types(self._room)
        }
        written["progress"] = progress.num_rows
        self._store.require_rows(batch, written)
        schema = self._store.schema("progress")
        return progress.select(schema.names).cast(schema), written

    def _answers_of(self, batch: int) -> DataFrame:
        """Return the answers that are new or revised in a micro-batch."""
        store = self._store
        first, revised = (
            queries.read_files(self._spark, store.files_of(name, batch), store.schema(name))
            for name in ("result", "revision")
        )
        return latest_answers(self._settings, store, first, revised).drop("n_rcv")


def results(spark: SparkSession, room: WindowRoom[ConfigT], store: Address) -> DataFrame:
    """Return the current answers of the query that writes ``store``.

    The columns are:

    * the grouping columns, ``task``, ``key``, ``start_us`` and ``end_us`` of the window;
    * ``value``, ``n`` (number of tuples) and ``revision`` (0 is the stream's own answer);
    * ``n_rcv`` (tuples in the stream's answer) and ``coverage`` (``n_rcv`` over the tuples known
      by now);
    * ``state``: ``exact`` or ``provisional``;
    * ``window``: ``start`` and ``end`` of the window as timestamps, as Spark's own ``window`` has
      them; NULL if it lies outside of the years 1678 to 2261, which pandas cannot hold.

    Incomplete micro-batches are omitted. Raises :class:`InputProblem` if ``store`` is not the store
    of a query.
    """
    config, opened = load_store(store, room)
    settings = room.settings(config)
    return read_undisturbed(opened, lambda last: current_answers(spark, settings, opened, last))


def corrections(spark: SparkSession, room: WindowRoom[ConfigT], store: Address) -> DataFrame:
    """Return a row for each correction of a task.

    The columns are:

    * the grouping columns, ``task``, ``batch`` and ``reason`` (``gamma``, ``age`` or ``flush``);
    * ``pairs`` and ``windows`` that it covered;
    * ``rows_needed``: rows of the history in these windows;
    * ``rows_read``: rows that were read to find them, then or before, for all tasks that the
      micro-batch corrected.

    Raises :class:`InputProblem` if ``store`` is not the store of a query.
    """
    _, opened = load_store(store, room)
    rows = read_undisturbed(
        opened, lambda last: queries.read_table(spark, opened, "correction", last)
    )
    measures = ["pairs", "windows", "rows_needed", "rows_read"]
    return rows.select(*opened.by, "batch", "reason", *measures)


def late(spark: SparkSession, room: WindowRoom[ConfigT], store: Address) -> DataFrame:
    """Return a row for each (tuple, window) that was late for the first answers.

    The columns are:

    * the grouping columns, ``task``, ``key``, ``start_us`` and ``end_us`` of the window;
    * ``source_id`` and ``event_time_us`` of the tuple;
    * ``batch``, the micro-batch in which it came; the first one, if it came again after its
      identity was forgotten.

    Raises :class:`InputProblem` if ``store`` is not the store of a query.
    """
    config, opened = load_store(store, room)
    settings = room.settings(config)
    rows = read_undisturbed(opened, lambda last: queries.read_table(spark, opened, "late", last))
    pairs = _pairs(settings, rows).withColumn("end_us", F.col("start_us") + settings.size_us)
    pair = (*opened.by, "key", "start_us", "end_us", "source_id", "event_time_us")
    return pairs.groupBy(*pair).agg(F.min("batch").alias("batch"))


def read_undisturbed(store: WindowStore, read: Callable[[int], _T]) -> _T:
    """Return what ``read`` finds up to the last complete micro-batch.

    A running query may begin this micro-batch anew, or drop the pending pairs after it. ``read`` is
    then called again.
    """
    failed = None
    while True:
        last = store.committed()
        mark = store.mark(last)
        try:
            answer = read(last)
        except Exception:
            if failed == (last, mark):  # twice; the running query is not the reason
                raise
            failed = last, mark
        else:
            if last < 0 or (mark is not None and mark == store.mark(last)):
                return answer


def current_answers(
    spark: SparkSession, settings: WindowSettings, store: WindowStore, last: int
) -> DataFrame:
    """Return the answers after micro-batch ``last``, with the columns of :func:`results`."""
    window = [*store.by, "key", "start_us"]
    stream = queries.read_table(spark, store, "result", last)
    revised = queries.read_table(spark, store, "revision", last)
    answers = latest_answers(settings, store, stream, revised)
    missing = F.coalesce("pending", F.lit(0))
    return answers.join(_pending(spark, settings, store, last), window, "left").select(
        *window,
        "end_us",
        "value",
        "n",
        "revision",
        "n_rcv",
        (F.col("n_rcv") / (F.col("n") + missing)).alias("coverage"),
        F.when(F.col("pending").isNull(), EXACT).otherwise(PROVISIONAL).alias("state"),
        window_struct().alias("window"),
    )


def window_struct() -> Column:
    """Return the window of a row as a struct of two timestamps."""
    ends = F.struct(*(F.timestamp_micros(f"{end}_us").alias(end) for end in ("start", "end")))
    is_held = (F.col("start_us") >= -FARTHEST_US) & (F.col("end_us") <= FARTHEST_US)
    return F.when(is_held, ends)


def latest_answers(
    settings: WindowSettings, store: WindowStore, stream: DataFrame, revised: DataFrame
) -> DataFrame:
    """Return the latest answer of every window among first answers and revisions.

    ``n_rcv`` is 0 if the first answer is not among them.
    """
    window = [*store.by, "key", "start_us"]
    latest = F.max_by(F.struct("value", "n", "revision"), "revision")
    columns = [*window, "value", "n", "revision"]
    first = stream.withColumn("n", F.col("n_rcv")).withColumn("revision", F.lit(0))
    return (
        first.select(*columns)
        .unionByName(revised.select(*columns))
        .groupBy(*window)
        .agg(
            latest.alias("latest"),
            F.max(F.when(F.col("revision") == 0, F.col("n"))).alias("n_rcv"),
        )
        .select(
            *window,
            (F.col("start_us") + settings.size_us).alias("end_us"),
            "latest.value",
            "latest.n",
            F.col("latest.revision").cast("int").alias("revision"),
            F.coalesce("n_rcv", F.lit(0)).alias("n_rcv"),
        )
    )


def _pending(
    spark: SparkSession, settings: WindowSettings, store: WindowStore, last: int
) -> DataFrame:
    """Return the number of pending pairs of every window with some.

    Late pairs of a query without corrections are pending for ever.
    """
    if settings.corrects:
        pairs = queries.read_table(spark, store, "pending", last).where(F.col("batch") == last)
    else:
        pairs = queries.read_table(spark, store, "late", last)
    window = [*store.by, "key", "start_us"]
    # A redelivery whose identity was forgotten makes a pair late once more.
    tuples = F.count_distinct("source_id")
    return _pairs(settings, pairs).groupBy(*window).agg(tuples.alias("pending"))


def _pairs(settings: WindowSettings, runs: DataFrame) -> DataFrame:
    """Return a row for each window of runs of windows."""
    after_first = F.explode(F.sequence(F.lit(0), F.col("windows") - 1))
    start = F.col("start_us") + F.col("step") * settings.slide_us
    return runs.withColumn("step", after_first).withColumn("start_us", start)
