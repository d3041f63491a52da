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

from spark_impl import slack, watermark
from spark_impl.runtime.landing import Landing
from spark_impl.windows.answers import window_struct
from spark_impl.windows.progress import BatchProgress

Query: TypeAlias = slack.SlackQuery | watermark.WatermarkQuery
WINDOW = ("task", "key", "start_us", "end_us", "window")
"""Columns of a window, behind the grouping columns, in results of several aggregates."""


@dataclass(frozen=True)
class LandedQuery:
    """A query together with the landing that feeds it."""

    landing: Landing
    query: Query
    spark: SparkSession

    def run_available(self) -> None:
        """Land and process everything that is in the source now."""
        self.landing.run_available()
        self.query.run_available()

    def flush(self) -> None:
        """Land and process everything, close all windows and correct all late pairs."""
        self.landing.run_available()
        self.query.flush()

    def start(self, interval: str = "0 seconds") -> tuple[StreamingQuery, StreamingQuery]:
        """Start the landing and the query, and leave them running.

        If one of them fails, the other goes on: wait for both.
        """
        landing, query = _start_all(interval, self.landing, self.query)
        return landing, query

    def results(self) -> DataFrame:
        """Return the current answers, as ``results`` of the room does."""
        return _results(self.spark, self.query)

    def rejected(self) -> DataFrame:
        """Return every row that was refused: it is in no answer.

        The columns are:

        * ``stage``: ``landing`` if the row did not land, so that no window is known to lack it, or
          ``query``;
        * ``reason``, ``column`` and ``text`` (the content of that column, if the landing refused
          it), ``row`` (all columns of the stream as JSON, likewise);
        * ``seq``, ``source_id``, ``key`` and ``event_time_us`` of a row that landed;
        * ``batch``: the micro-batch of the landing or the query.
        """
        return _rejected(self.landing, {"": self.query}).drop("aggregate")

    def progress(self) -> BatchProgress:
        """Return the figures of the last micro-batch."""
        return _progress(self.query)


@dataclass(frozen=True)
class LandedQueries:
    """Queries over the columns of one history, together with the landing that feeds them."""

    landing: Landing
    queries: Mapping[str, Query]
    """The query of each aggregate, by its name."""
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

    def start(self, interval: str = "0 seconds") -> tuple[StreamingQuery, ...]:
        """Start the landing and all queries, and leave them running.

        If one of them fails, the others go on: wait for all.
        """
        return _start_all(interval, self.landing, *self.queries.values())

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
            rows, by = _results(self.spark, query), [*query.store.by, *WINDOW[1:-1]]
            own = [each for each in rows.schema if each.name not in (*by, WINDOW[-1])]
            # Arrow takes no NULL for a struct that has a field which is declared as never NULL.
            kind = StructType([StructField(each.name, each.dataType) for each in own])
            struct = F.struct(*(each.name for each in own)).cast(kind)
            parts.append(rows.select(*by, struct.alias(name)))
        joined = reduce(lambda left, right: left.join(right, by, "full"), parts)
        return joined.select(*by, window_struct().alias(WINDOW[-1]), *self.queries)

    def rejected(self) -> DataFrame:
        """Return every row that was refused, as :meth:`LandedQuery.rejected` does.

        A row that landed is here once for each aggregate that refused it, which the column
        ``aggregate`` names.
        """
        return _rejected(self.landing, self.queries)

    def progress(self) -> dict[str, BatchProgress]:
        """Return the figures of the last micro-batch of each aggregate, by its name."""
        return {name: _progress(query) for name, query in self.queries.items()}


def _run_all(runs: Sequence[Callable[[], object]]) -> None:
    """Call all of them, also behind one that fails; then raise the first error."""
    errors = []
    for run in runs:
        try:
            run()
        except Exception as error:
            errors.append(error)
    if errors:
        raise errors[0]


def _start_all(interval: str, *given: Landing | Query) -> tuple[StreamingQuery, ...]:
    """Start all of them; if one cannot start, stop the others."""
    with ExitStack() as stack:
        running = []
        for each in given:
            running.append(each.start(interval))
            stack.callback(running[-1].stop)
        stack.pop_all()
    return tuple(running)


def _results(spark: SparkSession, query: Query) -> DataFrame:
    if isinstance(query, slack.SlackQuery):
        return slack.results(spark, query.store.root)
    return watermark.results(spark, query.store.root)


def _rejected(landing: Landing, queries: Mapping[str, Query]) -> DataFrame:
    """Return the refused rows of a landing and of its queries, each once a query."""
    faults = landing.rejected()
    said = ("column", "text", "row")
    unlanded = faults.where("seq IS NULL").select(F.lit("landing").alias("stage"), "*")
    parts = [unlanded.drop("seq")]
    for name, query in queries.items():
        # A value that the landing could not read is missing in the history: say what it was.
        source = landing.source_of(query.store.value)
        told = (
            faults.where(F.col("column").eqNullSafe(F.lit(source)))
            .groupBy("seq")
            .agg(*(F.first(each).alias(each) for each in (*said, "reason")))
        )
        rows = _refused(landing.spark, query).join(
            told.withColumnRenamed("reason", "fault"), "seq", "left"
        )
        reason = F.coalesce("fault", "reason").alias("reason")
        place = ("seq", "source_id", "key", "event_time_us", "batch")
        stage = F.lit("query").alias("stage"), F.lit(name).alias("aggregate")
        parts.append(rows.select(*stage, reason, *said, *place))
    every = reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), parts)
    columns = ("stage", "aggregate", "reason", *said, "seq", "source_id", "key", "event_time_us")
    return every.select(*columns, "batch")


def _refused(spark: SparkSession, query: Query) -> DataFrame:
    if isinstance(query, slack.SlackQuery):
        return slack.rejected(spark, query.store.root)
    return watermark.rejected(spark, query.store.root)


def _progress(query: Query) -> BatchProgress:
    if isinstance(query, slack.SlackQuery):
        return slack.progress(query.store.root)
    return watermark.progress(query.store.root)
