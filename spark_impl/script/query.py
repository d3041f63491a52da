"""The interface for users: the streaming query of all scripts, and the results in its store.

Args:
    spark: session that reads the store.
    store: folder with the results of the query.
"""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from model.vocabulary import ScriptConfig
from model.vocabulary.script.config import END_US
from model.vocabulary.script.plan import compile_plan
from spark_impl.runtime import accounts, operators
from spark_impl.runtime.arrays import Values
from spark_impl.runtime.limits import Limit, Limits
from spark_impl.runtime.provenance import note_history, require_history
from spark_impl.runtime.queries import HistoryQuery, Sink, read_table, session_of_query
from spark_impl.runtime.sources import paths
from spark_impl.runtime.storage import Address, locate
from spark_impl.runtime.stores import Draft
from spark_impl.runtime.tables import BATCH, TableWriter
from spark_impl.script.kernel import Taken
from spark_impl.script.processor import (
    FLUSH,
    INPUT,
    REPORT,
    WRITTEN,
    ScriptProcessor,
    output_tables,
    pack_files,
)
from spark_impl.script.store import BLOCK, TABLES, ScriptStore, load_store, open_store
from spark_impl.windows.blocks import SLOT
from spark_impl.windows.history import check_source


class ScriptQuery(HistoryQuery):
    """One query for all workflows of ``config``, over a history, with its results in ``store``.

    The driver and all workers reach both folders under the same address.

    Raise :class:`InputProblem` with one sentence, and write nothing, if the source cannot be read
    or the store belongs to another query. A run stops with it if another one, here or elsewhere,
    has written a micro-batch of the same store.

    Args:
        spark: session that runs the query.
        config: workflows, and the rate of each sensor (docs/script.md).
        source: history, a folder of numbered Parquet files as :class:`Landing` writes them, with
            sensors in the column ``key``. A history without files is waited for.
        store: folder for the results; a query that opens it again resumes where the last one
            stopped.
        group_columns: further columns of the history; every combination of their values is a query
            of its own.
        sink: function that is called with the new results of every micro-batch and its number.
        checkpoint: folder for Spark's own files, for whose file system Spark needs a connector;
            None takes one in ``store``.
        max_refused: limit of refused rows, at which the query stops: below 1.0 a share of each
            micro-batch, or a whole number of all rows so far; None sets no limit.
        max_late: the same for late rows.

    Examples:
        >>> from pathlib import Path
        >>> Path(folder, "sensors").mkdir()
        >>> _ = Path(folder, "sensors", "1.csv").write_text("13,temp,1\\n14,temp,3\\n")
        >>> lines = spark.readStream.schema("at long, sensor string, value double")
        >>> history, store = f"{folder}/temperatures", f"{folder}/means"
        >>> names = {"event_time": "at", "time_unit": "s", "key": "sensor", "value": "value"}
        >>> landing = Landing(lines.csv(f"{folder}/sensors"), history, f"{folder}/landing", **names)
        >>> landing.run_available()
        >>> query = ScriptQuery(spark, config, history, store)
        >>> query.flush()
    """

    store: ScriptStore
    """The store of the results."""

    def __init__(
        self,
        spark: SparkSession,
        config: ScriptConfig,
        source: Address,
        store: Address,
        group_columns: Collection[str] = (),
        *,
        sink: Sink | None = None,
        checkpoint: Address | None = None,
        max_refused: Limit = None,
        max_late: Limit = None,
    ) -> None:
        self._limits = Limits(refused=max_refused, late=max_late)
        self._spark = spark
        self.source = locate(source)
        taken = {name for schema in TABLES.values() for name in schema.names}
        taken |= {*BLOCK.names, *REPORT.names, *accounts.COLUMNS.names}
        groups = check_source(self.source, taken, group_columns)
        self.plan = compile_plan(config)
        """The computations, and where they run."""
        self.store = ScriptStore(locate(store), groups)
        open_store(self.store, config)
        require_history(self.store.at().view, self.source)
        self._checkpoint = locate(checkpoint) if checkpoint else self.store.checkpoint
        self._sink = sink

    def _requests(self, wanted: Callable[[Values], bool]) -> tuple[list[Values], pa.Schema]:
        rows = [
            (*group, worker, FLUSH, None)
            for group in sorted(self.store.at().standing())
            for worker in range(self.plan.workers)
            if wanted(group)
        ]
        return rows, self.store.schema_of(BLOCK)

    def _open(self) -> None:
        open_store(self.store, self.plan.config)

    def _reports(self) -> DataFrame:
        """Return the rows of :data:`REPORT`; the workers write the tables themselves."""
        store, plan = self.store, self.plan
        names = tuple(field.name for field in store.groups)
        tasks = None if names else plan.workers
        session = session_of_query(self._spark, self._checkpoint, tasks)
        # Messages between workers come with the files of the next micro-batch.
        files = paths(session, self.source, store.control, is_mixed=True)
        pack = partial(pack_files, store=store, plan=plan)
        write = operators.table_writer(store, partial(output_tables, store))
        return (
            files.mapInArrow(pack, from_arrow_schema(store.schema_of(INPUT)))
            .groupBy(*names, SLOT)
            .transformWithState(
                ScriptProcessor(plan, names, write),
                outputStructType=from_arrow_schema(store.schema_of(REPORT)),
                outputMode="append",
                timeMode="none",
            )
        )

    def _finish(self, reports: DataFrame, batch: int, writer: TableWriter) -> None:
        """Write everything of a micro-batch. After a crash, Spark calls it again."""
        store = self.store
        note_history(writer)
        draft = Draft(store, writer, batch)
        rows = reports.toArrow().cast(store.schema_of(REPORT))
        is_message = rows.column("block").is_valid()
        standing = rows.filter(pc.invert(is_message))
        draft.add_reported(standing, WRITTEN)
        draft.write("worker", standing)
        if draft.is_new:
            self._account(draft, standing)
            # Before the commit: the next micro-batch delivers them.
            store.send(batch, rows.filter(is_message).select(store.schema_of(BLOCK).names))
        draft.commit()
        # Before Spark commits, so that no micro-batch is left out in which anything was read.
        if self._sink is not None and rows.num_rows:
            new = read_table(self._spark, store.at(writer.view), "result", batch, batch)
            self._sink(new.drop(BATCH), batch)

    def _account(self, draft: Draft, standing: pa.Table) -> None:
        """Write the numbers of a micro-batch's rows by place."""
        taken = Taken(*(pc.sum(standing.column(name)).as_py() or 0 for name in Taken._fields))
        reading = accounts.read_planned(self.source, self._checkpoint, draft.batch)
        places = {
            accounts.REFUSED: taken.refused,
            accounts.LATE: taken.late,
            accounts.REDELIVERED: taken.redelivered,
            accounts.UNASKED: taken.unasked,
            accounts.PENDING: taken.opened,
            accounts.ANSWERED: taken.admitted - taken.opened,
        }
        self._limits.write_account(draft, reading, places)


def results(spark: SparkSession, store: Address) -> DataFrame:
    """Return results: the grouping columns, ``workflow``, ``name``, ``ts_us`` and ``value``.

    A micro-batch that is being written, or that a crash interrupted, does not show. Raise
    :class:`InputProblem` if ``store`` is not the store of a query.

    Examples:
        >>> script.results(spark, store).select("name", "value").collect()
        [Row(name='mean', value=2.0)]
    """
    return read_table(spark, load_store(store), "result").drop(BATCH)


def undefined(spark: SparkSession, store: Address) -> DataFrame:
    """Return stamps without a finite result: grouping columns, ``workflow``, ``name``, ``ts_us``.

    Errors are those of :func:`results`.

    Examples:
        >>> script.undefined(spark, store).count()
        0
    """
    return read_table(spark, load_store(store), "undefined").drop(BATCH).distinct()


def rejected(spark: SparkSession, store: Address) -> DataFrame:
    """Return every refused arrival of a sensor that is asked for.

    The columns are the grouping columns, ``seq``, ``key`` (the sensor), ``source_id``,
    ``event_time_us``, ``reason`` and ``batch``. Raise :class:`InputProblem` if ``store`` is not the
    store of a query.

    Examples:
        >>> script.rejected(spark, store).count()
        0
    """
    return read_table(spark, load_store(store), "rejected")


class Progress(NamedTuple):
    """The position of a query of scripts, and what holds it back."""

    batch: int
    """The last complete micro-batch; -1 before the first one."""
    known_until_us: int
    """Stamp before which all results of all groups are there."""
    rejected: Mapping[str, int]
    """Number of refused arrivals so far, by reason."""
    held_by: str | None
    """The sensor with the lowest watermark; ``None`` after a flush, and before any arrival."""
    watermark_us: int
    """The watermark of this sensor; without one, ``END_US`` after a flush and otherwise 0."""
    rows: Mapping[str, int]
    """Rows of the last micro-batch, and those in each place of the ledger; ``pending`` is the
    change."""


def progress(store: Address) -> Progress:
    """Return the position of a query, and the sensor that holds back its results.

    Of several combinations of values of the grouping columns, the one that is furthest behind
    counts. Raise :class:`InputProblem` if ``store`` is not the store of a query.

    Examples:
        >>> script.progress(store).rows["answered"]
        2
    """
    place = load_store(store)
    plan = compile_plan(ScriptConfig.from_json(place.view.identity["config"]))
    standing = place.standing()
    stands = [
        (row["wm_us"], row["held_by"])
        for own in standing.values()
        for row in own.values()
        if row["held_by"] is not None
    ]
    for own in standing.values():  # a worker that was sent nothing has not said anything
        silent = [name for name, at in plan.hosts.items() if at[0] not in own]
        stands += [(0, name) for name in silent]
    reasons = place.read_kind("rejected").column("reason").value_counts().to_pylist()
    known_us = [
        own[worker]["known_us"] if worker in own else 0
        for own in standing.values()
        for worker in set(plan.placement.worker.values())
    ]
    watermark_us, held_by = min(stands, default=(END_US if standing else 0, None))
    return Progress(
        place.view.last,
        min(known_us, default=0),
        {each["values"]: each["counts"] for each in reasons},
        held_by,
        watermark_us,
        accounts.rows_of_batch(place),
    )
