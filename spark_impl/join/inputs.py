"""Inputs of a join: two DataFrames, or one history of both streams.

A column of an input is taken as it is, or in a wider type that holds all its values; nothing is
rounded, cut off or guessed.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)
from pyspark.sql.pandas.types import from_arrow_schema

from model.vocabulary.join import R, S
from spark_impl.join.task import COLUMNS
from spark_impl.runtime.histories import history_schema, open_piece
from spark_impl.runtime.provenance import mark_rows
from spark_impl.runtime.sources import PATH, paths
from spark_impl.runtime.storage import Address, InputProblem, locate, reading

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_ACCEPTED = {
    "bigint": _INTEGERS,
    "double": ("tinyint", "smallint", "int", "float", "double"),
    "string": ("string",),
}
"""Accepted types of an input column, by the type that the column gets; all values fit."""
_TIME = "event_time_us"
_TIMESTAMP = "timestamp"


def from_history(
    spark: SparkSession,
    history: Address,
    column: str = "stream",
    streams: tuple[str, str] = (R, S),
    files: int = 1,
) -> tuple[DataFrame, DataFrame]:
    """Return both inputs of :meth:`ChainJoin.stream` from one history, which numbers all arrivals.

    The history's column named ``column`` says which stream a row belongs to; its values for R and S
    are ``streams``. A micro-batch has at most ``files`` files of the history. A row of another
    stream stops the query.
    """
    folder = locate(history)
    schema = history_schema(pa.field(column, pa.string()))

    def read(batches: Iterable[pa.RecordBatch], stream: str) -> Iterator[pa.RecordBatch]:
        for address in (each for batch in batches for each in batch.column(PATH).to_pylist()):
            rows = read_file(address, schema, column, streams)
            yield from rows.filter(pc.equal(rows[column], stream)).to_batches()

    no_requests = folder / ".requests"  # a chain takes no requests, so this folder stays empty
    # One source for both: two would not always see the same files.
    addresses = paths(spark, folder, no_requests, files)
    kinds = from_arrow_schema(schema)
    r, s = (
        mark_rows(addresses.mapInArrow(partial(read, stream=each), kinds), folder)
        for each in streams
    )
    return r, s


def read_file(
    address: Address, schema: pa.Schema, column: str, streams: tuple[str, str]
) -> pa.Table:
    """Return the rows of a file of a history.

    Raise :class:`InputProblem` if one is of another stream.
    """
    piece = open_piece(locate(address))
    with reading(address):
        rows = piece.file.read_row_groups([*piece.groups], schema.names).cast(schema)
    others = [each for each in rows[column].unique().to_pylist() if each not in streams]
    if others:
        msg = f"{address} has the {column} {others[0]!r}; it can be {' or '.join(streams)}"
        raise InputProblem(msg)
    return rows


def union_inputs(r: DataFrame, s: DataFrame, order: str) -> DataFrame:
    """Return both inputs in one table with the column ``stream``; ``order`` becomes ``seq``.

    Raise :class:`InputProblem` if a column is missing or has a type that is not accepted.
    """
    parts = []
    for stream, rows in ((R, r), (S, s)):
        sources = {**{name: name for name in COLUMNS}, "seq": order}
        columns = [_column(stream, rows, source).alias(to) for to, source in sources.items()]
        parts.append(rows.select(F.lit(stream).alias("stream"), *columns))
    return parts[0].unionByName(parts[1])


def _column(stream: str, rows: DataFrame, name: str) -> Column:
    kinds = {each.name: each.dataType.simpleString() for each in rows.schema}
    if require_accepted(stream, kinds, name) == _TIMESTAMP:
        return F.unix_micros(name)
    return F.col(name).cast(COLUMNS[name])


def require_accepted(stream: str, kinds: Mapping[str, str], name: str) -> str:
    """Return the type of a column of an input, given the types of all.

    Raise :class:`InputProblem` if the column is missing or has a type that is not accepted.
    """
    if name not in kinds:
        msg = f"the input {stream} has no column {name!r}; it has {[*kinds]}"
        raise InputProblem(msg)
    accepted = (*_ACCEPTED[COLUMNS[name]], *([_TIMESTAMP] if name == _TIME else []))
    if kinds[name] not in accepted:
        wanted = ", ".join(accepted)
        msg = f"the column {name!r} of the input {stream} is {kinds[name]}; it can be {wanted}"
        raise InputProblem(msg)
    return kinds[name]
