"""Columns of cells as arrays: what :mod:`spark_impl.runtime.cells` is made of."""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_impl.runtime.arrays import Bools, Floats, Ints

Column: TypeAlias = pa.Array
"""A column of Arrow's, or a chunked one."""
MISSING = "is missing"
_NO_TEXT = "is not text in UTF-8"


class Cells(NamedTuple):
    """Cells of one column, and what is wrong with those that cannot be read."""

    values: pa.Array
    """NULL where a cell cannot be read."""
    reason: pa.Array
    """The end of a sentence about a cell that cannot be read; NULL where it can."""
    texts: pa.Array | None = None
    """Identities only, if they are text: what the user wrote."""


class Reasons:
    """The first reason of each cell of a column."""

    def __init__(self, column: pa.Array) -> None:
        self.bad: Bools = ~is_valid(column)
        self._texts = [MISSING]
        self._which = self.bad.astype(np.int64)

    def note(self, cells: Bools, reason: str, *, again: bool = False) -> None:
        """Note a reason for cells that have none yet, or (``again``) a better one."""
        fresh = cells if again else cells & ~self.bad
        if fresh.any():
            self._texts.append(reason)
            self._which[fresh] = len(self._texts)
            self.bad = self.bad | fresh

    def reason(self) -> pa.Array:
        """Return the reasons, NULL for cells without one."""
        places = pa.array(self._which - 1, pa.int64(), mask=self._which == 0)
        return pa.array(self._texts, pa.string()).take(places)

    def cells(self, values: Ints | Floats) -> Cells:
        """Return values, NULL for cells with a reason."""
        return Cells(pa.array(values, mask=self.bad), self.reason())


def plain(column: Column) -> tuple[pa.Array, pa.DataType]:
    """Return a column as one array of its plain type; a column without a type is text."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):  # pyarrow keeps no chunk as one
            column = pa.concat_arrays(column.chunks)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_null(column.type):
        column = column.cast(pa.string())
    elif pa.types.is_string_view(column.type):  # few functions of Arrow take views
        column = column.cast(pa.large_string())
    elif pa.types.is_binary_view(column.type):
        column = column.cast(pa.large_binary())
    return column, column.type


def is_text(kind: pa.DataType) -> bool:
    """Return whether a column of this type holds text."""
    return str(kind) in ("string", "large_string", "string_view")


def is_binary(kind: pa.DataType) -> bool:
    """Return whether a column of this type holds bytes."""
    return str(kind).startswith(("binary", "large_binary", "fixed_size_binary"))


def filled(column: pa.Array, blank: float) -> Any:
    """Return a column as numpy's, of whatever type it has, with ``blank`` for NULL."""
    return np.asarray(pc.fill_null(column, blank).to_numpy(zero_copy_only=False))


def is_valid(column: pa.Array) -> Bools:
    """Return which cells are not NULL."""
    there: Bools = np.asarray(column.is_valid())
    return there


def shown(column: pa.Array) -> list[object]:
    """Return cells as Python has them; as a text those that it has no value for.

    Spark's times and dates leave the years 1 to 9999, for example where milliseconds were taken for
    seconds; those of Python do not.
    """
    try:
        return list(column.to_pylist())
    except (OverflowError, ValueError):
        if len(column) > 1:
            return [cell for at in range(len(column)) for cell in shown(column.slice(at, 1))]
    if pa.types.is_struct(column.type):
        parts = zip(column.type, column.flatten(), strict=True)
        return [{field.name: shown(part)[0] for field, part in parts}]
    return [column.to_string(skip_new_lines=True)[1:-1]]


def matches(texts: pa.Array, pattern: str) -> Bools:
    """Return which texts match a pattern of RE2; NULL does not."""
    found: Bools = filled(pc.match_substring_regex(texts, pattern), False)
    return found


def digits_of(texts: pa.Array, where: Bools) -> Ints:
    """Return texts of digits as integers, 0 elsewhere."""
    kept = pc.if_else(pa.array(where), texts, "0")
    numbers: Ints = filled(pc.if_else(pc.equal(kept, ""), "0", kept).cast(pa.int64()), 0)
    return numbers


def stripped(column: pa.Array) -> pa.Array:
    """Return numbers or texts as texts, without blanks around them."""
    reasons = Reasons(column)
    texts = utf8(column, reasons) if is_text(column.type) else column.cast(pa.string())
    return pc.utf8_trim(texts, " \t\r\n\f\v")


def utf8(column: pa.Array, reasons: Reasons) -> pa.Array:
    """Return text or bytes as text, NULL with a reason where it is not UTF-8."""
    raw = column.cast(pa.large_binary()) if is_text(column.type) else column
    try:
        return raw.cast(pa.large_binary()).cast(pa.large_string()).cast(pa.string())
    except pa.ArrowInvalid:
        decoded = [_decode(each) for each in raw.to_pylist()]
        reasons.note(np.array([each is None for each in decoded], np.bool_), _NO_TEXT)
        return pa.array(decoded, pa.string())


def _decode(data: bytes | None) -> str | None:
    try:
        return None if data is None else data.decode("utf-8")
    except UnicodeDecodeError:
        return None
