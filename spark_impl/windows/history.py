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

from spark_impl.runtime.histories import DATA_FILES, InputProblem, reading, written_ns
from spark_impl.windows import recompute
from spark_impl.windows.asked import Asked
from spark_impl.windows.blocks import COLUMNS, check_columns, group_type
from spark_impl.windows.extents import Extent, Extents, Stretch
from spark_impl.windows.pieces import ROWS_KEPT, Cutting, Piece, Pieces
from spark_impl.windows.recompute import Found, Tuples, Wanted
from spark_impl.windows.slots import SLOT

ROWS_ON_DRIVER = 4_000_000
"""When more rows than this have to be read, the workers do it."""
_HANDS = min(4, os.cpu_count() or 1)
_FEW_ROWS = 50_000
"""So few are not dealt out to threads."""
_TUPLES = "place long, seq long, source_id long, event_time_us long, value double"
_FOUND = (
    "place long, j long, value double, n long, deliveries long, rows long, "
    "correlated long, cross long, delay_spread long, value_spread long"
)


def check_source(
    source: Path, taken: Collection[str], group_columns: Collection[str]
) -> tuple[pa.Field, ...]:
    """Look at the first file of a history; the grouping columns with the types they are read as.

    ``taken`` are names of other columns of the answers, which no grouping column may have.

    Raises :class:`InputProblem` with one sentence when a query cannot read it.
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
    ours = {*COLUMNS, "task", "batch", SLOT, *taken}
    groups = []
    for name in group_columns:
        if name in ours:
            msg = f"a grouping column cannot be called {name!r}, which is a column of the answers"
            raise InputProblem(msg)
        groups.append(pa.field(name, group_type(source, schema, name)))
    check_columns(source, schema)
    return tuple(groups)


def data_files(source: Path) -> list[str]:
    """The files of a history by name: those that Spark's file source takes."""
    return sorted(map(str, source.glob(DATA_FILES)))


class History:
    """The files of a history; what corrections will want next is read while the stream works."""

    def __init__(
        self,
        spark: SparkSession,
        asked: Asked,
        source: Path,
        groups: tuple[pa.Field, ...],
    ) -> None:
        self._spark = spark
        self._source = source
        self._cutting = Cutting(asked, groups)
        self._pieces = Pieces(self._cutting)
        self._extents = Extents("event_time_us")
        self._arrivals = Extents("seq")
        self._begun: dict[str, int] = {}
        self._threads = ThreadPoolExecutor(_HANDS)
        self._ahead: Future[None] | None = None

    @property
    def source(self) -> Path:
        """The folder."""
        return self._source

    def refuse_empty(self) -> None:
        """Raise :class:`InputProblem` for a file of no length: Spark passes over it, for ever."""
        for path in data_files(self._source):
            if path not in self._begun:
                self._begun[path] = written_ns(path)

    def read_ahead(self, seq: int) -> None:
        """Begin to read the file behind arrival ``seq``, which the next correction will want."""
        self._catch_up()
        self._ahead = self._threads.submit(self._read_ahead, seq, dict(self._begun))

    def _read_ahead(self, seq: int, files: dict[str, int]) -> None:
        # Whoever needs a file that cannot be read is told so when it reads the file again.
        with suppress(Exception):
            behind: list[Extent] = []
            for path in sorted(files, key=lambda path: files[path], reverse=True):
                if self._arrivals.of(path)[0].least <= seq:
                    break
                behind, last = self._extents.of(path), path
            # A correction wants the file before it as well, and all or nothing is kept.
            if sum(group.rows for group in behind) <= ROWS_KEPT // 2:
                self._pieces.of([(last, group) for group in behind])

    def _catch_up(self) -> None:
        if self._ahead is not None:
            self._ahead.result()
            self._ahead = None

    def recompute(self, want: Wanted) -> tuple[Found, int]:
        """Recompute some windows; also the number of rows in the row groups that this looked at."""
        self._catch_up()
        stretches, last = recompute.stretches_us(want), int(want.limit.max())
        found = self._extents.overlapping(data_files(self._source), stretches)
        groups = [
            (path, group)
            for path, extents in found.items()
            for group in extents
            if self._arrivals.of(path)[group.number].least <= last  # else it lies ahead
        ]
        rows = sum(group.rows for _, group in groups)
        read = _reader(self._cutting, groups, stretches)
        if rows > ROWS_ON_DRIVER:
            return self._on_workers(want, len(groups), read), rows
        if rows > ROWS_KEPT:
            pieces = [piece for number in range(len(groups)) for piece in read(number)]
        else:
            pieces = self._pieces.of(groups)
        return self._here(want, pieces, 1 if rows < _FEW_ROWS else _HANDS), rows

    def _here(self, want: Wanted, pieces: Sequence[Piece], hands: int) -> Found:
        """Recompute in this process, places dealt out to threads."""

        def some(hand: int) -> Found:
            mine = np.arange(len(want.places)) % hands == hand
            chosen = [recompute.select(want, piece, mine) for piece in pieces]
            return recompute.evaluate(want, recompute.joined(chosen))

        parts = list(self._threads.map(some, range(hands)))
        return Found._make(np.concatenate(columns) for columns in zip(*parts, strict=True))

    def _on_workers(
        self, want: Wanted, groups: int, read: Callable[[int], Iterator[Piece]]
    ) -> Found:
        """The same on the workers: a row group at a time, then the rows of a place together."""

        def selected(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for number in (row for batch in batches for row in batch.column("number").to_pylist()):
                for piece in read(number):
                    rows = recompute.select(want, piece)
                    yield pa.RecordBatch.from_pydict(rows._asdict())

        def evaluated(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            given = list(batches)
            if given:
                table = pa.Table.from_batches(given)
                rows = Tuples._make(table.column(name).to_numpy() for name in Tuples._fields)
                yield pa.RecordBatch.from_pydict(recompute.evaluate(want, rows)._asdict())

        numbers = self._spark.range(groups).withColumnRenamed("id", "number")
        found = (
            numbers.repartition(groups)
            .mapInArrow(selected, _TUPLES)
            .repartition("place")
            .mapInArrow(evaluated, _FOUND)
            .toArrow()
        )
        return Found._make(found.column(name).to_numpy() for name in Found._fields)


def _reader(
    cutting: Cutting, groups: Sequence[tuple[str, Extent]], stretches: Sequence[Stretch]
) -> Callable[[int], Iterator[Piece]]:
    """Reads one of some row groups, only rows whose event time lies in one of some stretches."""
    time = pc.field("event_time_us")
    where = reduce(or_, ((time >= start) & (time < end) for start, end in stretches))

    def read(number: int) -> Iterator[Piece]:
        path, group = groups[number]
        return cutting.pieces(path, group, where)

    return read
