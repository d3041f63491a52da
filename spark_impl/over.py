"""Windows over a streaming DataFrame in one expression, for rooms ``slack`` and ``watermark``.

    over(lines, event_time="at", key="device").window("6 hours", "1 hour").sum("watts")
    over(...).window(...).agg(sum_("watts"), avg("celsius"), count())

A windowed query reads a history, because only what is kept can correct an answer. The expression
therefore ends with the folder that keeps everything: :meth:`Aggregate.store_in`.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from pyspark.sql import DataFrame

from model.vocabulary import SlackConfig, WatermarkConfig
from spark_impl import slack, watermark
from spark_impl.aggregates import Aggregation
from spark_impl.landed import WINDOW, LandedQueries, LandedQuery, Query
from spark_impl.runtime.cell_times import Duration
from spark_impl.runtime.histories import VALUE, name_values
from spark_impl.runtime.landing import Landing
from spark_impl.runtime.limits import Limit
from spark_impl.runtime.queries import Sink
from spark_impl.runtime.storage import Address, Location, locate
from spark_impl.windows.query import limits_of

Config: TypeAlias = SlackConfig | WatermarkConfig
_COMMON = ("size", "size_us", "slide", "slide_us", "tasks", "keyed")
"""Settings that are chosen once for all aggregates of one expression."""


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

    A method chooses the aggregate, :meth:`agg` several. It raises ``ValueError`` with one sentence
    if a setting is unknown or has a bad value.
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

    def agg(self, *aggregations: Aggregation) -> "Aggregates":
        """Compute several aggregates, each as a query of its own.

        Args:
            *aggregations: aggregates such as ``sum_("watts")``; their names must differ, and
                ``sum_("watts").alias("power")`` chooses another one. Settings of an aggregate
                override those of the windows, except the windows themselves, ``tasks`` and
                ``keyed``.

        Examples:
            >>> both = windows.agg(sum_("watts"), count().alias("rows"))
            >>> sorted(both.configs)
            ['rows', 'sum_watts']
        """
        configs: dict[str, Config] = {}
        for each in aggregations:
            if not isinstance(each, Aggregation):
                msg = f"agg() takes aggregates such as sum_('watts'), not {each!r}"
                raise TypeError(msg)
            self._require_name(each.name, configs)
            _require_own(each)
            try:
                configs[each.name] = self._config(each.kind, each.settings)
            except ValueError as error:
                msg = f"aggregate {each.name!r}: {error}"
                raise ValueError(msg) from error
        if not configs:
            msg = "agg() has no aggregate; it needs at least one, such as sum_('watts')"
            raise ValueError(msg)
        return Aggregates(self.stream, configs, {each.name: each.column for each in aggregations})

    def _require_name(self, name: str, known: Collection[str]) -> None:
        """Raise ``ValueError`` if an aggregate cannot have a name."""
        taken = {each.lower() for each in (*WINDOW, *self.stream.columns["group_columns"])}
        if not re.fullmatch(r"\w+", name):
            wrong = "consist of letters, digits and _"
        elif name.lower() in taken:
            wrong = "differ from the other columns of the results"
        elif name.lower() in {each.lower() for each in known}:
            wrong = "differ from those of the other aggregates"
        else:
            return
        msg = f"an aggregate is called {name!r}; its name must {wrong}: choose one with alias()"
        raise ValueError(msg)

    def _aggregate(self, aggregate: str, value: str | None, **more: float) -> "Aggregate":
        return Aggregate(self.stream, self._config(aggregate, more), value)

    def _config(self, aggregate: str, more: Mapping[str, Any]) -> Config:
        settings = {**self.settings, "aggregate": aggregate, **more}
        is_bounded = not settings.keys().isdisjoint({"max_wait", "max_wait_us"})
        return (WatermarkConfig if is_bounded else SlackConfig).of(**settings)


def _require_own(each: Aggregation) -> None:
    """Raise ``ValueError`` if an aggregate sets its own kind, or what all of them share."""
    if "aggregate" in each.settings:
        msg = f"aggregate {each.name!r} sets aggregate; it is {each.kind}"
        raise ValueError(msg)
    name = next((name for name in each.settings if name in _COMMON), None)
    if name is not None:
        msg = f"aggregate {each.name!r} sets {name}; windows, tasks and keyed belong in window()"
        raise ValueError(msg)


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
        limits = _require_limits([self.config], max_refused, max_late)
        places = _Places.of(folder, checkpoint)
        landing = places.land(self.stream, self.value or (), max_refused)
        value = None if self.value is None else VALUE
        query = places.open_query("answers", self.stream, self.config, value, sink, limits)
        spark = self.stream.rows.sparkSession
        return LandedQuery(landing, {"": query}, {"": self.value}, spark)


@dataclass(frozen=True)
class Aggregates:
    """Several aggregates over the windows of a stream."""

    stream: Stream
    configs: Mapping[str, Config]
    """Configuration of each aggregate, by its name."""
    values: Mapping[str, str | None]
    """Column of the values of each aggregate, None if rows are counted."""

    def store_in(
        self,
        folder: Address,
        *,
        sinks: Mapping[str, Sink] | None = None,
        checkpoint: Address | None = None,
        max_refused: Limit = None,
        max_late: Limit = None,
    ) -> LandedQueries:
        """Return the queries, which keep everything in ``folder`` and resume from there.

        An aggregate that the folder does not know yet begins with the first file that the history
        still has.

        Raise :class:`InputProblem` with one sentence if the columns do not fit, if the history has
        other columns, or if an aggregate of the folder had another meaning under the same name.

        Args:
            folder: folder that gets one ``history`` with all columns, a store ``answers/<name>``
                for each aggregate, and ``checkpoints``.
            sinks: functions by the name of an aggregate, each called like the ``sink`` of
                :meth:`Aggregate.store_in`.
            checkpoint: another folder for Spark's own files.
            max_refused: limit of :meth:`Aggregate.store_in`, for each aggregate.
            max_late: limit of :meth:`Aggregate.store_in`, for each aggregate.

        Examples:
            >>> sorted(both.store_in(f"{folder}/both").queries)
            ['rows', 'sum_watts']
        """
        given = sinks or {}
        unknown = [name for name in given if name not in self.configs]
        if unknown:
            msg = f"sinks has {unknown[0]!r}; the aggregates are {', '.join(self.configs)}"
            raise ValueError(msg)
        limits = _require_limits(self.configs.values(), max_refused, max_late)
        places = _Places.of(folder, checkpoint)
        columns = sorted({value for value in self.values.values() if value is not None})
        landing = places.land(self.stream, columns, max_refused)
        column_of = {source: name for name, source in name_values(columns).items()}
        known = {name for name in self.configs if (places.root / "answers" / name).is_folder()}
        opened: dict[str, Query] = {}
        # Stores that exist first: if one of them is refused, no other has been made.
        for name in sorted(self.configs, key=lambda name: name not in known):
            value = self.values[name]
            opened[name] = places.open_query(
                f"answers/{name}",
                self.stream,
                self.configs[name],
                None if value is None else column_of[value],
                given.get(name),
                limits,
            )
        queries = {name: opened[name] for name in self.configs}
        return LandedQueries(landing, queries, self.values, self.stream.rows.sparkSession)


class _Places(NamedTuple):
    """The folders of a landing and its queries."""

    root: Location
    checkpoints: Location

    @classmethod
    def of(cls, folder: Address, checkpoint: Address | None) -> "_Places":
        """Return the places in a folder; Spark's own files may be elsewhere."""
        root = locate(folder)
        return cls(root, locate(checkpoint) if checkpoint else root / "checkpoints")

    def land(self, stream: Stream, value: str | Sequence[str], max_refused: Limit) -> Landing:
        """Return the landing of a stream with some columns of values."""
        history, checkpoint = self.root / "history", self.checkpoints / "landing"
        options = {"value": value, "max_refused": max_refused, **stream.columns}
        return Landing(stream.rows, history, checkpoint, **options)

    def open_query(
        self,
        store: str,
        stream: Stream,
        config: Config,
        value: str | None,
        sink: Sink | None,
        limits: Mapping[str, Limit],
    ) -> Query:
        """Return the query that reads the column ``value`` of the history and writes ``store``."""
        places = (self.root / "history", self.root / store, stream.columns["group_columns"])
        options: dict[str, Any] = {"sink": sink, "checkpoint": self.checkpoints / store, **limits}
        spark = stream.rows.sparkSession
        if isinstance(config, SlackConfig):
            return slack.SlackQuery(spark, config, *places, value=value, **options)
        return watermark.WatermarkQuery(spark, config, *places, value=value, **options)


def _require_limits(
    configs: Iterable[Config], max_refused: Limit, max_late: Limit
) -> dict[str, Limit]:
    """Return limits as options of queries; :class:`InputProblem` if a query cannot have them."""
    for config in configs:
        corrects = isinstance(config, SlackConfig) or config.corrections
        limits_of(corrects, max_refused, max_late)
    return {"max_refused": max_refused, "max_late": max_late}
