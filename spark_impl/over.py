"""Windows over a streaming DataFrame in one expression, for rooms ``slack`` and ``watermark``.

    over(lines, event_time="at", key="device").window("6 hours", "1 hour").sum("watts")

A windowed query reads a history, because only what is kept can correct an answer. The expression
therefore ends with the folder that keeps everything: :meth:`Aggregate.store_in`.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, TypedDict

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)
from pyspark.sql.streaming.query import StreamingQuery

from model.vocabulary import SlackConfig, WatermarkConfig
from spark_impl import slack, watermark
from spark_impl.runtime.landing import Landing
from spark_impl.runtime.queries import Sink
from spark_impl.runtime.storage import Address, locate
from spark_impl.windows.progress import BatchProgress

_COUNTED = "_counted"
"""Column of a stream whose rows are counted."""


class Columns(TypedDict):
    """Columns of a stream, as :class:`Landing` takes them."""

    event_time: str
    key: str | None
    source_id: str | None
    arrival: str | None
    group_columns: Collection[str]
    time_unit: str


def over(
    stream: DataFrame,
    *,
    event_time: str,
    key: str | None = None,
    source_id: str | None = None,
    arrival: str | None = None,
    group_columns: Collection[str] = (),
    time_unit: str = "timestamp",
) -> "Stream":
    """Return the stream as the beginning of a query; arguments are those of :class:`Landing`."""
    columns = Columns(
        event_time=event_time,
        key=key,
        source_id=source_id,
        arrival=arrival,
        group_columns=group_columns,
        time_unit=time_unit,
    )
    return Stream(stream, columns)


@dataclass(frozen=True)
class Stream:
    """A streaming DataFrame and the meaning of its columns."""

    rows: DataFrame
    columns: Columns

    def window(
        self, size: object, slide: object = None, *, max_wait: object = None, **settings: Any
    ) -> "Windows":
        """Choose windows of length ``size`` that begin every ``slide``, by default every ``size``.

        Times are intervals of Spark (``"6 hours"``) or a ``timedelta``. ``settings`` are those of
        :class:`SlackConfig`: the query waits as long as the requested quality needs. With
        ``max_wait`` they are those of :class:`WatermarkConfig`: it waits by the disorder of the
        last arrivals, and no longer than that.
        """
        times = {"size": size, "slide": size if slide is None else slide}
        longest = {} if max_wait is None else {"max_wait": max_wait}
        return Windows(self, {**times, **longest, **settings})


@dataclass(frozen=True)
class Windows:
    """Windows of a stream.

    A method chooses the aggregate. It raises ``ValueError`` with one sentence if a setting is
    unknown or has a bad value.
    """

    stream: Stream
    settings: dict[str, Any]

    def sum(self, value: str) -> "Aggregate":
        """Add up the values of a column."""
        return self._aggregate("sum", value)

    def avg(self, value: str) -> "Aggregate":
        """Average the values of a column."""
        return self._aggregate("avg", value)

    def min(self, value: str) -> "Aggregate":
        """Find the smallest value of a column."""
        return self._aggregate("min", value)

    def max(self, value: str) -> "Aggregate":
        """Find the largest value of a column."""
        return self._aggregate("max", value)

    def median(self, value: str) -> "Aggregate":
        """Find the median of a column."""
        return self._aggregate("median", value)

    def quantile(self, value: str, q: float) -> "Aggregate":
        """Find the quantile of rank ``q`` of a column."""
        return self._aggregate("quantile", value, q=q)

    def count(self) -> "Aggregate":
        """Count the rows."""
        rows = self.stream.rows.withColumn(_COUNTED, F.lit(1.0))
        counted = Windows(Stream(rows, self.stream.columns), self.settings)
        return counted._aggregate("count", _COUNTED)

    def _aggregate(self, aggregate: str, value: str, **more: float) -> "Aggregate":
        settings = {**self.settings, "aggregate": aggregate, **more}
        is_bounded = not settings.keys().isdisjoint({"max_wait", "max_wait_us"})
        config = (WatermarkConfig if is_bounded else SlackConfig).of(**settings)
        return Aggregate(self.stream, config, value)


@dataclass(frozen=True)
class Aggregate:
    """An aggregate over the windows of a stream."""

    stream: Stream
    config: SlackConfig | WatermarkConfig
    value: str
    """Column of the values."""

    def store_in(
        self, folder: Address, *, sink: Sink | None = None, checkpoint: Address | None = None
    ) -> "LandedQuery":
        """Return the query, which keeps everything in ``folder`` and resumes from there.

        The folder gets a ``history`` of the arrivals, a store of ``answers``, and ``checkpoints``.
        ``sink`` is called with the answers of every micro-batch. ``checkpoint`` is another folder
        for Spark's own files, if Spark has no connector for the first one.

        Raise :class:`InputProblem` with one sentence if the columns do not fit, or if the folder
        belongs to another query.
        """
        root = locate(folder)
        spark_root = locate(checkpoint) if checkpoint else root / "checkpoints"
        history, columns = root / "history", self.stream.columns
        landing = Landing(
            self.stream.rows, history, spark_root / "landing", value=self.value, **columns
        )
        spark, groups = self.stream.rows.sparkSession, columns["group_columns"]
        places = (history, root / "answers", groups)
        options: dict[str, Any] = {"sink": sink, "checkpoint": spark_root / "answers"}
        query: slack.SlackQuery | watermark.WatermarkQuery
        if isinstance(self.config, SlackConfig):
            query = slack.SlackQuery(spark, self.config, *places, **options)
        else:
            query = watermark.WatermarkQuery(spark, self.config, *places, **options)
        return LandedQuery(landing, query, self)


@dataclass(frozen=True)
class LandedQuery:
    """A query together with the landing that feeds it."""

    landing: Landing
    query: slack.SlackQuery | watermark.WatermarkQuery
    aggregate: Aggregate

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
        landing = self.landing.start(interval)
        try:
            return landing, self.query.start(interval)
        except BaseException:
            landing.stop()
            raise

    def results(self) -> DataFrame:
        """Return the current answers, as ``results`` of the room does."""
        spark, store = self.aggregate.stream.rows.sparkSession, self.query.store.root
        if isinstance(self.query, slack.SlackQuery):
            return slack.results(spark, store)
        return watermark.results(spark, store)

    def progress(self) -> BatchProgress:
        """Return the figures of the last micro-batch."""
        if isinstance(self.query, slack.SlackQuery):
            return slack.progress(self.query.store.root)
        return watermark.progress(self.query.store.root)
