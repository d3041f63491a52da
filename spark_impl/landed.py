"""Queries over windows together with the landing that feeds them."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructField, StructType

from model.vocabulary.windows import REASON_NOT_FINITE
from spark_impl import slack, watermark
from spark_impl.repeated import find_repeated
from spark_impl.runtime.cell_times import Duration
from spark_impl.runtime.landing import Landing
from spark_impl.windows.answers import current_answers, rejected, window_struct
from spark_impl.windows.arrival_files import NO_VALUE
from spark_impl.windows.progress import BatchProgress, progress

Query: TypeAlias = slack.SlackQuery | watermark.WatermarkQuery
WINDOW = ("task", "key", "start_us", "end_us", "window")
"""Columns of a window, after the grouping columns, in results of several aggregates."""


_REFUSED = ("reason", "column", "text", "row", "seq", "source_id", "key", "event_time_us", "batch")
"""Columns of a refused row, after its stage and perhaps its aggregate."""


@dataclass(frozen=True)
class _Landed:
    """Queries over one history, together with the landing that feeds them."""

    landing: Landing
    queries: Mapping[str, Query]
    """The query of each aggregate, by its name."""
    values: Mapping[str, str | None]
    """Column of the stream with the values of each aggregate, None if rows are counted."""
    spark: SparkSession

    def run_available(self) -> None:
        """Land everything that is in the source now, and process it for each aggregate in turn.

        If one of them fails, the others are still run; the first error is raised at the end.
        """
        self.landing.run_available()
        _run_all([query.run_available for query in self.queries.values()])

    def flush(self) -> None:
        """Land and process everything, close all windows and correct all late pairs.

        If one aggregate fails, the others are still run; the first error is raised at the end.
        """
        self.landing.run_available()
        _run_all([query.flush for query in self.queries.values()])

    def start(self, interval: Duration = "0 seconds") -> tuple[StreamingQuery, ...]:
        """Start the landing and all queries, and leave them running.

        If one of them fails, the others go on: wait for all.
        """
        with ExitStack() as stack:  # if one cannot start, the others are stopped
            running = []
            for each in (self.landing, *self.queries.values()):
                running.append(each.start(interval))
                stack.callback(running[-1].stop)
            stack.pop_all()
        return tuple(running)

    def _rejected(self) -> DataFrame:
        """Return the rows that are in no answer, with the aggregate that has refused them."""
        faults, all_refused = self.landing.rejected(), []
        for name, query in self.queries.items():
            refused = _refused(self.spark, query, self.values[name], self.landing)
            all_refused.append(refused.withColumn("aggregate", F.lit(name)))
        unread = _unread(faults, all_refused).withColumn("aggregate", F.lit(None).cast("string"))
        found = unread.select("stage", "aggregate", *_REFUSED)
        for each in all_refused:
            found = found.unionByName(_explained(each, faults))
        return found

    def _progress(self, name: str) -> BatchProgress:
        """Return the figures of an aggregate, and of the rows that did not land."""
        query = self.queries[name]
        found = progress(query.room, query.store.root)
        return found._replace(rejected=found.rejected + self.landing.not_landed())


class LandedQuery(_Landed):
    """A query together with the landing that feeds it: the only one, called ``""``."""

    @property
    def query(self) -> Query:
        """The query."""
        return self.queries[""]

    def results(self) -> DataFrame:
        """Return a row with the current answer for each window and key.

        The columns are the grouping columns, ``key``, ``window`` (``start`` and ``end`` as
        timestamps), ``value``, ``coverage`` and ``state``; behind them are ``task``, ``start_us``,
        ``end_us``, ``n`` (rows in the answer), ``revision``, ``n_rcv`` (rows in the first answer),
        in room ``slack`` ``required``, and ``n_refused``.

        With ``source_id``, windows of rows that come again with other content are incomplete; the
        whole history is read to find them.

        Examples:
            >>> query.results().select("key", "value", "n").first()
            Row(key='a', value=12.0, n=2)
        """
        rows = _results(self.spark, self.query, self.landing)
        groups = [name for name in self.query.store.by if name not in WINDOW]
        first = [*groups, "key", "window", "value", "coverage", "state"]
        return rows.select(*first, *(name for name in rows.columns if name not in first))

    def rejected(self) -> DataFrame:
        """Return a row for each row of the stream that is in no answer, with the reason.

        The columns are:

        * ``stage``: ``landing`` for a row that did not land, or that the query has not read yet;
          ``query`` for one that the query has refused;
        * ``reason``, ``column`` and ``text``: the column of the stream that is at fault, and what
          it holds;
        * ``row``: all columns of the stream as JSON, if the landing found the fault;
        * ``seq``: the arrival number, NULL for a row that did not land;
        * ``source_id``, ``key`` and ``event_time_us`` of a row that the query refused;
        * ``batch``: the micro-batch of the stage, NULL for a row that comes again.

        A row whose identity is known with another event time, key, value or text is here with the
        identity as ``text``.

        Examples:
            >>> query.rejected().select("stage", "column", "text").first()
            Row(stage='landing', column='at', text='today')
        """
        return self._rejected().drop("aggregate")

    def progress(self) -> BatchProgress:
        """Return the figures of the last micro-batch; ``rejected`` counts rows of both stages.

        Rows that come again with other content are not counted: only the history tells them.

        Examples:
            >>> query.progress().rejected
            1
        """
        return self._progress("")


class LandedQueries(_Landed):
    """Queries over the columns of one history, together with the landing that feeds them."""

    def results(self) -> DataFrame:
        """Return a row for each window and key that any aggregate has an answer for.

        The columns are:

        * the grouping columns, ``task``, ``key``, ``start_us`` and ``end_us`` of the window;
        * ``window``: ``start`` and ``end`` of the window as timestamps;
        * for each aggregate a struct under its name, with the other columns of ``results`` of its
          room, such as ``value``, ``n``, ``revision``, ``coverage`` and ``state``. It is NULL while
          the aggregate has no answer for the window.
        """
        parts = []
        for name, query in self.queries.items():
            rows, by = _results(self.spark, query, self.landing), [*query.store.by, *WINDOW[1:-1]]
            own = [each for each in rows.schema if each.name not in (*by, WINDOW[-1])]
            # Arrow takes no NULL for a struct that has a field which is declared as never NULL.
            kind = StructType([StructField(each.name, each.dataType) for each in own])
            struct = F.struct(*(each.name for each in own)).cast(kind)
            parts.append(rows.select(*by, struct.alias(name)))
        joined = reduce(lambda left, right: left.join(right, by, "full"), parts)
        return joined.select(*by, window_struct().alias(WINDOW[-1]), *self.queries)

    def rejected(self) -> DataFrame:
        """Return the rows that are in no answer, as :meth:`LandedQuery.rejected` does.

        A column ``aggregate`` after ``stage`` names the aggregate that has refused the row; it is
        NULL in the stage ``landing``.
        """
        return self._rejected()

    def progress(self) -> dict[str, BatchProgress]:
        """Return the figures of the last micro-batch of each aggregate, by its name.

        ``rejected`` counts the rows that did not land, too, for each aggregate.
        """
        return {name: self._progress(name) for name in self.queries}


def _run_all(runs: Sequence[Callable[[], object]]) -> None:
    """Call every function, even after one that fails; then raise the first error."""
    errors = []
    for run in runs:
        try:
            run()
        except Exception as error:
            errors.append(error)
    if errors:
        raise errors[0]


def _results(spark: SparkSession, query: Query, landing: Landing) -> DataFrame:
    repeated = _repeated(spark, query, landing)
    return current_answers(spark, query.settings, query.store.at(), repeated)


def _repeated(spark: SparkSession, query: Query, landing: Landing) -> DataFrame | None:
    """Return redeliveries with other content than before; None if rows have no identity."""
    if landing.identity is None:  # then no two rows have one
        return None
    refused = rejected(query.room, spark, query.store.root)
    return find_repeated(spark, query.settings, query.store, query.source, refused)


def _refused(spark: SparkSession, query: Query, value: str | None, landing: Landing) -> DataFrame:
    """Return rows that a query refused or found changed; ``value`` is the column of values."""
    by_value = F.col("reason").isin(REASON_NOT_FINITE, NO_VALUE)
    text = F.when(by_value, F.col("value").cast("string"))
    rows = rejected(query.room, spark, query.store.root).withColumn("text", text)
    rows = rows.withColumn("column", F.when(by_value, F.lit(value)))
    repeated = _repeated(spark, query, landing)
    if repeated is None:
        return rows
    again = repeated.withColumn("column", F.lit(landing.identity))
    return rows.unionByName(again, allowMissingColumns=True)


def _explained(refused: DataFrame, faults: DataFrame) -> DataFrame:
    """Return the refused arrivals of a query, with what the landing knows about them."""
    known = ["reason", "text", "row"]
    why = faults.where("seq IS NOT NULL").select(
        "seq", "column", *(F.col(name).alias(f"_{name}") for name in known)
    )
    rows = refused.withColumn("row", F.lit(None).cast("string")).join(
        why, ["seq", "column"], "left"
    )
    for name in known:
        rows = rows.withColumn(name, F.coalesce(f"_{name}", name))
    return rows.select(F.lit("query").alias("stage"), "aggregate", *_REFUSED)


def _unread(faults: DataFrame, refused: Sequence[DataFrame]) -> DataFrame:
    """Return the faults that the landing found, except those that a query has refused."""
    known = reduce(lambda a, b: a.union(b), (each.select("seq", "column") for each in refused))
    rows = faults.join(known, ["seq", "column"], "left_anti")
    kinds = {"source_id": "long", "key": "string", "event_time_us": "long"}
    for name, kind in kinds.items():
        rows = rows.withColumn(name, F.lit(None).cast(kind))
    return rows.select(F.lit("landing").alias("stage"), *_REFUSED)
