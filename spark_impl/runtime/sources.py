"""The streaming source of queries: the names of a history's files, and of requests to the query.

Spark's own sources of files list a folder with Hadoop, know the order of files by their times only,
and keep a log that grows with every file. This one asks for the next number.

A request is a file in another folder, called ``<number>-<name>.parquet``: it is handed over
after all files of the history with smaller numbers. A request is removed a micro-batch after its
own, so that the last micro-batch can always be repeated.
"""

from collections.abc import Iterator
from typing import Any, TypeAlias

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from model.vocabulary.settings import PlainData
from spark_impl.runtime import histories
from spark_impl.runtime.history_chain import require_chain
from spark_impl.runtime.storage import InputProblem, Location, locate

Offset: TypeAlias = dict[str, PlainData]
"""``next``: number of the file to read next, -1 if no file has been there yet; ``first``: number of
the first file of the last micro-batch; ``requests``: those of the last micro-batch, by name;
``spent``: those of the one before; ``digest``: that of the last file."""
PATH = "path"
"""The one column of the source: addresses of files."""


def paths(
    spark: SparkSession,
    history: Location,
    requests: Location,
    *,
    is_mixed: bool = False,
) -> DataFrame:
    """Return the addresses of a history's files and of requests, as a stream.

    A micro-batch has at most one file. Requests come in one of their own, unless ``is_mixed``.
    """
    _register(spark)
    return (
        spark.readStream.format(HistorySource.name())
        .options(history=str(history), requests=str(requests), mixed=is_mixed)
        .load()
    )


def _register(spark: SparkSession) -> None:
    """Make the source known to a session.

    Spark looks for the name in the *active* session before it registers a source in another one,
    and would take the source of the user's session for that of the query's.
    """
    jvm: Any = spark._jvm
    sessions = jvm.org.apache.spark.sql.classic.SparkSession
    before = sessions.getActiveSession()
    sessions.setActiveSession(spark._jsparkSession)
    try:
        spark.dataSource.register(HistorySource)
    except AnalysisException as error:
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


class HistorySource(DataSource):
    """Spark's way to make a :class:`HistoryReader`."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "straggler-history"

    def schema(self) -> str:
        """Return the columns."""
        return f"{PATH} string"

    def simpleStreamReader(  # noqa: N802 (the name is Spark's)
        self, schema: StructType
    ) -> "HistoryReader":
        """Return a reader for the options of :func:`paths`."""
        given = self.options
        return HistoryReader(
            locate(given["history"]),
            locate(given["requests"]),
            is_mixed=given["mixed"] == "true",
        )


class HistoryReader(SimpleDataSourceStreamReader, SupportsTriggerAvailableNow):
    """Names the files that come after an offset; runs in a process of Spark's beside the driver."""

    def __init__(self, history: Location, requests: Location, *, is_mixed: bool) -> None:
        self._history = history
        self._requests = requests
        self._is_mixed = is_mixed
        self._follower = histories.Follower(history)
        self._end: int | None = None
        """Number of the first file that is left to the next run, if this one ends."""

    def initialOffset(self) -> Offset:  # noqa: N802 (the name is Spark's)
        """Return the offset before the first file, whose number may be any."""
        lowest = self._lowest()
        return {"next": lowest, "first": lowest, "requests": [], "spent": []}

    def _lowest(self) -> int:
        present = self._follower.numbers()
        return present.start if present else -1

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 (the name is Spark's)
        """Note what is there now: a run with this trigger ends with it."""
        self._end = self._follower.numbers().stop

    def read(self, start: Offset) -> tuple[Iterator[tuple[str]], Offset]:
        """Return the next files, and the offset after them."""
        for name in start["spent"]:
            (self._requests / name).remove()
        first = start["next"] if start["next"] >= 0 else self._lowest()
        known = {*start["requests"], *start["spent"]}
        requests = [
            file.name
            for file in self._requests.children(r"\d+-(\w+-)?\w+\.parquet")
            if file.name not in known and int(file.name.split("-")[0]) <= max(first, 0)
        ]
        is_over = first < 0 or (requests and not self._is_mixed)
        end = first if is_over else self._end_of_batch(first)
        if end == first and not requests:
            return iter(()), start
        after = {"next": end, "first": first, "requests": requests, "spent": start["requests"]}
        after["digest"] = require_chain(self._history, range(first, end), start.get("digest"))
        return self._names(start, after), after

    def _end_of_batch(self, first: int) -> int:
        """Return the number behind the file of a micro-batch; ``first`` if it is yet to come."""
        file = histories.file_of(self._history, first)
        if not file.exists():
            if first != self._follower.numbers().stop and not file.exists():  # it was lost
                msg = f"{file} is to be read next and is missing"
                raise InputProblem(msg)
            return first
        return first if self._end is not None and first >= self._end else first + 1

    def readBetweenOffsets(  # noqa: N802 (the name is Spark's)
        self, start: Offset, end: Offset
    ) -> Iterator[tuple[str]]:
        """Return the files between two offsets, which Spark repeats after a crash."""
        require_chain(self._history, range(end["next"], end["next"]), end.get("digest"))
        return self._names(start, end)

    def _names(self, start: Offset, end: Offset) -> Iterator[tuple[str]]:
        first = start["next"] if start["next"] >= 0 else end["first"]
        files = [histories.file_of(self._history, number) for number in range(first, end["next"])]
        requests = [self._requests / name for name in end["requests"]]
        return iter([(str(file),) for file in [*files, *requests]])
