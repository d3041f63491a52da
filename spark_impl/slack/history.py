"""Reads the part of a history that a correction needs."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from model.vocabulary import SlackConfig, task_of
from spark_impl.slack.blocks import COLUMNS, split
from spark_impl.slack.correction import Corrected, Due, Who, correct
from spark_impl.slack.store import Store, read_parquet

_TYPES = {"key": pa.string(), "value": pa.float64()}


class _Extent(NamedTuple):
    """What the footer of a file says."""

    rows: int
    oldest_us: int
    newest_us: int


class History:
    """The files of a history and what time they cover; footers are read once."""

    def __init__(self, config: SlackConfig, store: Store, source: Path) -> None:
        self._config = config
        self._store = store
        self._source = source
        self._extents: dict[str, _Extent] = {}

    def correct_all(self, tasks: Mapping[Who, Due]) -> dict[Who, Corrected]:
        """Correct some tasks, reading the history once for all of them."""
        spec = self._config.windows
        pending = [task.pending for task in tasks.values()]
        oldest = min(pc.min(table.column("start_us")).as_py() for table in pending)
        newest = max(
            pc.max(
                pc.add(
                    table.column("start_us"),
                    pc.multiply(pc.subtract(table.column("windows"), 1), spec.slide_us),
                )
            ).as_py()
            for table in pending
        )
        rows = self._read(oldest, newest + spec.size_us)
        parts = dict(split(rows, self._store.by))
        empty = rows.slice(0, 0)
        return {
            who: correct(self._config, task, parts.get(who, empty)) for who, task in tasks.items()
        }

    def _read(self, start_us: int, end_us: int) -> pa.Table:
        """Rows with ``start_us <= event time < end_us``, with their task."""
        schema = pa.schema(
            [
                *self._store.groups,
                *(pa.field(name, _TYPES.get(name, pa.int64())) for name in COLUMNS),
            ]
        )
        time = pc.field("event_time_us")
        rows = read_parquet(
            self._overlapping(start_us, end_us), schema, (time >= start_us) & (time < end_us)
        )
        keys = rows.column("key").combine_chunks().dictionary_encode()
        task = np.array(
            [task_of(key, self._config.tasks) for key in keys.dictionary.to_pylist()], np.int32
        )
        codes = pc.fill_null(keys.indices, 0).to_numpy(zero_copy_only=False)
        return rows.append_column("task", pa.array(task[codes] if len(task) else codes, pa.int32()))

    def _overlapping(self, start_us: int, end_us: int) -> list[str]:
        found = []
        for path in _data_files(self._source):
            if path not in self._extents:
                self._extents[path] = _extent(path)
            extent = self._extents[path]
            if extent.oldest_us < end_us and extent.newest_us >= start_us:
                found.append(path)
        return found


def _data_files(source: Path) -> Iterable[str]:
    """The files that Spark's file source would take, too."""
    return (str(path) for path in sorted(source.glob("[!._]*.parquet")))


def _extent(path: str) -> _Extent:
    footer = pq.read_metadata(path)
    place = footer.schema.names.index("event_time_us")
    times = [footer.row_group(i).column(place).statistics for i in range(footer.num_row_groups)]
    if any(each is None or not each.has_min_max for each in times):
        return _Extent(footer.num_rows, -(1 << 63), (1 << 63) - 1)
    return _Extent(
        footer.num_rows,
        min((each.min for each in times), default=0),
        max((each.max for each in times), default=-1),
    )
