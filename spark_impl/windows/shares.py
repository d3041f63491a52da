"""What a task takes of a file: arrivals without grouping columns do not travel.

The state operator is given the names of files. Each of its processes reads a file itself and takes
what belongs to its tasks; nothing has to be packed, shuffled and handed over to Python. A file is
read once for every partition of the state, so this is for few tasks.

Rules of this file:

* The share of a task is what it would be given as blocks (:mod:`spark_impl.windows.blocks`): the
  same arrivals, in the same order.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from model.vocabulary import task_of
from spark_impl.runtime.arrays import Ints
from spark_impl.runtime.histories import on_disk
from spark_impl.windows.asked import Asked
from spark_impl.windows.blocks import (
    COLUMNS,
    ROWS_AT_ONCE,
    as_rows,
    coded,
    opened,
    parts_of,
    together,
    without_nulls,
)
from spark_impl.windows.extents import may_hold_nulls
from spark_impl.windows.panes import compact
from spark_impl.windows.records import Rows

PATH = "path"
"""Name of the column in which the name of a file travels."""


class Given(NamedTuple):
    """What a micro-batch brings to a task."""

    keys: tuple[str, ...]
    rows: Rows
    """Sorted by arrival number; ``Rows.key`` indexes ``keys``."""
    flush: bool


class _Part(NamedTuple):
    """Some rows of a file, of all tasks."""

    rows: Rows
    keys: list[str]
    task: Ints
    """For every key its task."""


class Shares:
    """The files of a micro-batch, for the tasks of one process."""

    def __init__(self, asked: Asked, control: Path) -> None:
        self._asked = asked
        self._control = control
        self._kept: dict[str, list[_Part]] = {}

    def of(self, task: int, paths: Iterable[str]) -> Given:
        """What some files and requests to flush bring to a task."""
        shares: list[tuple[list[str], Rows]] = []
        flush = False
        for path in map(on_disk, paths):
            if Path(path).parent == self._control:
                flush |= task in pq.read_table(path).column("task").to_pylist()
            else:
                shares.extend(_share(part, task) for part in self._parts(path))
        return Given(*together(shares), flush)

    def _parts(self, path: str) -> Iterable[_Part]:
        """A file in parts; one that is a single part is kept for the next task."""
        if path in self._kept:
            return self._kept[path]
        file = opened(path)
        parts = self._read(file)
        if file.metadata.num_rows > ROWS_AT_ONCE:
            return parts
        self._kept[path] = list(parts)
        return self._kept[path]

    def _read(self, file: pq.ParquetFile) -> Iterator[_Part]:
        groups = (file.metadata.row_group(i) for i in range(file.num_row_groups))
        names = list(COLUMNS)
        if self._asked.max_future_us is None and not any(map(may_hold_nulls, groups)):
            names.remove("arrival_us")
        return map(self._part, parts_of(file, (), names))

    def _part(self, table: pa.Table) -> _Part:
        codes, keys = coded(table.column("key"))
        # Rows without a key go to task 0.
        tasks = [0 if key is None else task_of(key, self._asked.tasks) for key in keys]
        columns = without_nulls(self._asked, table)
        rows = as_rows(codes, {name: column.to_numpy() for name, column in columns.items()})
        return _Part(rows, [key or "" for key in keys], np.array(tasks, np.int64))


def _share(part: _Part, task: int) -> tuple[list[str], Rows]:
    """The rows of one task, with the keys that occur among them."""
    mine = part.task == task
    rows = part.rows.take(np.flatnonzero(mine[part.rows.key]))
    used, codes = compact(rows.key)
    return [part.keys[code] for code in used.tolist()], rows._replace(key=codes)
