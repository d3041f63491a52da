"""Windows over a streaming DataFrame in one expression, for rooms ``slack`` and ``watermark``.

    over(lines, event_time="at", key="device").window("6 hours", "1 hour").sum("watts")

A windowed query reads a history, because only what is kept can correct an answer. The expression
therefore ends with the folder that keeps everything: :meth:`Aggregate.store_in`.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from pyspark.sql import DataFrame

from model.vocabulary import SlackConfig, WatermarkConfig
from spark_impl import slack, watermark
from spark_impl.landed import LandedQuery, Query
from spark_impl.runtime.cell_times import Duration
from spark_impl.runtime.histories import VALUE
from spark_impl.runtime.landing import Landing
from spark_impl.runtime.limits import Limit
from spark_impl.runtime.queries import Sink
from spark_impl.runtime.storage import Address, locate
from spark_impl.windows.query import limits_of

Config: TypeAlias = SlackConfig | WatermarkConfig


def over(
    stream: DataFrame,
    *,
    event_time: str,
    key: str | None = None,
    source_id: str | None = None,
    arrival: str | None = None,
    group_columns: Collection[str] = (),
    time_unit: str = "timestamp",
    max_future: Duration | None = "1 day",
) -> "Stream":
    """Return a stream with the meaning of its columns; :meth:`Stream.window` goes on from there.

    Args:
        stream: the rows; a column may have any type that can be read as what it means.
        event_time: column with the time of a row: a timestamp, a text or a number.
        key: column by which rows are grouped; None puts all rows in one group.
        source_id: column with a number or a text that identifies a row, so that a redelivery counts
            once; None counts every row.
        arrival: column with the time at which a row arrived; None takes that of its micro-batch.
        group_columns: columns that keep streams apart, each with a clock of its own.
        time_unit: unit of times that are no timestamps, ``"us"``, ``"ms"``, ``"s"`` or ``"ns"``
            since 1970; ``"timestamp"`` reads text like ``2013-01-01T05:15:00Z``.
        max_future: longest time from the arrival of a row to its event time; a row beyond it is
            refused, because it would close all windows up to its time. None refuses none.

    Examples:
        >>> from pathlib import Path
        >>> Path(folder, "in").mkdir()
        >>> text = "a,2026-03-01T08:00:01Z,5\\na,2026-03-01T08:00:04Z,7\\na,today,1\\n"
        >>> _ = Path(folder, "in", "1.csv").write_text(text)
        >>> stream = spark.readStream.schema("device string, at string, watts string")
        >>> lines = stream.csv(f"{folder}/in")
        >>> windows = over(lines, event_time="at", key="device").window("10 seconds")
        >>> query = windows.sum("watts").store_in(f"{folder}/power")
        >>> query.flush()
        >>> [(row.key, row.value, row.state) for row in query.results().collect()]
        [('a', 12.0, 'exact')]
    """
    columns = {
        "event_time": event_time,
        "key": key,
        "source_id": source_id,
        "arrival": arrival,
        "group_columns": group_columns,
        "time_unit": time_unit,
        "max_future": max_future,
    }
    return Stream(stream, columns)


@dataclass(frozen=True)
class Stream:
    """A streaming DataFrame and the meaning of its columns."""

    rows: DataFrame
    columns: Mapping[str, Any]
    """Arguments of :class:`Landing` about its columns."""

    def window(
        self,
        size: Duration,
        slide: Duration | None = None,
        *,
        max_wait: Duration | None = None,
        **settings: Any,
    ) -> "Windows":
        """Choose windows, and how long they wait for late rows.

        Args:
            size: length of a window.
            slide: time from the start of a window to that of the next one; None takes ``size``.
            max_wait: longest wait for late rows: a window waits by the disorder of the last
                arrivals (room ``watermark``). None: it waits as long as the requested quality needs
                (room ``slack``).
            **settings: settings of the room (docs/settings.md), such as ``lambda_thr=0.99``, the
                least share of its rows that a first answer contains, or ``max_slack="1 minute"``.

        Examples:
            >>> rates = over(spark.readStream.format("rate").load(), event_time="timestamp")
            >>> rates.window("6 hours", "1 hour", lambda_thr=0.99).avg("value").config.control
            'conformal'
            >>> rates.window("6 hours", max_wait="5 minutes").avg("value").config.max_wait_us
            300000000
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
        """Add up the values of a column.

        Args:
            value: column of the values: numbers, or texts that can be read as numbers.

        Examples:
            >>> found = windows.sum("watts"), windows.quantile("watts", 0.9), windows.count()
            >>> [each.config.aggregate for each in found]
            ['sum', 'quantile', 'count']
        """
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
        """Find the least value of a column with a share ``q`` of all values up to it.

        Args:
            q: share of the values, above 0 and below 1.
        """
        return self._aggregate("quantile", value, q=q)

    def count(self) -> "Aggregate":
        """Count the rows."""
        return self._aggregate("count", None)

    def _aggregate(self, aggregate: str, value: str | None, **more: float) -> "Aggregate":
        settings = {**self.settings, "aggregate": aggregate, **more}
        is_bounded = not settings.keys().isdisjoint({"max_wait", "max_wait_us"})
        config = (WatermarkConfig if is_bounded else SlackConfig).of(**settings)
        return Aggregate(self.stream, config, value)


@dataclass(frozen=True)
class Aggregate:
    """An aggregate over the windows of a stream."""

    stream: Stream
    config: Config
    value: str | None
    """Column of the values, None if rows are counted."""

    def store_in(
        self,
        folder: Address,
        *,
        sink: Sink | None = None,
        checkpoint: Address | None = None,
        max_refused: Limit = None,
        max_late: Limit = None,
    ) -> LandedQuery:
        """Return the query, which keeps everything in ``folder`` and resumes from there.

        Raise :class:`InputProblem` with one sentence if the columns do not fit, or if the folder
        belongs to another query.

        Args:
            folder: folder that gets a ``history`` of the arrivals, a store of ``answers``, and
                ``checkpoints``.
            sink: function that is called with the answers of every micro-batch, and its number.
            checkpoint: another folder for Spark's own files, if Spark has no connector for the
                file system of ``folder``.
            max_refused: limit of refused rows, at which landing and query stop: below 1.0 a share
                of each micro-batch, or a whole number of all rows so far; None sets no limit.
            max_late: the same limit for late rows; only for windows with ``max_wait`` and
                ``corrections=False``, because others count late rows.

        Examples:
            >>> resumed = windows.sum("watts").store_in(f"{folder}/power", max_refused=0.5)
            >>> resumed.results().count()
            1
        """
        corrects = isinstance(self.config, SlackConfig) or self.config.corrections
        limits_of(corrects, max_refused, max_late)  # raises before anything is written
        root = locate(folder)
        checkpoints = locate(checkpoint) if checkpoint else root / "checkpoints"
        rows, columns = self.stream.rows, self.stream.columns
        options: dict[str, Any] = {"value": self.value or (), "max_refused": max_refused, **columns}
        landing = Landing(rows, root / "history", checkpoints / "landing", **options)
        options = {
            "value": None if self.value is None else VALUE,
            "sink": sink,
            "checkpoint": checkpoints / "answers",
            "max_refused": max_refused,
            "max_late": max_late,
        }
        places = (root / "history", root / "answers", columns["group_columns"])
        query: Query
        if isinstance(self.config, SlackConfig):
            query = slack.SlackQuery(rows.sparkSession, self.config, *places, **options)
        else:
            query = watermark.WatermarkQuery(rows.sparkSession, self.config, *places, **options)
        return LandedQuery(landing, query, self.value, rows.sparkSession)
