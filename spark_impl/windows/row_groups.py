"""Row groups of a history's files: their ranges of time, and their rows as arrays.

Rules of this file:

* A file never changes, so its footer is read once.
* A piece holds the valid rows of a row group, or of a million of its rows: rows with a NULL and
  rows that the stream rejects are left out.
* The rows of a piece lie by *cell*: one place, and one span of time, about as long as a window.
  Within a cell they keep their order.
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from model.vocabulary import task_of
from spark_impl.runtime.arrays import Floats, Ints, Values
from spark_impl.runtime.histories import COLUMNS, bounds_of, open_piece, read_footer
from spark_impl.runtime.storage import Location
from spark_impl.windows.arrival_files import (
    number_combinations,
    read_tables,
    to_rows,
)
from spark_impl.windows.arrivals import reject
from spark_impl.windows.panes import group_by_window, stable_order
from spark_impl.windows.room import WindowSettings

ROWS_KEPT = 2_000_000
"""Most rows that the driver keeps as pieces: 32 bytes each, 64 MB."""

_ANY = (-(1 << 63), (1 << 63) - 1)
"""Bounds of a column without statistics."""

TimeRange: TypeAlias = tuple[int, int]
"""Start and end of a range of time (us), half open."""
Place: TypeAlias = Values
"""Values of the grouping columns, task and key."""


class RowGroup(NamedTuple):
    """A row group of a file, as the file's footer describes it."""

    file: Location
    place: int
    """Position in the file."""
    rows: int
    least_us: int
    """Smallest event time."""
    most_us: int
    first_seq: int
    """Smallest arrival number."""


class Footers:
    """The row groups of files, which are added in the order of arrival; each is read once."""

    def __init__(self) -> None:
        self._groups: list[RowGroup] = []
        self._bounds = np.empty((0, 3), np.int64)

    def add(self, file: Location) -> None:
        """Read the footer of the next file. Raise :class:`InputProblem` if it cannot be read."""
        found = read_row_groups(file)
        bounds = np.array([each[3:6] for each in found], np.int64).reshape(-1, 3)
        self._groups += found
        self._bounds = np.concatenate([self._bounds, bounds])

    def overlapping(self, times: Sequence[TimeRange], last: int) -> list[RowGroup]:
        """Return the row groups that may hold arrivals up to ``last`` in some ranges of time."""
        least, most, first = self._bounds.T
        inside = np.zeros(len(least), np.bool_)
        for start, end in times:
            inside |= (least < end) & (most >= start)
        return [self._groups[at] for at in np.flatnonzero(inside & (first <= last)).tolist()]

    def behind(self, seq: int) -> list[RowGroup]:
        """Return the row groups of the file behind arrival ``seq``, none if it is not there."""
        coming = np.flatnonzero(self._bounds[:, 2] > seq)
        files = [self._groups[at] for at in coming.tolist()]
        return [each for each in files if each.file == files[0].file]


def read_row_groups(file: Location) -> list[RowGroup]:
    """Return the row groups of a file."""
    footer, found = read_footer(file), []
    for place in range(footer.num_row_groups):
        bounds = bounds_of(footer, ("event_time_us", "seq"), place)
        times, seqs = (bounds.get(name, _ANY) for name in ("event_time_us", "seq"))
        rows = footer.row_group(place).num_rows
        found.append(RowGroup(file, place, rows, *times, seqs[0]))
    return found


class Piece(NamedTuple):
    """Valid rows of a part of one row group, by cell."""

    places: list[Place]
    place: Ints
    """Position in ``places`` of every cell."""
    span: Ints
    """Span of time of every cell, a multiple of :func:`span_us`."""
    size: Ints
    """Number of rows of every cell."""
    seq: Ints
    source_id: Ints
    event_time_us: Ints
    value: Floats


class PieceReader(NamedTuple):
    """Reads row groups of a history as pieces."""

    settings: WindowSettings
    groups: tuple[pa.Field, ...]

    def read(self, group: RowGroup, where: pc.Expression | None = None) -> Iterator[Piece]:
        """Yield the pieces of a row group, with ``where`` only of the rows that pass it."""
        piece = open_piece(group.file, range(group.place, group.place + 1))
        for rows in read_tables(piece, self.groups, value=self.settings.value):
            yield self._piece(rows if where is None else rows.filter(where))

    def _piece(self, table: pa.Table) -> Piece:
        settings = self.settings
        if any(column.null_count for column in table.columns):
            table = table.drop_null()
        place, places = self._places(table)
        names = [name for name in table.column_names if name in COLUMNS and name != "key"]
        rows = to_rows(place, {name: table.column(name).to_numpy() for name in names})
        bad = reject(rows) > 0
        if bad.any():
            rows = rows.take(~bad)
        span = rows.event_time_us // span_us(settings)
        span, place, cell = group_by_window(span, rows.key, len(places))
        order = stable_order(cell, len(span))
        return Piece(
            places,
            place,
            span,
            np.bincount(cell, minlength=len(span)),
            rows.seq[order],
            rows.source_id[order],
            rows.event_time_us[order],
            rows.value[order],
        )

    def _places(self, rows: pa.Table) -> tuple[Ints, list[Place]]:
        """Return the number of every row's place, and the places."""
        settings = self.settings
        names = [*(field.name for field in self.groups), "key"]
        codes, values = number_combinations(rows, names)
        number: dict[Place, int] = {}
        numbers = [
            number.setdefault(
                (*groups, task_of(key, settings.tasks), key if settings.keyed else ""), len(number)
            )
            for *groups, key in values
        ]
        return np.array(numbers, np.int64)[codes], list(number)


class PieceCache:
    """The pieces of row groups; those requested last are kept."""

    def __init__(self, reader: PieceReader) -> None:
        self._reader = reader
        self._kept: OrderedDict[RowGroup, list[Piece]] = OrderedDict()

    def pieces(self, groups: Sequence[RowGroup]) -> list[Piece]:
        """Return the pieces of some row groups, in their order."""
        requested = []
        for group in groups:
            if group not in self._kept:
                self._kept[group] = list(self._reader.read(group))
            self._kept.move_to_end(group)
            requested.extend(self._kept[group])
        rows = sum(len(piece.seq) for pieces in self._kept.values() for piece in pieces)
        while rows > ROWS_KEPT:
            _, oldest = self._kept.popitem(last=False)
            rows -= sum(len(piece.seq) for piece in oldest)
        return requested


def span_us(settings: WindowSettings) -> int:
    """Return the length (us) of a span of time: a multiple of the slide, and at least a window."""
    return -(-settings.size_us // settings.slide_us) * settings.slide_us
