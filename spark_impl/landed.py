"""A query over windows together with the landing that feeds it."""

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TypeAlias

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)
from pyspark.sql.streaming.query import StreamingQuery

from model.vocabulary.windows import REASON_NOT_FINITE
from spark_impl import slack, watermark
from spark_impl.repeated import find_repeated
from spark_impl.runtime.landing import Landing
from spark_impl.windows.answers import current_answers, rejected
from spark_impl.windows.arrival_files import NO_VALUE
from spark_impl.windows.progress import BatchProgress, progress

Query: TypeAlias = slack.SlackQuery | watermark.WatermarkQuery
_REFUSED = ("reason", "column", "text", "row", "seq", "source_id", "key", "event_time_us", "batch")
"""Columns of a refused row, behind its stage."""


@dataclass(frozen=True)
class LandedQuery:
    """A query together with the landing that feeds it."""

    landing: Landing
    query: Query
    value: str | None
    """Column of the stream with the values, None if rows are counted."""
    spark: SparkSession

    def run_available(self) -> None:
        """Land everything that is in the source now, and process it."""
        self.landing.run_available()
        self.query.run_available()

    def flush(self) -> None:
        """Land and process everything, close all windows and correct all late pairs."""
        self.landing.run_available()
        self.query.flush()

    def start(self, interval: str = "0 seconds") -> tuple[StreamingQuery, StreamingQuery]:
        """Start the landing and the query, and leave both running: wait for both."""
        with ExitStack() as stack:  # if the query cannot start, the landing is stopped
            landing = self.landing.start(interval)
            stack.callback(landing.stop)
            query = self.query.start(interval)
            stack.pop_all()
        return landing, query

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
        repeated = _repeated(self.spark, self.query, self.landing)
        settings, store = self.query.settings, self.query.store.at()
        rows = current_answers(self.spark, settings, store, repeated)
        groups = self.query.store.by[:-1]
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
        faults = self.landing.rejected()
        refused = _refused(self.spark, self.query, self.value, self.landing)
        return _unread(faults, refused).unionByName(_explained(refused, faults))

    def progress(self) -> BatchProgress:
        """Return the figures of the last micro-batch; ``rejected`` counts rows of both stages.

        Rows that come again with other content are not counted: only the history tells them.

        Examples:
            >>> query.progress().rejected
            1
        """
        found = progress(self.query.room, self.query.store.root)
        return found._replace(rejected=found.rejected + self.landing.not_landed())


def _repeated(spark: SparkSession, query: Query, landing: Landing) -> DataFrame | None:
    """Return the arrivals that a query took for redeliveries, with other content; None without."""
    if landing.identity is None:  # then no two rows have one
        return None
    refused = rejected(query.room, spark, query.store.root)
    return find_repeated(spark, query.settings, query.store, query.source, refused)


def _refused(spark: SparkSession, query: Query, value: str | None, landing: Landing) -> DataFrame:
    """Return the arrivals that a query has refused; ``value`` is the stream's column of values."""
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
    return rows.select(F.lit("query").alias("stage"), *_REFUSED)


def _unread(faults: DataFrame, refused: DataFrame) -> DataFrame:
    """Return what the landing has found at fault, without the faults that the query has refused."""
    rows = faults.join(refused, ["seq", "column"], "left_anti")
    kinds = {"source_id": "long", "key": "string", "event_time_us": "long"}
    for name, kind in kinds.items():
        rows = rows.withColumn(name, F.lit(None).cast(kind))
    return rows.select(F.lit("landing").alias("stage"), *_REFUSED)
