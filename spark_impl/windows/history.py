"""Reads the part of a history that corrections need."""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import reduce
from operator import or_

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from spark_impl.runtime.histories import (
    COLUMNS,
    VALUE,
    Follower,
    file_of,
    files_of,
    history_schema,
    name_values,
    number_of,
    read_footer,
)
from spark_impl.runtime.history_chain import require_chain
from spark_impl.runtime.provenance import read_note
from spark_impl.runtime.storage import InputProblem, Location
from spark_impl.runtime.stores import groups_from_json
from spark_impl.runtime.tables import BATCH, KIND
from spark_impl.windows import recompute
from spark_impl.windows.arrival_files import check_columns, group_type
from spark_impl.windows.blocks import SLOT
from spark_impl.windows.recompute import Tuples, WindowAnswers, WindowRequest
from spark_impl.windows.room import WindowSettings
from spark_impl.windows.row_groups import (
    ROWS_KEPT,
    Footers,
    Piece,
    PieceCache,
    PieceReader,
    RowGroup,
    TimeRange,
)

ROWS_ON_DRIVER = 4_000_000
"""Most rows that the driver reads for a correction; workers read more."""
_THREADS = min(4, os.cpu_count() or 1)
_FEW_ROWS = 50_000
"""Fewer rows are not dealt out to threads."""
_TUPLES = "place long, seq long, source_id long, event_time_us long, value double"
_ANSWERS = "place long, j long, value double, n long, deliveries long, rows long"


def check_source(
    source: Location,
    columns: Collection[str],
    group_columns: Collection[str],
    value: str | None = VALUE,
) -> tuple[pa.Field, ...]:
    """Check the first file of a history; return the grouping columns as they are read.

    A history without files has the columns that its :class:`Landing` wrote down, else grouping
    columns of text. ``columns`` are names of other columns of the answers, which no grouping column
    may have; ``value`` is the column of the values. Raises :class:`InputProblem` if a query cannot
    read the history.
    """
    if value != VALUE and value in (*COLUMNS, *group_columns):
        msg = f"value is {value!r}, which is a column of another meaning"
        raise InputProblem(msg)
    if not source.is_folder():
        msg = f"there is no folder {source}"
        raise InputProblem(msg)
    files = files_of(source)
    if files:
        schema = read_footer(files[0]).schema.to_arrow_schema()
    else:
        schema = _coming_schema(source, group_columns, value)
    ours = {*COLUMNS, "task", BATCH, KIND, SLOT, *columns}
    groups = []
    for name in group_columns:
        if name.lower() in ours:  # to Spark they are the same
            msg = f"a grouping column cannot be called {name!r}, which is a column of the answers"
            raise InputProblem(msg)
        groups.append(pa.field(name, group_type(source, schema, name)))
    check_columns(source, schema, value)
    return tuple(groups)


def _coming_schema(
    source: Location, group_columns: Collection[str], value: str | None
) -> pa.Schema:
    """Return the schema that the first file of a history is going to have."""
    landed = read_note(source) or {}
    values = [*name_values(landed.get("value", VALUE))] if landed else [value or VALUE]
    known = landed.get("group_columns", {})
    groups = groups_from_json((name, known.get(name, "string")) for name in group_columns)
    return history_schema(*groups, values=values)


class History:
    """The files of a history; reads ahead for the next correction while the stream works."""

    def __init__(
        self,
        spark: SparkSession,
        settings: WindowSettings,
        source: Location,
        groups: tuple[pa.Field, ...],
    ) -> None:
        self._spark = spark
        self.source = source
        self._reader = PieceReader(settings, groups)
        self._cache = PieceCache(self._reader)
        self._follower = Follower(source)
        self._footers = Footers()
        self._known = range(0)
        """Numbers of the files whose footers are known."""
        self._checked = set[int]()
        """Numbers of the files that are the ones that their neighbours know."""
        self._threads = ThreadPoolExecutor(_THREADS)
        self._ahead: Future[None] | None = None

    def read_ahead(self, seq: int) -> None:
        """Start reading the file behind arrival ``seq``, which the next correction will need."""
        self._finish_reading()
        self._ahead = self._threads.submit(self._read_ahead, seq)

    def _read_ahead(self, seq: int) -> None:
        # A file that cannot be read raises again when a correction reads it.
        with suppress(Exception):
            behind = self._look().behind(seq)
            # A correction needs the file before it as well, and all or nothing is kept.
            if sum(group.rows for group in behind) <= ROWS_KEPT // 2:
                self._cache.pieces(behind)

    def _look(self) -> Footers:
        """Return the row groups of all files that the history has now."""
        numbers = self._follower.numbers()
        if numbers.start != self._known.start:  # it was shortened
            self._footers, self._known = Footers(), range(numbers.start, numbers.start)
        for number in range(self._known.stop, numbers.stop):
            self._footers.add(file_of(self.source, number))
            self._known = range(numbers.start, number + 1)
        return self._footers

    def _finish_reading(self) -> None:
        if self._ahead is not None:
            self._ahead.result()
            self._ahead = None

    def recompute(self, request: WindowRequest) -> tuple[WindowAnswers, int]:
        """Return the answers of some windows, and the number of rows in the row groups read."""
        self._finish_reading()
        times, last = recompute.time_ranges_us(request), int(request.limit.max())
        groups = self._look().overlapping(times, last)
        for number in sorted({number_of(group.file) for group in groups} - self._checked):
            require_chain(self.source, range(number, number + 1))
            self._checked.add(number)
        rows = sum(group.rows for group in groups)
        read = row_group_reader(self._reader, groups, times)
        if rows > ROWS_ON_DRIVER:
            return self._on_workers(request, len(groups), read), rows
        if rows > ROWS_KEPT:
            pieces = [piece for number in range(len(groups)) for piece in read(number)]
        else:
            pieces = self._cache.pieces(groups)
        return self._here(request, pieces, 1 if rows < _FEW_ROWS else _THREADS), rows

    def _here(self, request: WindowRequest, pieces: Sequence[Piece], threads: int) -> WindowAnswers:
        """Recompute in this process, with the places dealt out to threads."""

        def answer_some(thread: int) -> WindowAnswers:
            mine = np.arange(len(request.places)) % threads == thread
            rows = [recompute.select(request, piece, mine) for piece in pieces]
            return recompute.evaluate(request, recompute.concatenate(rows))

        parts = list(self._threads.map(answer_some, range(threads)))
        return WindowAnswers._make(np.concatenate(columns) for columns in zip(*parts, strict=True))

    def _on_workers(
        self, request: WindowRequest, groups: int, read: Callable[[int], Iterator[Piece]]
    ) -> WindowAnswers:
        """Recompute on the workers: one row group at a time, then all rows of a place together."""

        def select(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for number in (row for batch in batches for row in batch.column("number").to_pylist()):
                for piece in read(number):
                    rows = recompute.select(request, piece)
                    yield pa.RecordBatch.from_pydict(rows._asdict())

        def evaluate(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            given = list(batches)
            if given:
                table = pa.Table.from_batches(given)
                rows = Tuples._make(table.column(name).to_numpy() for name in Tuples._fields)
                yield pa.RecordBatch.from_pydict(recompute.evaluate(request, rows)._asdict())

        numbers = self._spark.range(groups).withColumnRenamed("id", "number")
        answers = (
            numbers.repartition(groups)
            .mapInArrow(select, _TUPLES)
            .repartition("place")
            .mapInArrow(evaluate, _ANSWERS)
            .toArrow()
        )
        return WindowAnswers._make(
            answers.column(name).to_numpy() for name in WindowAnswers._fields
        )


def row_group_reader(
    reader: PieceReader, groups: Sequence[RowGroup], times: Sequence[TimeRange]
) -> Callable[[int], Iterator[Piece]]:
    """Return a function that reads one of some row groups, only rows in some ranges of time."""
    time = pc.field("event_time_us")
    where = reduce(or_, ((time >= start) & (time < end) for start, end in times))

    def read(number: int) -> Iterator[Piece]:
        return reader.read(groups[number], where)

    return read
