"""Columns that tuples have besides the built-in ones: kinds, names, and the way to Arrow and back.

A missing value is NaN in a column of numbers, the smallest integer among integers and times, None
among texts, and -1 among booleans, which are 0 and 1. In Arrow it is null.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from model.vocabulary import Event
from model.vocabulary.join_predicates import Columns
from spark_impl.runtime.arrays import Bools, Column
from spark_impl.runtime.storage import InputProblem

NO_INTEGER = -(1 << 63)
"""In place of a missing integer or time."""
NO_TRUTH = -1
"""In place of a missing boolean."""
TYPES: Mapping[str, pa.DataType] = {
    "number": pa.float64(),
    "integer": pa.int64(),
    "text": pa.string(),
    "time": pa.int64(),
    "boolean": pa.bool_(),
}
"""Type in Arrow by kind; times are microseconds."""


def name_of_column(stream: str, name: str) -> str:
    """Return the name of a column of a stream in tables with other columns; none of these has it.

    Both streams may have a column of this name, perhaps of another kind.
    """
    return f"{stream.lower()}__{name}"


def names_of(columns: Columns, stream: str) -> dict[str, str]:
    """Return the names of the columns of a stream, by their names in tables with other columns."""
    return {name_of_column(stream, name): name for name, _ in columns}


def from_arrow(column: pa.Array | pa.ChunkedArray) -> Column:
    """Return a column of one of :data:`TYPES` as an array."""
    if column.type == pa.int64():
        column = pc.fill_null(column, NO_INTEGER) if column.null_count else column
    elif column.type == pa.bool_():
        column = pc.fill_null(column.cast(pa.int8()), NO_TRUTH)
    found: Column = column.to_numpy(zero_copy_only=False)
    return found


def to_arrow_column(column: Column) -> pa.Array:
    """Return an array of a column as one of Arrow; :func:`from_arrow` reads it back."""
    missing = find_missing(column)
    if column.dtype == np.int8:
        return pa.array(column > 0, mask=missing)
    kind = pa.string() if column.dtype == object else None
    return pa.array(np.ascontiguousarray(column), kind, mask=missing)


def with_more(rows: pa.Table, events: Sequence[Event], stream: str, columns: Columns) -> pa.Table:
    """Return a table of events with the columns of a stream; other streams have nothing there."""
    for at, (name, kind) in enumerate(columns):
        values = [each.more[at] if each.stream == stream else None for each in events]
        rows = rows.append_column(name_of_column(stream, name), pa.array(values, TYPES[kind]))
    return rows


def check_integers(name: str, column: pa.ChunkedArray) -> None:
    """Raise :class:`InputProblem` if a column has the integer that stands for a missing one."""
    if column.type == pa.int64() and pc.min(column).as_py() == NO_INTEGER:
        msg = f"the column {name!r} has the value {NO_INTEGER}; the least is {NO_INTEGER + 1}"
        raise InputProblem(msg)


def find_missing(column: Column) -> Bools:
    """Return which values of a column are missing."""
    if column.dtype == np.float64:
        return np.asarray(np.isnan(column), np.bool_)
    if column.dtype == np.int64:
        return np.asarray(column == NO_INTEGER, np.bool_)
    if column.dtype == np.int8:
        return np.asarray(column == NO_TRUTH, np.bool_)
    return np.asarray(np.equal(column, np.array(None)), np.bool_)
