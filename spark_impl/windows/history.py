"""Reads the part of a history that corrections need."""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import reduce
from operator import or_
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from spark_impl.runtime.histories import COLUMNS, DATA_FILES, InputProblem, reading, written_ns
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
_ANSWERS = (
    "place long, j long, value double, n long, deliveries long, rows long, "
    "correlated long, cross long, delay_spread long, value_spread long"
)


def check_source(
    source: Path, columns: Collection[str], group_columns: Collection[str]
) -> tuple[pa.Field, ...]:
    """Check the first file of a history; return the grouping columns as they are read.

    ``columns`` are names of other columns of the answers, which no grouping column may have.
    Raises :class:`InputProblem` if a query cannot read the history.
    """
    if not source.is_dir():
        msg = f"there is no folder {source}"
        raise InputProblem(msg)
    files = data_files(source)
    if not files:
        msg = f"{source} holds no Parquet file"
        raise InputProblem(msg)
    with reading(files[0]):
        schema = pq.read_schema(files[0])
    ours = {*COLUMNS, "task", "batch", SLOT, *columns}
    groups = []
    for name in group_columns:
        if name in ours:
            msg = f"a grouping column cannot be called {name!r}, which is a column of the answers"
            raise InputProblem(msg)
        groups.append(pa.field(name, group_type(source, schema, name)))
    check_columns(source, schema)
    return tuple(groups)


def data_files(source: Path) -> list[str]:
    """Return the files of a history that Spark's file source takes, by name."""
    return sorted(map(str, source.glob(DATA_FILES)))


class History:
    """The files of a history; reads ahead for the next correction while the stream works."""

    def __init__(
        self,
        spark: SparkSession,
        settings: WindowSettings,
        source: Path,
        groups: tuple[pa.Field, ...],
    ) -> None:
        self._spark = spark
        self._source = source
        self._reader = PieceReader(settings, groups)
        self._cache = PieceCache(self._reader)
        self._times = Footers("event_time_us")
        self._arrivals = Footers("seq")
        self._written_ns: dict[str, int] = {}
        self._threads = ThreadPoolExecutor(_THREADS)
        self._ahead: Future[None] | None = None

    @property
    def source(self) -> Path:
        """The folder."""
        return self._source

    def refuse_empty(self) -> None:
        """Raise :class:`InputProblem` if a file is empty: Spark would skip it for ever."""
        for path in data_files(self._source):
            if path not in self._written_ns:
                self._written_ns[path] = written_ns(path)

    def read_ahead(self, seq: int) -> None:
        """Start reading the file behind arrival ``seq``, which the next correction will need."""
        self._finish_reading()
        self._ahead = self._threads.submit(self._read_ahead, seq, dict(self._written_ns))

    def _read_ahead(self, seq: int, files: dict[str, int]) -> None:
        # A file that cannot be read raises again when a correction reads it.
        with suppress(Exception):
            behind: list[RowGroup] = []
            for path in sorted(files, key=lambda path: files[path], reverse=True):
                if self._arrivals.row_groups(path)[0].least <= seq:
                    break
                behind, last = self._times.row_groups(path), path
            # A correction needs the file before it as well, and all or nothing is kept.
            if sum(group.rows for group in behind) <= ROWS_KEPT // 2:
                self._cache.pieces([(last, group) for group in behind])

    def _finish_reading(self) -> None:
        if self._ahead is not None:
            self._ahead.result()
            self._ahead = None

    def recompute(self, request: WindowRequest) -> tuple[WindowAnswers, int]:
        """Return the answers of some windows, and the number of rows in the row groups read."""
        self._finish_reading()
        times, last = recompute.time_ranges_us(request), int(request.limit.max())
        by_file = self._times.overlapping(data_files(self._source), times)
        groups = [
            (path, group)
            for path, overlapping in by_file.items()
            for group in overlapping
            if self._arrivals.row_groups(path)[group.number].least <= last  # else not arrived yet
        ]
        rows = sum(group.rows for _, group in groups)
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
    reader: PieceReader, groups: Sequence[tuple[str, RowGroup]], times: Sequence[TimeRange]
) -> Callable[[int], Iterator[Piece]]:
    """Return a function that reads one of some row groups, only rows in some ranges of time."""
    time = pc.field("event_time_us")
    where = reduce(or_, ((time >= start) & (time < end) for start, end in times))

    def read(number: int) -> Iterator[Piece]:
        path, group = groups[number]
        return reader.read(path, group, where)

    return read
