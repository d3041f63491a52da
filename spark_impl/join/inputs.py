"""Inputs of a join: two DataFrames, or one history of both streams.

A column of an input is taken as it is, or in a wider type that holds all its values; nothing is
rounded, cut off or guessed.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)
from pyspark.sql.pandas.types import from_arrow_schema, from_arrow_type

from model.vocabulary.join import R, S
from model.vocabulary.join_predicates import Columns, check_columns
from spark_impl.join.columns import TYPES, name_of_column
from spark_impl.join.task import COLUMNS
from spark_impl.runtime.histories import COLUMNS as HISTORY
from spark_impl.runtime.histories import (
    VALUE,
    files_of,
    history_schema,
    open_piece,
    read_footer,
)
from spark_impl.runtime.provenance import mark_rows
from spark_impl.runtime.sources import PATH, paths
from spark_impl.runtime.storage import Address, InputProblem, Location, locate, reading

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_ACCEPTED = {
    "bigint": _INTEGERS,
    "double": ("tinyint", "smallint", "int", "float", "double"),
    "string": ("string",),
    "boolean": ("boolean",),
}
"""Accepted types of an input column, by the type that the column gets; all values fit."""
_KINDS = {kind: from_arrow_type(each).simpleString() for kind, each in TYPES.items()}
"""Types that columns get, by kind; times are microseconds."""
_TIMES = ("event_time_us", "time")
"""The column and the kind that may also be a timestamp."""
_TIMESTAMP = "timestamp"
OPTIONAL = {"key": "", "value": 0.0}
"""Columns that an input may lack if no query uses them, and what tuples then have."""


def from_history(
    spark: SparkSession,
    history: Address,
    column: str = "stream",
    streams: tuple[str, str] = (R, S),
    *,
    r_columns: Mapping[str, str] | None = None,
    s_columns: Mapping[str, str] | None = None,
) -> tuple[DataFrame, DataFrame]:
    """Return both inputs of :meth:`ChainJoin.stream` from one history, which numbers all arrivals.

    The history's column named ``column`` says which stream a row belongs to; its values for R and S
    are ``streams``. A row of another stream stops the query. ``r_columns`` and ``s_columns`` are
    those of :class:`ChainJoin`; one of several values that were landed is found under its own name.
    With columns, inputs have no column ``value`` if the history has none.
    """
    more = {"r_columns": {**(r_columns or {})}, "s_columns": {**(s_columns or {})}}
    for setting, columns in more.items():
        check_columns(setting, tuple(columns.items()))
    folder = locate(history)
    has_value = not any(more.values()) or _has_value(folder)

    def read(
        batches: Iterable[pa.RecordBatch], stream: str, schema: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        for address in (each for batch in batches for each in batch.column(PATH).to_pylist()):
            rows = read_file(address, schema, column, streams)
            yield from rows.filter(pc.equal(rows[column], stream)).to_batches()

    no_requests = folder / ".requests"  # a chain takes no requests, so this folder stays empty
    # One source for both: two would not always see the same files.
    addresses = paths(spark, folder, no_requests)
    found = []
    for stream, columns in zip(streams, more.values(), strict=True):
        values = [VALUE] if has_value else []
        schema = history_schema(pa.field(column, pa.string()), values=values)
        own = [(name, TYPES[kind]) for name, kind in columns.items() if name not in schema.names]
        schema = pa.schema([*schema, *own])
        rows = addresses.mapInArrow(
            partial(read, stream=stream, schema=schema), from_arrow_schema(schema)
        )
        found.append(mark_rows(rows, folder))
    r, s = found
    return r, s


def _has_value(folder: Location) -> bool:
    """Return whether the files of a history have a single value; also if there is none yet."""
    files = files_of(folder)
    return not files or VALUE in read_footer(files[-1]).schema.names


def read_file(
    address: Address, schema: pa.Schema, column: str, streams: tuple[str, str]
) -> pa.Table:
    """Return the rows of a file of a history.

    Raise :class:`InputProblem` if one is of another stream, if the file lacks a column, or if
    values of a column would change in the type that ``schema`` gives it.
    """
    piece = open_piece(locate(address))
    has = piece.file.schema_arrow.names
    sources = {
        name: f"{VALUE}_{name}" if f"{VALUE}_{name}" in has and name not in has else name
        for name in schema.names
    }
    for name, source in sources.items():
        if source not in has:
            msg = f"{address} has no column {name!r}; its columns are {', '.join(has)}"
            raise InputProblem(msg)
    with reading(address):
        read = piece.file.read_row_groups([*piece.groups], [*sources.values()])
        columns = {
            each.name: read[sources[each.name]].cast(each.type)
            for each in schema
            if each.name in HISTORY or each.name == column
        }
    for each in schema:
        if each.name not in columns:
            columns[each.name] = _cast(address, each, read[sources[each.name]])
    rows = pa.table(columns).select(schema.names)
    others = [each for each in rows[column].unique().to_pylist() if each not in streams]
    if others:
        msg = f"{address} has the {column} {others[0]!r}; it can be {' or '.join(streams)}"
        raise InputProblem(msg)
    return rows


def _cast(address: Address, field: pa.Field, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column in the type of a field, with the same values."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    given = column.type
    if field.type == pa.int64() and pa.types.is_timestamp(given):
        families = [pa.types.is_timestamp]
    else:
        families = [each for each in _FAMILIES if each(field.type)]
    if pa.types.is_null(given) or any(family(given) for family in families):
        with suppress(pa.ArrowInvalid):
            whole = column.cast(pa.timestamp("us")) if pa.types.is_timestamp(given) else column
            return whole.cast(field.type)
    msg = f"the column {field.name!r} of {address} holds {given}; it must hold {field.type}"
    raise InputProblem(msg)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_numeric(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


_FAMILIES = (_is_text, _is_numeric, pa.types.is_boolean)


def union_inputs(
    inputs: Mapping[str, DataFrame],
    order: str,
    columns: Mapping[str, Columns],
    used: Collection[tuple[str, str]],
) -> DataFrame:
    """Return both inputs in one table with the column ``stream``; ``order`` becomes ``seq``.

    ``columns`` are those of each stream besides the built-in ones, ``used`` the streams and columns
    that queries use. Raise :class:`InputProblem` if a column is missing or has a type that is not
    accepted.
    """
    parts, lacking = [], absent(inputs)
    for stream, rows in inputs.items():
        own = {}
        for name in COLUMNS:
            is_filled = (stream, name) in lacking and (stream, name) not in used
            source = order if name == "seq" else name
            own[name] = F.lit(OPTIONAL[name]) if is_filled else _column(stream, rows, source)
        for each, declared in columns.items():
            for name, kind in declared:
                nothing = F.lit(None).cast(_KINDS[kind])
                given = _column(stream, rows, name, kind) if each == stream else nothing
                own[name_of_column(each, name)] = given
        named = [column.alias(name) for name, column in own.items()]
        parts.append(rows.select(F.lit(stream).alias("stream"), *named))
    return parts[0].unionByName(parts[1])


def types_of(columns: Mapping[str, Columns]) -> dict[str, str]:
    """Return the columns that :func:`union_inputs` adds to the built-in ones, and their types."""
    return {
        name_of_column(stream, name): _KINDS[kind]
        for stream, declared in columns.items()
        for name, kind in declared
    }


def absent(inputs: Mapping[str, DataFrame]) -> frozenset[tuple[str, str]]:
    """Return the streams and columns that inputs lack, of those that they may lack."""
    return frozenset(
        (stream, name)
        for stream, rows in inputs.items()
        for name in OPTIONAL
        if name not in rows.columns
    )


def _column(stream: str, rows: DataFrame, name: str, kind: str | None = None) -> Column:
    kinds = {each.name: each.dataType.simpleString() for each in rows.schema}
    if require_accepted(stream, kinds, name, kind) == _TIMESTAMP:
        return F.unix_micros(name)
    return F.col(name).cast(COLUMNS[name] if kind is None else _KINDS[kind])


def require_accepted(
    stream: str, kinds: Mapping[str, str], name: str, kind: str | None = None
) -> str:
    """Return the type of a column of an input, given the types of all.

    ``kind`` is that of a column that is not built in. Raise :class:`InputProblem` if the column is
    missing or has a type that is not accepted.
    """
    if name not in kinds:
        msg = f"the input {stream} has no column {name!r}; it has {[*kinds]}"
        raise InputProblem(msg)
    accepted = _ACCEPTED[COLUMNS[name] if kind is None else _KINDS[kind]]
    if (kind or name) in _TIMES:
        accepted += (_TIMESTAMP,)
    if kinds[name] not in accepted:
        wanted = ", ".join(accepted)
        msg = f"the column {name!r} of the input {stream} is {kinds[name]}; it can be {wanted}"
        raise InputProblem(msg)
    return kinds[name]
