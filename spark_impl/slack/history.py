"""Reads the part of a history that corrections need."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import reduce
from operator import or_
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from spark_impl.slack import recompute
from spark_impl.slack.blocks import COLUMNS, check_columns, group_type, typed
from spark_impl.slack.extents import Extents, Stretch
from spark_impl.slack.recompute import Found, Wanted
from spark_impl.slack.records import Rows
from spark_impl.slack.slots import SLOT
from spark_impl.slack.store import TABLES
from spark_impl.streams import DATA_FILES, InputProblem, reading

ROWS_ON_DRIVER = 4_000_000
"""When more rows than this have to be read, the workers do it."""
_ROWS = (
    "seq long, source_id long, key long, event_time_us long, value double, "
    "arrival_us long, flaw long"
)
_OUR_NAMES = {"task", "batch", SLOT, *(name for table in TABLES.values() for name in table)}
_FOUND = (
    "place long, j long, value double, n long, deliveries long, rows long, "
    "correlated long, cross long, delay_spread long, value_spread long"
)


def check_source(source: Path, group_columns: Collection[str]) -> tuple[pa.Field, ...]:
    """Look at the first file of a history; the grouping columns with the types they are read as.

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
    groups = []
    for name in group_columns:
        if name in COLUMNS or name in _OUR_NAMES:
            msg = f"a grouping column cannot be called {name!r}, which is a column of the answers"
            raise InputProblem(msg)
        groups.append(pa.field(name, group_type(source, schema, name)))
    check_columns(source, schema)
    return tuple(groups)


def data_files(source: Path) -> list[str]:
    """The files of a history by name: those that Spark's file source takes."""
    return sorted(map(str, source.glob(DATA_FILES)))


class History:
    """The files of a history."""

    def __init__(self, spark: SparkSession, source: Path, groups: tuple[pa.Field, ...]) -> None:
        self._spark = spark
        self._source = source
        self._groups = groups
        self._extents = Extents("event_time_us")
        self._begun: set[str] = set()

    @property
    def source(self) -> Path:
        """The folder."""
        return self._source

    def refuse_empty(self) -> None:
        """Raise :class:`InputProblem` for a file of no length: Spark passes over it, for ever."""
        for path in data_files(self._source):
            if path not in self._begun:
                if not Path(path).stat().st_size:
                    msg = f"{path} is empty, so it is not complete yet"
                    raise InputProblem(msg)
                self._begun.add(path)

    def recompute(self, want: Wanted) -> tuple[Found, int]:
        """Recompute some windows; also the number of rows in the row groups that this read."""
        stretches = recompute.stretches_us(want)
        found = self._extents.overlapping(data_files(self._source), stretches)
        files = list(found)
        groups = [extent for extents in found.values() for extent in extents]
        rows = sum(extent.rows for extent in groups)
        names = recompute.columns_needed(want.config)
        if any(extent.nulls for extent in groups):
            names = list(COLUMNS)  # a NULL anywhere takes the row out
        read = _reader(names, self._groups, stretches)
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
                rows = Rows._make(table.column(name).to_numpy() for name in Rows._fields)
                yield pa.RecordBatch.from_pydict(recompute.evaluate(want, rows)._asdict())

        paths = self._spark.createDataFrame([(path,) for path in files], "path string")
        found = (
            paths.repartition(len(files))
            .mapInArrow(selected, _ROWS)
            .repartition("key")
            .mapInArrow(evaluated, _FOUND)
            .toArrow()
        )
        return Found._make(found.column(name).to_numpy() for name in Found._fields)


def _reader(
    names: list[str], groups: tuple[pa.Field, ...], stretches: Sequence[Stretch]
) -> Callable[[list[str]], pa.Table]:
    """Reads some columns of files, rows whose event time lies in one of some stretches.

    Row groups without such rows are passed over: their footers say so.
    """
    time = pc.field("event_time_us")
    columns = [*(field.name for field in groups), *names]
    where = reduce(or_, ((time >= start) & (time < end) for start, end in stretches))

    def read(files: list[str]) -> pa.Table:
        if not files:  # the history has lost them; the correction will say so
            kinds = [*groups, *((name, COLUMNS[name]) for name in names)]
            return pa.schema(kinds).empty_table()
        kind = ds.ParquetFileFormat(dictionary_columns=["key"])
        rows = ds.dataset(files, format=kind).to_table(columns=columns, filter=where)
        return typed(rows, groups)

    return read
