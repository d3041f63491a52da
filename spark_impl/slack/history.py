"""Reads the part of a history that corrections need."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from spark_impl.slack import recompute
from spark_impl.slack.blocks import COLUMNS
from spark_impl.slack.recompute import Found, Wanted
from spark_impl.slack.records import Rows

ROWS_ON_DRIVER = 4_000_000
"""Files with more rows than this are read by the workers."""
_ROWS = (
    "seq long, source_id long, key long, event_time_us long, value double, "
    "arrival_us long, flaw long"
)
_FOUND = "place long, j long, value double, n long, rows long"


class _Extent(NamedTuple):
    """What the footer of a file says."""

    rows: int
    oldest_us: int
    newest_us: int
    nulls: bool
    """Whether a column may hold NULLs."""


class History:
    """The files of a history and what time they cover; footers are read once."""

    def __init__(self, spark: SparkSession, source: Path, groups: tuple[pa.Field, ...]) -> None:
        self._spark = spark
        self._source = source
        self._groups = groups
        self._extents: dict[str, _Extent] = {}

    def recompute(self, want: Wanted) -> tuple[Found, int]:
        """Recompute some windows; also the number of rows in the files that this opened."""
        start_us, end_us = recompute.span_us(want)
        files = self._overlapping(start_us, end_us)
        extents = [self._extents[path] for path in files]
        rows = sum(extent.rows for extent in extents)
        names = recompute.columns_needed(want.config)
        if any(extent.nulls for extent in extents):
            names = list(COLUMNS)  # a NULL anywhere takes the row out
        read = _reader([*(field.name for field in self._groups), *names], start_us, end_us)
        if rows > ROWS_ON_DRIVER:
            return self._on_workers(want, files, read), rows
        return recompute.evaluate(want, recompute.select(want, read(files))), rows

    def _on_workers(
        self, want: Wanted, files: list[str], read: Callable[[list[str]], pa.Table]
    ) -> Found:
        """The same on the workers: a file at a time, then the rows of a place together."""

        def selected(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for path in batch.column("path").to_pylist():
                    rows = recompute.select(want, read([path]))
                    yield pa.RecordBatch.from_pydict(rows._asdict())

        def evaluated(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            given = list(batches)
            if given:
                table = pa.Table.from_batches(given)
                rows = Rows(*(table.column(name).to_numpy() for name in Rows._fields))
                yield pa.RecordBatch.from_pydict(recompute.evaluate(want, rows)._asdict())

        paths = self._spark.createDataFrame([(path,) for path in files], "path string")
        found = (
            paths.repartition(len(files))
            .mapInArrow(selected, _ROWS)
            .repartition("key")
            .mapInArrow(evaluated, _FOUND)
            .toArrow()
        )
        return Found(*(found.column(name).to_numpy() for name in Found._fields))

    def _overlapping(self, start_us: int, end_us: int) -> list[str]:
        found = []
        for path in map(str, sorted(self._source.glob("[!._]*.parquet"))):
            if path not in self._extents:
                self._extents[path] = _extent(path)
            extent = self._extents[path]
            if extent.oldest_us < end_us and extent.newest_us >= start_us:
                found.append(path)
        return found


def _reader(names: list[str], start_us: int, end_us: int) -> Callable[[list[str]], pa.Table]:
    """Reads some columns of files, rows with ``start_us <= event time < end_us``."""
    time = pc.field("event_time_us")
    where = (time >= start_us) & (time < end_us)

    def read(files: list[str]) -> pa.Table:
        kind = ds.ParquetFileFormat(dictionary_columns=["key"])
        return ds.dataset(files, format=kind).to_table(columns=names, filter=where)

    return read


def _extent(path: str) -> _Extent:
    footer = pq.read_metadata(path)
    groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
    statistics = [group.column(i).statistics for group in groups for i in range(group.num_columns)]
    nulls = any(each is None or not each.has_null_count or each.null_count for each in statistics)
    place = footer.schema.names.index("event_time_us")
    times = [group.column(place).statistics for group in groups]
    if any(each is None or not each.has_min_max for each in times):
        return _Extent(footer.num_rows, -(1 << 63), (1 << 63) - 1, nulls)
    oldest = min((each.min for each in times), default=0)
    newest = max((each.max for each in times), default=-1)
    return _Extent(footer.num_rows, oldest, newest, nulls)
