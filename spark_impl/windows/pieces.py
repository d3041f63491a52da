"""Rows of a history as arrays, cut once and kept for the corrections that follow.

Rules of this file:

* A piece holds what counts of a row group, or of a million of its rows: rows with a NULL and rows
  that the stream rejects are left out.
* Rows lie by *cell*: one place, and one stretch of time between two windows that have their
  correlation recorded. Within a cell they keep their order.
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from model.vocabulary import task_of
from spark_impl.runtime.arrays import Floats, Ints
from spark_impl.runtime.histories import reading
from spark_impl.windows.arrivals import reject
from spark_impl.windows.asked import Asked
from spark_impl.windows.blocks import COLUMNS, combined, typed
from spark_impl.windows.extents import Extent
from spark_impl.windows.panes import by_window, stable_order
from spark_impl.windows.records import Rows

ROWS_KEPT = 2_000_000
"""Of which a driver keeps at most so many: 32 bytes each, 64 MB."""
_ROWS_AT_ONCE = 1_000_000


class Piece(NamedTuple):
    """Some rows of one file."""

    places: list[tuple[Any, ...]]
    """Values of the grouping columns, task and key."""
    place: Ints
    """For every cell a position in ``places``."""
    span: Ints
    """For every cell its stretch of time, a multiple of :func:`span_us`."""
    size: Ints
    """For every cell its rows."""
    seq: Ints
    source_id: Ints
    event_time_us: Ints
    value: Floats
    last_seq: int


class Cutting(NamedTuple):
    """What decides how rows become pieces."""

    asked: Asked
    groups: tuple[pa.Field, ...]

    def pieces(
        self, path: str, group: Extent, where: pc.Expression | None = None
    ) -> Iterator[Piece]:
        """The pieces of a row group; with ``where`` only of the rows under it."""
        names = ["seq", "source_id", "key", "event_time_us", "value"]
        if self.asked.max_future_us is not None:
            names.append("arrival_us")
        if group.nulls:
            names = list(COLUMNS)  # a NULL anywhere takes the row out
        columns = [*(field.name for field in self.groups), *names]
        with reading(path):
            file = pq.ParquetFile(path, read_dictionary=["key"])
        for batch in file.iter_batches(_ROWS_AT_ONCE, [group.number], columns):
            rows = pa.Table.from_batches([batch])
            if where is not None:
                rows = rows.filter(where)
            yield self._piece(typed(rows, self.groups))

    def _piece(self, table: pa.Table) -> Piece:
        asked = self.asked
        if any(column.null_count for column in table.columns):
            table = table.drop_null()
        place, places = self._places(table)
        column = {
            name: table.column(name).to_numpy() for name in table.column_names if name != "key"
        }
        zeros = np.zeros(len(place), np.int64)
        rows = Rows(
            seq=column["seq"],
            source_id=column["source_id"],
            key=place,
            event_time_us=column["event_time_us"],
            value=column["value"],
            arrival_us=column.get("arrival_us", zeros),
            flaw=zeros,
        )
        bad = reject(asked, rows) > 0
        if bad.any():
            rows = rows.take(~bad)
        span = rows.event_time_us // span_us(asked)
        span, place, cell = by_window(span, rows.key, max(len(places), 1))
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
            int(rows.seq.max(initial=-1)),
        )

    def _places(self, rows: pa.Table) -> tuple[Ints, list[tuple[Any, ...]]]:
        """For every row the number of its place, and the places."""
        asked = self.asked
        codes, values = combined(rows, [*(field.name for field in self.groups), "key"])
        number: dict[tuple[Any, ...], int] = {}
        numbers = [
            number.setdefault(
                (*groups, task_of(key, asked.tasks), key if asked.keyed else ""), len(number)
            )
            for *groups, key in values
        ]
        return np.array(numbers, np.int64)[codes], list(number)


class Pieces:
    """Pieces of row groups; those that were asked for last are kept."""

    def __init__(self, cutting: Cutting) -> None:
        self._cutting = cutting
        self._kept: OrderedDict[tuple[str, int], list[Piece]] = OrderedDict()

    def of(self, groups: Sequence[tuple[str, Extent]]) -> list[Piece]:
        """The pieces of some row groups, in their order."""
        found = []
        for path, group in groups:
            here = path, group.number
            if here not in self._kept:
                self._kept[here] = list(self._cutting.pieces(path, group))
            self._kept.move_to_end(here)
            found.extend(self._kept[here])
        rows = sum(len(piece.seq) for pieces in self._kept.values() for piece in pieces)
        while rows > ROWS_KEPT:
            _, oldest = self._kept.popitem(last=False)
            rows -= sum(len(piece.seq) for piece in oldest)
        return found


def span_us(asked: Asked) -> int:
    """From the start of one recorded window to that of the next, microseconds."""
    return -(-asked.size_us // asked.slide_us) * asked.slide_us
