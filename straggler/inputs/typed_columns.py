"""Columns of a user's file by the kind of their values, for the conditions of a join.

Rules of this file:

1. A column of a Parquet file has the kind of its type. A column of a CSV file has the first of the
   kinds boolean, integer, number and time that all its cells have; else it is text.
2. An empty cell is missing. In a CSV file so is one of :data:`NOTHING`, unless the column is text.
3. A column whose name is no identifier is named with ``_`` for each other character: ``PM2.5`` as
   ``PM2_5``, ``2nd`` as ``_2nd``.
"""

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from model.vocabulary.join_predicates import BOOLEAN, INTEGER, LARGEST, NUMBER, TEXT, TIME
from model.vocabulary.workload import ISO
from spark_impl.runtime import cells
from spark_impl.runtime.cell_arrays import (
    MISSING,
    Cells,
    Reasons,
    filled,
    is_text,
    matches,
    plain,
    stripped,
)
from spark_impl.runtime.cell_times import read_times
from straggler.errors import UsageError
from straggler.inputs.frames import Frame

NOTHING = r"^(?i)(na|n/a|null|none)?$"
"""Texts that other programs write into a CSV file for a missing value."""
_BOOLEAN = r"^(?i)(true|false)$"
_WHOLE = r"^[+-]?(0|[1-9]\d*)$"
_CODE = r"^[+-]?0\d"
"""Digits with a zero before them are a code, such as a postcode."""
_NO_INTEGER = "is not between -2^63 and 2^63"


class TypedColumns(Mapping[str, str]):
    """The kind of each column of a file, read when it is asked for."""

    def __init__(self, frame: Frame) -> None:
        self.file = frame.file
        """Name of the file in messages."""
        self._frame = frame
        self._names: dict[str, list[str]] = {}
        for name in frame.names:
            self._names.setdefault(_identifier(name), []).append(name)
        self._columns: dict[str, pa.Array] = {}
        self._kinds: dict[str, str] = {}

    def __getitem__(self, name: str) -> str:
        if name not in self._kinds:
            self._kinds[name] = self._kind(name)
        return self._kinds[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    @property
    def known(self) -> Mapping[str, str]:
        """The kinds that were asked for so far."""
        return self._kinds

    def read(self, name: str, kind: str) -> Cells:
        """Return the values of a column, and what is wrong with those that cannot be read.

        ``kind`` is that of the column, or one that integers may be read as: number or text.
        """
        column = self._column(name)
        # What is read as text for the other side's sake keeps its gaps.
        is_text_itself = kind == TEXT and self[name] == TEXT
        return _READERS[kind](column if is_text_itself else self._without_nothing(column))

    def column_name(self, name: str) -> str:
        """Return the name of a column in its file."""
        return self._names[name][0]

    def obstacle(self, name: str) -> str:
        """Return which cell made a column of a CSV file text, if most others are numbers or times.

        Empty if there is none.
        """
        if self._kinds.get(name) != TEXT or self._frame.unit == "row":
            return ""
        texts = self._without_nothing(self._column(name))
        for read in (cells.read_numbers, _read_times):
            reasons = read(texts).reason
            bad = np.flatnonzero(filled(pc.not_equal(reasons, MISSING), False))
            if 0 < 2 * len(bad) < len(texts) - texts.null_count:
                line, text = int(self._frame.numbers[bad[0]]), texts[bad[0]].as_py()
                reason = reasons[bad[0]].as_py()
                where = f"line {line:,} of {self.file} has {text!r}, which {reason}"
                return f"{name} is text because {where}"
        return ""

    def _kind(self, name: str) -> str:
        column, kind = plain(self._column(name))
        if pa.types.is_boolean(kind):
            return BOOLEAN
        if pa.types.is_integer(kind):
            return INTEGER
        if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
            return NUMBER
        if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
            return TIME
        if not is_text(kind):
            raise UsageError(
                f"column {self.column_name(name)!r} of {self.file} holds {kind},"
                " which no condition compares"
            )
        return TEXT if self._frame.unit == "row" else _kind_of(self._without_nothing(column))

    def _column(self, name: str) -> pa.Array:
        if name not in self._columns:
            names = self._names[name]
            if len(names) > 1 and names[0] != names[1]:
                raise UsageError(
                    f"{self.file} has two columns for the name {name!r}:"
                    f" {' and '.join(map(repr, names[:2]))}"
                )
            self._columns[name] = self._frame.column(names[0])
        return self._columns[name]

    def _without_nothing(self, column: pa.Array) -> pa.Array:
        if self._frame.unit == "row" or not is_text(column.type):
            return column
        nothing = matches(stripped(column), NOTHING)
        return pc.if_else(pa.array(nothing), None, column) if nothing.any() else column


def _kind_of(column: pa.Array) -> str:
    """Return the kind that all cells of a column of texts have."""
    texts = stripped(column.drop_null())
    if len(texts) and matches(texts, _BOOLEAN).all():
        return BOOLEAN
    if matches(texts, _WHOLE).all() and _all_read(_read_integers(texts)):
        return INTEGER
    if not matches(texts, _CODE).any() and _all_read(cells.read_numbers(texts)):
        return NUMBER
    return TIME if _all_read(_read_times(texts)) else TEXT


def _all_read(found: Cells) -> bool:
    return bool(len(found.reason) == found.reason.null_count)


def _identifier(name: str) -> str:
    # \w takes some characters, such as a small 3, that no identifier has.
    found = "".join(each if f"_{each}".isidentifier() else "_" for each in name)
    return f"_{found}" if found[:1].isdigit() else found


# ---------------------------------------------------------------------------------------- readers


def _read_booleans(column: pa.Array) -> Cells:
    column, kind = plain(column)
    if is_text(kind):
        column = pc.equal(pc.utf8_lower(stripped(column)), "true")
    return Cells(column, Reasons(column).reason())


def _read_integers(column: pa.Array) -> Cells:
    column, kind = plain(column)
    reasons = Reasons(column)
    if is_text(kind):
        whole = np.array([int(text or 0) for text in stripped(column).to_pylist()], object)
    else:
        whole = filled(column, 0)
    reasons.note(np.asarray((whole > LARGEST) | (whole < -LARGEST), np.bool_), _NO_INTEGER)
    return reasons.cells(np.where(reasons.bad, 0, whole).astype(np.int64))


def _read_times(column: pa.Array) -> Cells:
    return read_times(column, ISO)


_READERS: Mapping[str, Callable[[pa.Array], Cells]] = {
    BOOLEAN: _read_booleans,
    INTEGER: _read_integers,
    NUMBER: cells.read_numbers,
    TIME: _read_times,
    TEXT: cells.read_keys,
}
