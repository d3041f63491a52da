"""Which files hold what stretch of time: the footers of Parquet files, read once each."""

from collections.abc import Iterable
from typing import NamedTuple

import pyarrow.parquet as pq

from spark_impl.streams import reading


class Extent(NamedTuple):
    """What the footer of a file says."""

    rows: int
    least: int
    most: int
    nulls: bool
    """Whether a column may hold NULLs."""


class Extents:
    """Extents of files by one column; a file never changes."""

    def __init__(self, column: str) -> None:
        self._column = column
        self._known: dict[str, Extent] = {}

    def overlapping(self, paths: Iterable[str], start: int, end: int) -> dict[str, Extent]:
        """The files that may hold values with ``start <= value < end``."""
        found = {}
        for path in paths:
            if path not in self._known:
                self._known[path] = _extent(path, self._column)
            extent = self._known[path]
            if extent.least < end and extent.most >= start:
                found[path] = extent
        return found

    def forget(self, paths: Iterable[str]) -> None:
        """Files that were replaced."""
        for path in paths:
            self._known.pop(path, None)


def _extent(path: str, column: str) -> Extent:
    with reading(path):
        footer = pq.read_metadata(path)
    groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
    statistics = [group.column(i).statistics for group in groups for i in range(group.num_columns)]
    nulls = any(each is None or not each.has_null_count or each.null_count for each in statistics)
    place = footer.schema.names.index(column)
    values = [group.column(place).statistics for group in groups]
    if any(each is None or not each.has_min_max for each in values):
        return Extent(footer.num_rows, -(1 << 63), (1 << 63) - 1, nulls)
    least = min((each.min for each in values), default=0)
    most = max((each.max for each in values), default=-1)
    return Extent(footer.num_rows, least, most, nulls)
