"""Conversion of a stream's columns into those of a history, and the arrival order of its rows.

Rows are read where they are (:mod:`spark_impl.runtime.cells` says what a cell means); each row
moves once, to the task that numbers it.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from math import isfinite
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import AnalysisException, PySparkTypeError
from pyspark.sql import Column, DataFrame, Window, types
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_type

from spark_impl.runtime import cells
from spark_impl.runtime.arrays import Bools
from spark_impl.runtime.cell_arrays import Cells, is_text, shown
from spark_impl.runtime.cell_times import read_times
from spark_impl.runtime.histories import COLUMNS, SOURCE_TEXT
from spark_impl.runtime.storage import InputProblem

REASON_FUTURE = "event time lies too far ahead of the arrival"
TIMESTAMP = "timestamp"
"""The unit of times that are no numbers."""
FAULTS = pa.schema(
    [
        *((name, pa.string()) for name in ("column", "reason", "text", "row")),
        ("seq", pa.int64()),
        ("batch", pa.int64()),
    ]
)
"""Columns of refused cells; ``seq`` is the arrival number of a row that landed all the same."""
STREAM = "stream"
"""The grouping column that names the stream of a row, if several are landed together."""
FAULT = "_fault"
"""The faults of a row: lines of JSON with columns of :data:`FAULTS`, or NULL without a fault."""
_SINCE, _FROM, _PART, _OFFSET, _ID = "_since", "_from", "_part", "_offset", "_id"
_NOW = "_now"
TAKEN = (*COLUMNS, SOURCE_TEXT, FAULT, _SINCE, _FROM, _PART, _OFFSET, _ID, _NOW)
"""Names that a grouping column cannot have."""
_TIMES = ("event_time_us", "arrival_us")
_KAFKA = {"topic": "string", "partition": "int", "offset": "bigint", "timestamp": "timestamp"}
"""Columns by which Kafka is recognised, with their types."""


class Chosen(NamedTuple):
    """The columns of a stream that make a history."""

    named: Mapping[str, str | None]
    """The stream's columns by the column of the history, in the order in which they are checked."""
    values: Collection[str]
    """Columns of the history that hold values, NULL where one cannot be read."""
    groups: Collection[str]
    unit: str
    """Unit of times that are not timestamps."""
    max_future_us: int | None
    """Longest time by which an event time may lie beyond its arrival time."""


class Field(NamedTuple):
    """A column of the history that comes from one of the stream."""

    name: str
    source: str
    wanted: str
    """Kind of its cells: one of the words of :mod:`spark_impl.runtime.cells`."""


class Reader(NamedTuple):
    """Everything that a task needs to read the rows of a stream."""

    fields: Sequence[Field]
    row: Sequence[str]
    """All columns of the stream."""
    place: Sequence[str]
    """Columns that say when and where a row arrived."""
    chosen: Chosen
    schema: pa.Schema


def label_streams(given: DataFrame | Mapping[str, DataFrame]) -> list[DataFrame]:
    """Return all streams to land; streams given by name get the column :data:`STREAM`.

    Raise :class:`InputProblem` if one is not a stream, or already has such a column.
    """
    by_name = given if isinstance(given, Mapping) else {"": given}
    if not by_name or not all(each.isStreaming for each in by_name.values()):
        msg = "the DataFrame to land is not a stream; read it with spark.readStream"
        raise InputProblem(msg)
    if by_name is not given:
        return list(by_name.values())
    for name, each in by_name.items():
        if STREAM in each.columns:
            msg = f"the stream {name!r} cannot have a column {STREAM!r}, which is taken"
            raise InputProblem(msg)
    return [each.withColumn(STREAM, F.lit(name)) for name, each in by_name.items()]


def union_typed(streams: Sequence[DataFrame], chosen: Chosen) -> DataFrame:
    """Return the rows of all streams with the columns of a history, without arrival numbers.

    :data:`FAULT` and columns for :func:`in_order` are added. Raise :class:`InputProblem` for a
    column that is missing or has a wrong type.
    """
    parts = [_typed(stream, chosen) for stream in streams]
    for name in chosen.groups:
        if len({part.schema[name].dataType.typeName() for part in parts}) > 1:
            msg = f"column {name!r} holds text in one stream and whole numbers in another"
            raise InputProblem(msg)
    return reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), parts)


def in_order(rows: DataFrame, *, by_arrival: bool) -> DataFrame:
    """Return the rows of a micro-batch as one partition, in the order of arrival.

    ``rows`` are those of :func:`union_typed`. No two rows tie, so a replay finds the same order.
    """
    rows = rows.withColumn(_ID, F.monotonically_increasing_id())
    keys = [F.col("arrival_us")] if by_arrival else []
    # Spark's number of a row is 2^33 times its partition, plus its position in the partition.
    turn = F.col(_ID).bitwiseAND((1 << 33) - 1)
    if _FROM in rows.columns:
        turn = F.when(F.col(_FROM).isNull(), turn)  # rows of one file stay together
    if _OFFSET in rows.columns:
        log = Window.partitionBy(_FROM, _PART).orderBy(_OFFSET)
        until_now = log.rowsBetween(Window.unboundedPreceding, Window.currentRow)
        # Partitioned here, because Spark would take the session's number of partitions.
        cores = max(rows.sparkSession.sparkContext.defaultParallelism, 1)
        rows = rows.repartition(cores, _FROM, _PART)
        rows = rows.withColumn(_SINCE, F.max(_SINCE).over(until_now))
        turn = F.coalesce(_OFFSET, turn)
    if _FROM in rows.columns:
        keys += [F.col(_SINCE).asc_nulls_last(), F.col(_FROM), F.col(_PART)]
    ordered = rows.repartition(1).sortWithinPartitions(*keys, turn, _ID)
    return ordered.drop(_SINCE, _FROM, _PART, _OFFSET, _ID)


def _place(stream: DataFrame, *, is_timed: bool) -> dict[str, Column]:
    """Return the columns of a stream's source that say when and where a row arrived.

    If ``is_timed``, rows have arrival times; only rows with equal times need these columns.
    """
    kinds = {field.name: field.dataType.simpleString() for field in stream.schema}
    if _KAFKA.items() <= kinds.items():
        if is_timed:
            return {}
        since, part = F.unix_micros("timestamp"), F.col("partition").cast("bigint")
        return {_SINCE: since, _FROM: F.col("topic"), _PART: part, _OFFSET: F.col("offset")}
    try:
        file = stream.metadataColumn("_metadata")
        since, path = F.unix_micros(file["file_modification_time"]), file["file_path"]
        place = {_SINCE: since, _FROM: path, _PART: file["file_block_start"]}
        stream.select(*place.values())
    except AnalysisException:  # the rows do not come from files
        return {}
    return place


def _typed(stream: DataFrame, chosen: Chosen) -> DataFrame:
    """Return the rows of one stream with the columns of a history, read by its tasks."""
    fields = _fields_of(stream, chosen)
    place = _place(stream, is_timed=chosen.named["arrival_us"] is not None)
    kinds = {field.name: field.dataType for field in stream.schema}
    typed = pa.schema([(each.name, _type_of(each, kinds[each.source])) for each in fields])
    if chosen.named["key"] is None:
        typed = typed.append(pa.field("key", pa.string()))
    if chosen.named["arrival_us"] is None:
        typed = typed.append(pa.field("arrival_us", pa.int64()))
    source = chosen.named["source_id"]
    if source is not None and isinstance(kinds[source], types.StringType):
        typed = typed.append(pa.field(SOURCE_TEXT, pa.string()))
    named = [column.alias(name) for name, column in place.items()]
    # In a stream this is the time in Spark's log of offsets, so a replay gets the same time.
    now = F.unix_micros(F.current_timestamp()).alias(_NOW)
    rows = stream.select(*(_shown(field) for field in stream.schema), *named, now)
    there = from_arrow_schema(typed.append(pa.field(FAULT, pa.string())))
    schema = types.StructType([*there, *(rows.schema[name] for name in place)])
    reader = Reader(fields, stream.columns, [*place], chosen, typed)
    return rows.mapInArrow(partial(read_batches, reader=reader), schema)


def _shown(field: types.StructField) -> Column:
    """Return a column in a type that Arrow can hold: the rarest types become text."""
    try:
        to_arrow_type(field.dataType, timezone="UTC")
    except PySparkTypeError:
        return _quote(field.name).cast("string").alias(field.name)
    return _quote(field.name)


def _fields_of(stream: DataFrame, chosen: Chosen) -> list[Field]:
    """Return the columns of the history that the stream has."""
    kinds = {field.name: field.dataType for field in stream.schema}
    roles = {"key": cells.KEYS, "source_id": cells.IDENTITIES} | dict.fromkeys(_TIMES, cells.TIMES)
    fields = []
    for name, source in [*chosen.named.items(), *((each, each) for each in chosen.groups)]:
        if source is None:
            continue
        if source not in kinds:
            msg = f"the stream has no column {source!r}; its columns are {', '.join(kinds)}"
            raise InputProblem(msg)
        is_group = name in chosen.groups and name not in chosen.named
        wanted = cells.GROUPS if is_group else roles.get(name, cells.NUMBERS)
        kind = kinds[source]
        try:
            bad = cells.refuse_type(wanted, to_arrow_type(kind, timezone="UTC"), chosen.unit)
        except PySparkTypeError:
            bad = "no type of Arrow"
        if bad is not None:
            note = f" with time_unit {chosen.unit!r}" * (wanted == cells.TIMES)
            msg = f"column {source!r} holds {kind.simpleString()}, not {wanted}{note}"
            raise InputProblem(msg)
        fields.append(Field(name, source, wanted))
    return fields


def _type_of(field: Field, kind: types.DataType) -> pa.DataType:
    """Return the type of a column of the history."""
    if field.wanted == cells.GROUPS:
        return pa.string() if isinstance(kind, types.StringType) else pa.int64()
    return pa.float64() if field.wanted == cells.NUMBERS else COLUMNS[field.name]


def _quote(name: str) -> Column:
    return F.col("`" + name.replace("`", "``") + "`")


# ------------------------------------------------------------------------- the work of the tasks


def read_batches(batches: Iterable[pa.RecordBatch], reader: Reader) -> Iterator[pa.RecordBatch]:
    """Read rows of a stream as rows of a history; a stage for ``mapInArrow``."""
    for batch in batches:
        yield _read_rows(batch, reader)


def _read_rows(batch: pa.RecordBatch, reader: Reader) -> pa.RecordBatch:
    chosen, size = reader.chosen, batch.num_rows
    place = {name: batch.column(len(reader.row) + at) for at, name in enumerate(reader.place)}
    # A stream may have several columns of one name; only those that are named have to be unique.
    at = {name: position for position, name in enumerate(reader.row)}
    read = {
        field.name: _read(field, batch.column(at[field.source]), chosen.unit)
        for field in reader.fields
    }
    typed = {name: each.values for name, each in read.items()}
    typed.setdefault("key", pa.array([""] * size))
    typed.setdefault("arrival_us", batch.column(batch.num_columns - 1))
    if SOURCE_TEXT in reader.schema.names:
        typed[SOURCE_TEXT] = read["source_id"].texts
    if chosen.max_future_us is not None:
        read["event_time_us"] = _guard(read["event_time_us"], typed, chosen.max_future_us)
        typed["event_time_us"] = read["event_time_us"].values
    fault = _faults(batch, reader, read)
    columns = {name: typed[name] for name in reader.schema.names}
    names = [*columns, FAULT, *place]
    return pa.RecordBatch.from_arrays([*columns.values(), fault, *place.values()], names)


def _read(field: Field, column: pa.Array, unit: str) -> Cells:
    if field.wanted == cells.TIMES:
        return read_times(column, unit)
    if field.wanted == cells.NUMBERS:
        return cells.read_numbers(column)
    if field.wanted == cells.KEYS:
        return cells.read_keys(column)
    if field.wanted == cells.IDENTITIES:
        return cells.read_identities(column)
    return cells.read_keys(column) if is_text(column.type) else cells.read_identities(column)


def _guard(times: Cells, typed: Mapping[str, pa.Array], max_future_us: int) -> Cells:
    """Refuse event times that lie too far beyond the arrival times."""
    ahead = pc.subtract(times.values, typed["arrival_us"])
    far = pc.fill_null(pc.greater(ahead, max_future_us), False)
    return Cells(pc.if_else(far, None, times.values), pc.if_else(far, REASON_FUTURE, times.reason))


def _faults(batch: pa.RecordBatch, reader: Reader, read: Mapping[str, Cells]) -> pa.Array:
    """Return the faults of each row, NULL for a row without one.

    These are the first fault that keeps the row out, or else all faults of values, which do not
    keep it out.
    """
    bad: dict[str, Bools] = {
        name: each.reason.is_valid().to_numpy(zero_copy_only=False) for name, each in read.items()
    }
    faulty = np.flatnonzero(reduce(np.logical_or, bad.values()))
    lines: list[str | None] = [None] * batch.num_rows
    if not len(faulty):
        return pa.array(lines, pa.string())
    shown = batch.take(pa.array(faulty))
    rows = zip(*(_cells_of(shown.column(i)) for i in range(len(reader.row))), strict=True)
    for number, values in zip(faulty.tolist(), rows, strict=True):
        row = dict(zip(reader.row, values, strict=True))
        wrong = [field for field in reader.fields if bad[field.name][number]]
        out = [field for field in wrong if field.name not in reader.chosen.values]
        lines[number] = "\n".join(
            _fault(field, read[field.name].reason[number].as_py(), row)
            for field in out[:1] or wrong
        )
    return pa.array(lines, pa.string())


def _fault(field: Field, reason: str, row: Mapping[str, object]) -> str:
    """Return one line of JSON about a cell."""
    cell = row[field.source]
    whole = json.dumps(row, ensure_ascii=False, allow_nan=False)
    text = None if cell is None else str(cell)
    said = {"column": field.source, "reason": reason, "text": text, "row": whole}
    return json.dumps(said, ensure_ascii=False)


def _cells_of(column: pa.Array) -> list[object]:
    """Return the cells of a column as JSON has them. To Spark any bytes are text."""
    if not is_text(column.type):
        return [_as_json(each) for each in shown(column)]
    raw = column.cast(pa.binary()).to_pylist()
    return [None if cell is None else cell.decode("utf-8", "backslashreplace") for cell in raw]


def _as_json(cell: object) -> object:
    """Return a cell as JSON has it, which knows no NaN, no infinity, no bytes and no times."""
    match cell:
        case dict():
            return {name: _as_json(each) for name, each in cell.items()}
        case list() | tuple():
            return [_as_json(each) for each in cell]
        case bytes():
            return cell.hex()
        case None | int() | str():
            return cell
        case float() if isfinite(cell):
            return cell
    return str(cell)
