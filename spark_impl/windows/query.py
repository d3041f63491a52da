"""The streaming query over windows, for every windowed room."""

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import ClassVar, Generic

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)
from pyspark.sql.pandas.types import from_arrow_schema

from spark_impl.runtime import accounts, operators
from spark_impl.runtime.arrays import Values
from spark_impl.runtime.histories import VALUE
from spark_impl.runtime.limits import Limit, Limits
from spark_impl.runtime.provenance import note_history, require_history
from spark_impl.runtime.queries import HistoryQuery, Sink, read_table, session_of_query
from spark_impl.runtime.sources import PATH, paths
from spark_impl.runtime.storage import Address, InputProblem, locate
from spark_impl.runtime.stores import Draft
from spark_impl.runtime.tables import TableWriter
from spark_impl.windows.answers import all_answers, with_refused
from spark_impl.windows.arrival_files import FileShares
from spark_impl.windows.blocks import SLOT, block_schema, pack_files, slots
from spark_impl.windows.correction import Corrections
from spark_impl.windows.history import History, check_source
from spark_impl.windows.processor import WindowProcessor, output_tables
from spark_impl.windows.records import Taken
from spark_impl.windows.room import AnyRoom, ConfigT, WindowRoom
from spark_impl.windows.store import (
    WindowStore,
    all_tables,
    open_store,
    record_types,
    report_columns,
    written_column,
)

FEW_TASKS = 16
"""Most tasks that read files themselves; if there are more, arrivals are sent to them."""


class WindowedQuery(HistoryQuery, Generic[ConfigT]):
    """Windows over a history that wait as long as the rule of a room says.

    The driver and all workers reach both folders under the same address.

    Raises :class:`InputProblem` with one sentence, and writes nothing, if the source cannot be read
    or the store belongs to another query. A run stops with this error if another run, here or
    elsewhere, has written a micro-batch of the same store.

    Args:
        spark: session that runs the query.
        config: settings of the room, a :class:`SlackConfig` or :class:`WatermarkConfig`.
        source: history, a folder of numbered Parquet files, one micro-batch each, as
            :class:`Landing` writes them. A history without files is waited for.
        store: folder for the answers; a query that opens it again resumes where the last one
            stopped.
        group_columns: further columns of the history; every combination of their values is a query
            of its own.
        value: column of the history with the values; this query rejects an arrival whose value is
            NULL. None gives every arrival the value 1, which is enough to count them.
        sink: function that is called with the new and revised answers of every micro-batch, and its
            number. The columns are the grouping columns, ``task``, ``key``, ``start_us``,
            ``end_us``, ``value``, ``n``, ``revision`` and ``n_refused`` (refused rows of the window
            until now). A window that closes and is corrected in one micro-batch has two rows, in
            the order of their revisions.
        checkpoint: folder for Spark's own files, for whose file system Spark needs a connector;
            None takes one in ``store``.
        max_refused: limit of refused rows, at which the query stops: below 1.0 a share of each
            micro-batch, or a whole number of all rows so far; None sets no limit.
        max_late: the same limit for late rows, if late rows are not corrected.
        room: room of the query; None takes that of the class.

    Examples:
        >>> store = f"{folder}/answers"
        >>> query = SlackQuery(spark, config, f"{folder}/history", store)
    """

    room: ClassVar[AnyRoom]
    """The room of a class of queries."""
    store: WindowStore
    """The store with the answers."""

    def __init__(
        self,
        spark: SparkSession,
        config: ConfigT,
        source: Address,
        store: Address,
        group_columns: Collection[str] = (),
        *,
        value: str | None = VALUE,
        sink: Sink | None = None,
        checkpoint: Address | None = None,
        max_refused: Limit = None,
        max_late: Limit = None,
        room: WindowRoom[ConfigT] | None = None,
    ) -> None:
        self._spark = spark
        self._room = room = (room or self.room).of(config)
        self._config = config
        self.settings = replace(room.settings(config), value=value)
        """The settings that all rooms with windows share."""
        self._limits = limits_of(self.settings.corrects, max_refused, max_late)
        self.source = locate(source)
        named = (*all_tables(room).values(), report_columns(room), accounts.COLUMNS.names)
        columns = {*chain.from_iterable(named)}
        groups = check_source(self.source, columns, group_columns, value)
        self.store = open_store(locate(store), room, config, groups, value)
        require_history(self.store.at().view, self.source)
        self._checkpoint = locate(checkpoint) if checkpoint else self.store.checkpoint
        self._sink = sink
        self._history = History(spark, self.settings, self.source, groups)
        self._reached: int | None = None

    def _requests(self, wanted: Callable[[Values], bool]) -> tuple[list[Values], pa.Schema]:
        tasks = [who for who in self.store.at().known_tasks() if wanted(who[:-1])]
        return tasks, self.store.schema_of({})

    def _open(self) -> None:
        store = self.store
        open_store(store.root, self._room, self._config, store.groups, store.value)
        self._reached = None

    def _reports(self) -> DataFrame:
        """Return the reports of tasks; the workers write the stream tables themselves."""
        settings, store = self.settings, self.store
        travel = bool(store.groups) or settings.tasks > FEW_TASKS
        operator = WindowProcessor(
            self._room,
            self._config,
            store.by[:-1],
            None if travel else FileShares(settings, store.control),
            operators.table_writer(store, partial(output_tables, store, settings)),
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
        every = F.explode(F.lit([*slots(self.settings.tasks)]))
        return self._paths().select(every.alias(SLOT), PATH)

    def _blocks(self) -> DataFrame:
        """Return a row with a block for every task and file that has arrivals for it."""
        store = self.store
        pack = partial(
            pack_files,
            control=store.control,
            groups=store.groups,
            settings=self.settings,
            slots=slots(self.settings.tasks),
        )
        return self._paths().mapInArrow(pack, from_arrow_schema(block_schema(store.groups)))

    def _paths(self) -> DataFrame:
        tasks = None if self.store.groups else self.settings.tasks
        session = session_of_query(self._spark, self._checkpoint, tasks)
        return paths(session, self.source, self.store.control)

    def _finish(self, answers: DataFrame, batch: int, writer: TableWriter) -> None:
        """Write everything of a micro-batch; Spark calls this, and again after a crash."""
        if self._reached is not None and self.settings.corrects:
            self._history.read_ahead(self._reached)
        note_history(writer)
        draft = Draft(self.store, writer, batch)
        reports = answers.toArrow()
        progress = reports.filter(reports.column("active"))
        rows = {kind: written_column(kind) for kind in record_types(self._room)}
        draft.add_reported(reports, {**rows, "progress": "active"})
        if draft.is_new:
            waiting = Corrections(self.settings, self.store, self._history).run(draft, progress)
            reading = accounts.read_planned(self.source, self._checkpoint, batch)
            self._limits.write_account(draft, reading, self._places(reports, waiting))
        draft.commit()
        if self._sink is not None and reports.num_rows:  # else nothing was read
            self._sink(self._answers_of(self.store.at(writer.view), batch), batch)
        self._reached = pc.max(progress.column("seq")).as_py()

    def _places(self, reports: pa.Table, waiting: int) -> dict[str, int]:
        """Return the numbers of a micro-batch's rows by place.

        ``waiting`` is the change in the number of rows that wait for a correction.
        """
        counted = (*Taken._fields, written_column("rejected"))
        *taken, refused = (pc.sum(reports.column(name)).as_py() or 0 for name in counted)
        took = Taken(*taken)
        late = 0 if self.settings.corrects else took.late
        pending = took.opened + waiting
        return {
            accounts.REFUSED: refused,
            accounts.REDELIVERED: took.redelivered,
            accounts.UNASKED: took.unasked,
            accounts.LATE: late,
            accounts.PENDING: pending,
            accounts.ANSWERED: took.accepted - late - pending,
        }

    def _answers_of(self, store: WindowStore, batch: int) -> DataFrame:
        """Return the answers that are new or revised in a micro-batch, by window and revision."""
        settings = self.settings
        new = partial(read_table, self._spark, store, first=batch, last=batch)
        window = [*store.by, "key", "start_us"]
        answers = all_answers(store, new(kind="result"), new(kind="revision"))
        counted = with_refused(self._spark, settings, store, answers, "left")
        return counted.select(
            *window,
            (F.col("start_us") + settings.size_us).alias("end_us"),
            "value",
            "n",
            "revision",
            "n_refused",
        ).orderBy("start_us", *store.by, "key", "revision")


def limits_of(corrects: bool, max_refused: Limit, max_late: Limit) -> Limits:
    """Return the limits of a query; :class:`InputProblem` for late rows that it corrects."""
    if corrects and max_late is not None:
        msg = f"max_late is {max_late!r}; it must be None, because late rows are corrected here"
        raise InputProblem(msg)
    return Limits(refused=max_refused, late=max_late)
