"""Conversion of a stream's columns into those of a history, and the arrival order of its rows.

Spark converts rows where they are; each row moves once, to the task that numbers it.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import reduce
from typing import NamedTuple

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, Window, types
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from spark_impl.runtime.histories import COLUMNS, VALUE
from spark_impl.runtime.storage import InputProblem

UNITS_US = {"us": 1, "ms": 1_000, "s": 1_000_000}
"""Units of numeric times, in microseconds."""
FAULTS = pa.schema([(name, pa.string()) for name in ("column", "reason", "text", "row")])
STREAM = "stream"
"""The grouping column that names the stream of a row, if several are landed together."""
FAULT = "_fault"
"""The faults of a row: lines of JSON with the columns :data:`FAULTS`, or NULL without a fault."""
_SINCE, _FROM, _PART, _OFFSET, _ID = "_since", "_from", "_part", "_offset", "_id"
TAKEN = (*COLUMNS, FAULT, _SINCE, _FROM, _PART, _OFFSET, _ID)
"""Names that a grouping column cannot have."""
_TIMES = ("event_time_us", "arrival_us")
_KAFKA = {"topic": "string", "partition": "int", "offset": "bigint", "timestamp": "timestamp"}
"""Columns by which Kafka is recognised, with their types."""


class Chosen(NamedTuple):
    """The columns of a stream that make a history."""

    named: Mapping[str, str | None]
    """The stream's columns by the column of the history, in the order in which they are checked."""
    values: Collection[str]
    """Columns of the history that hold values."""
    keeps_nulls: bool
    """Whether a row stays whose values cannot be read, with NULL for each of them."""
    groups: Collection[str]
    unit: str
    """Unit of times that are not timestamps."""


class _Field(NamedTuple):
    name: str
    typed: Column
    """The column in the type of the history; NULL if the stream's value does not fit."""
    source: str | None = None
    wanted: str = ""
    """The kind of value that the stream must hold."""


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
    parts = []
    for stream in streams:
        fields = _fields_of(stream, chosen)
        typed = [field.typed.alias(field.name) for field in fields]
        place = _place(stream, is_timed=chosen.named["arrival_us"] is not None)
        named = [column.alias(name) for name, column in place.items()]
        fault = _fault(stream, fields, chosen.values if chosen.keeps_nulls else ())
        parts.append(stream.select(*typed, fault.alias(FAULT), *named))
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
        # Dealt out here, or Spark would with as many partitions as the session has for all else.
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


def _fields_of(stream: DataFrame, chosen: Chosen) -> list[_Field]:
    """Return the columns of the history, without the arrival number."""
    kinds = {field.name: field.dataType for field in stream.schema}
    fields = []
    for name, source in [*chosen.named.items(), *((each, each) for each in chosen.groups)]:
        if source is not None:
            if source not in kinds:
                msg = f"the stream has no column {source!r}; its columns are {', '.join(kinds)}"
                raise InputProblem(msg)
            role = VALUE if name in chosen.values else name
            typed, wanted = _read(role, _quote(source), kinds[source], chosen.unit), _wanted(role)
            if typed is None:
                is_a, note = kinds[source].simpleString(), f" with time_unit {chosen.unit!r}"
                msg = f"column {source!r} holds {is_a}, not {wanted}"
                raise InputProblem(msg + note * (name in _TIMES))
            fields.append(_Field(name, typed, source, wanted))
    if chosen.named["key"] is None:
        fields.append(_Field("key", F.lit("")))
    if chosen.named["arrival_us"] is None:
        # In a stream this is the time in Spark's log of offsets, so a replay gets the same time.
        fields.append(_Field("arrival_us", F.unix_micros(F.current_timestamp())))
    return fields


def _read(name: str, column: Column, kind: types.DataType, unit: str) -> Column | None:
    """Return a column as the history's ``name``, with NULL for bad values; None for a bad type."""
    text, whole = isinstance(kind, types.StringType), isinstance(kind, types.IntegralType)
    if name in _TIMES:
        return _read_time(column, kind, unit)
    if name == VALUE:
        number = column.try_cast("double")
        if text:  # Java would also read "1f" and "0x1p3" as numbers
            return F.when(~column.rlike(r"[xX]|[\d.][dDfF]\s*$"), number)
        return number if isinstance(kind, types.NumericType) else None
    if not text and not whole and (name != "key" or not isinstance(kind, types.BinaryType)):
        return None
    if name == "key" or (text and name != "source_id"):
        # To Spark any bytes are a string, such as those of a message of Kafka; not to readers.
        return F.try_validate_utf8(column.cast("string"))
    return column.try_cast("bigint")


def _read_time(column: Column, kind: types.DataType, unit: str) -> Column | None:
    if isinstance(kind, types.TimestampType | types.TimestampNTZType | types.DateType):
        return F.unix_micros(column.cast("timestamp"))
    if unit == "timestamp" and isinstance(kind, types.StringType):
        # Spark would read "12:30" as a time of today.
        begins_with_a_date = column.rlike(r"^\s*[+-]?\d{4,6}-\d")
        return F.when(begins_with_a_date, F.unix_micros(column.try_cast("timestamp")))
    if unit != "timestamp" and isinstance(kind, types.StringType | types.NumericType):
        number = column.try_cast("decimal(28,9)") * F.lit(UNITS_US[unit]).cast("decimal(7,0)")
        return F.floor(number).try_cast("bigint")
    return None


def _wanted(name: str) -> str:
    wanted = {VALUE: "a number", "key": "text", "source_id": "a whole number"}
    return "a time" if name in _TIMES else wanted.get(name, "text or a whole number")


def _quote(name: str) -> Column:
    return F.col("`" + name.replace("`", "``") + "`")


def _fault(stream: DataFrame, fields: Sequence[_Field], values: Collection[str]) -> Column:
    """Return the faults of a row, NULL for a row without one.

    These are the first fault that keeps the row out, or else all faults of ``values``, which do not
    keep it out.
    """
    everything = F.struct(*(_quote(name).alias(name) for name in stream.columns))
    row = F.to_json(everything, {"ignoreNullFields": "false"})
    faults = {}
    for field in fields:
        if field.source is not None:
            column = _quote(field.source)
            binary = isinstance(stream.schema[field.source].dataType, types.BinaryType)
            text = F.hex(column) if binary else column.cast("string")
            other = F.when(field.typed.isNull(), f"not {field.wanted}")
            reason = F.when(column.isNull(), "NULL").otherwise(other)
            said = zip(FAULTS.names, (F.lit(field.source), reason, text, row), strict=True)
            fault = F.struct(*(part.alias(name) for name, part in said))
            # Nearly all faults are NULL; Python gets them faster as text than as structs.
            faults[field.name] = F.when(reason.isNotNull(), F.to_json(fault))
    first = F.coalesce(*(fault for name, fault in faults.items() if name not in values))
    if not values:
        return first
    lines = F.concat_ws("\n", *(faults[name] for name in values))
    return F.coalesce(first, F.when(lines != "", lines))
