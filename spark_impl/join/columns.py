"""Columns that tuples have besides the built-in ones: their kinds, and their way to Arrow and back.

A missing value is NaN in a column of numbers, the smallest integer among integers and times, None
among texts, and -1 among booleans, which are 0 and 1. In Arrow it is null.
"""

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from model.vocabulary import JoinConfig
from model.vocabulary.join import R
from spark_impl.runtime.arrays import Bools, Column

Columns: TypeAlias = tuple[tuple[str, str], ...]
"""Names and kinds of the columns of a stream, besides the built-in ones."""
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


def columns_of(config: JoinConfig, stream: str) -> Columns:
    """Return the columns that a configuration declares for a stream."""
    found: Columns = getattr(config, "r_columns" if stream == R else "s_columns", ())
    return found


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


def find_missing(column: Column) -> Bools:
    """Return which values of a column are missing."""
    if column.dtype == np.float64:
        return np.isnan(column)
    if column.dtype == np.int64:
        return np.asarray(column == NO_INTEGER)
    if column.dtype == np.int8:
        return np.asarray(column == NO_TRUTH)
    return np.equal(column, None).astype(np.bool_)
