"""Which files hold what stretch of time: the footers of Parquet files, read once each."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

import pyarrow.parquet as pq

from spark_impl.runtime.histories import reading

Stretch: TypeAlias = tuple[int, int]
"""Start and end of a stretch of time, half open."""


class Extent(NamedTuple):
    """What the footer of a file says about one of its row groups."""

    number: int
    """Which row group it is."""
    rows: int
    least: int
    most: int
    nulls: bool
    """Whether a column may hold NULLs."""

    def overlaps(self, stretch: Stretch) -> bool:
        """Whether it may hold values of a stretch."""
        return self.least < stretch[1] and self.most >= stretch[0]


class Extents:
    """Extents of files by one column; a file never changes."""

    def __init__(self, column: str) -> None:
        self._column = column
        self._known: dict[str, list[Extent]] = {}

    def overlapping(
        self, paths: Iterable[str], stretches: Sequence[Stretch]
    ) -> dict[str, list[Extent]]:
        """The files that may hold values of the stretches, and their row groups that may."""
        found = {}
        for path in paths:
            inside = [each for each in self.of(path) if any(map(each.overlaps, stretches))]
            if inside:
                found[path] = inside
        return found

    def of(self, path: str) -> list[Extent]:
        """The row groups of a file."""
        if path not in self._known:
            self._known[path] = _extents(path, self._column)
        return self._known[path]

    def forget(self, paths: Iterable[str]) -> None:
        """Files that were replaced."""
        for path in paths:
            self._known.pop(path, None)


def _extents(path: str, column: str) -> list[Extent]:
    with reading(path):
        footer = pq.read_metadata(path)
    # by whole paths: a column of structs may have a leaf of the same name
    place = [footer.schema.column(i).path for i in range(len(footer.schema))].index(column)
    return [_extent(i, footer.row_group(i), place) for i in range(footer.num_row_groups)]


def _extent(number: int, group: pq.RowGroupMetaData, place: int) -> Extent:
    nulls, values = may_hold_nulls(group), group.column(place).statistics
    if values is None or not values.has_min_max:
        return Extent(number, group.num_rows, -(1 << 63), (1 << 63) - 1, nulls)
    return Extent(number, group.num_rows, values.min, values.max, nulls)


def may_hold_nulls(group: pq.RowGroupMetaData) -> bool:
    """Whether a column of a row group may hold NULLs."""
    columns = (group.column(i).statistics for i in range(group.num_columns))
    return any(each is None or not each.has_null_count or each.null_count for each in columns)
