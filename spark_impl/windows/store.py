"""The folder in which a query keeps what it found out.

    query.json                      configuration, grouping columns, version
    checkpoint/                     Spark's own: offsets, commits, state
    control/                        requests to flush, read with the files of the history
    <table>/batch=<id>/*.parquet    one folder a table and micro-batch

Rules of this file:

* Everything is written as :mod:`spark_impl.runtime.stores` says.
* ``pending`` is written last: a batch that has none did not happen yet, for every reader.
"""

import shutil
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from spark_impl.runtime import stores
from spark_impl.runtime.histories import InputProblem, writing
from spark_impl.windows.room import ConfigT, Room
from spark_impl.windows.tables import Columns, tables

VERSION = 4
_PENDING_KEPT = 50


@dataclass(frozen=True, slots=True)
class Store:
    """Where the tables of one query lie, and how they are read and written."""

    root: Path
    room: Room[Any]
    groups: tuple[pa.Field, ...] = ()

    @property
    def checkpoint(self) -> Path:
        """Spark's checkpoint."""
        return self.root / "checkpoint"

    @property
    def control(self) -> Path:
        """Requests to flush."""
        return self.root / "control"

    @property
    def by(self) -> tuple[str, ...]:
        """What tells tasks apart: the grouping columns and ``task``."""
        return (*(field.name for field in self.groups), "task")

    def schema(self, table: str) -> pa.Schema:
        """Arrow schema of a table."""
        return self.schema_of(tables(self.room)[table])

    def schema_of(self, columns: Columns) -> pa.Schema:
        """Arrow schema of rows that belong to tasks."""
        ours = {"task": pa.int32(), **columns}
        return pa.schema([*self.groups, *(pa.field(*each) for each in ours.items())])

    def folder(self, table: str, batch: int) -> Path:
        """Where one micro-batch writes a table."""
        return stores.folder_of(self.root, table, batch)

    def begin(self, batch: int) -> None:
        """Remove what an earlier attempt at this batch left, the mark that it is complete first.

        Raises :class:`InputProblem` when the tables are not where Spark's checkpoint is.
        """
        stores.begin(self.root, self.committed(), batch, ("pending", *tables(self.room)))

    def write(self, table: str, batch: int, rows: pa.Table, part: int = 0) -> None:
        """Write one part of a table; nothing for no rows, except that ``pending`` marks the end."""
        if rows.num_rows or table == "pending":
            rows = rows.select(self.schema(table).names)
            stores.write_part(self.root, table, batch, rows, part)

    def forget_old_pending(self, batch: int) -> None:
        """Drop pending sets that nobody needs any more; the last ones stay for slow readers."""
        shutil.rmtree(self.folder("pending", batch - _PENDING_KEPT), ignore_errors=True)

    def committed(self) -> int:
        """The last complete micro-batch, -1 if there is none."""
        numbers = [
            int(path.name.removeprefix("batch=")) for path in self.root.glob("pending/batch=*")
        ]
        done = [n for n in numbers if any(self.folder("pending", n).glob("part-*.parquet"))]
        return max(done, default=-1)

    def mark(self, batch: int) -> tuple[int, int] | None:
        """Tells one completion of a batch from another; None while it is not complete.

        The same before and after a reader has listed files: all of them belong together.
        """
        with suppress(FileNotFoundError):
            found = (self.folder("pending", batch) / "part-00000.parquet").stat()
            return found.st_ino, found.st_mtime_ns
        return None

    def files(self, table: str) -> dict[int, list[str]]:
        """Files of a table by micro-batch, incomplete ones included."""
        return stores.files(self.root, table)

    def files_of(self, table: str, batch: int) -> list[str]:
        """Files of a table that one micro-batch wrote."""
        return sorted(map(str, self.folder(table, batch).glob("part-*.parquet")))

    def read(self, table: str, batch: int) -> pa.Table:
        """A table as one micro-batch wrote it."""
        return stores.read_parquet(self.files_of(table, batch), self.schema(table))

    def known_tasks(self) -> list[tuple[Any, ...]]:
        """Values of ``by`` for every task that has accepted something."""
        rows = self.read_all("progress", self.committed()).group_by(list(self.by)).aggregate([])
        return sorted(zip(*(rows.column(name).to_pylist() for name in self.by), strict=True))

    def request_flush(self, tasks: list[tuple[Any, ...]]) -> None:
        """Ask for a flush of some tasks; the next run carries it out, once."""
        schema = pa.schema([*self.groups, pa.field("task", pa.int32())])
        columns = zip(*tasks, strict=True)
        arrays = [
            pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)
        ]
        path = self.control / f"flush-{uuid.uuid4().hex}.parquet"
        stores.write_parquet(pa.table(arrays, schema=schema), path)

    def read_all(self, table: str, upto: int) -> pa.Table:
        """A table with its micro-batches up to ``upto``, told apart by the column ``batch``."""
        return stores.read_upto(self.root, table, self.schema(table), upto)


def open_store(
    root: Path, room: Room[ConfigT], config: ConfigT, groups: Sequence[pa.Field]
) -> Store:
    """The store of a query, made if it is not there yet.

    Raises :class:`InputProblem`, and writes nothing, when it belongs to another query, does not say
    to which, or cannot be made.
    """
    ours = {
        "version": VERSION,
        "room": room.name,
        "config": config.to_json(),
        "group_columns": stores.names_of(groups),
    }
    stores.describe(root, ours, lambda: _check_same(root, room, config, groups))
    store = Store(root, room, tuple(groups))
    with writing(root):  # here, because a crash may have come between the two
        store.control.mkdir(exist_ok=True)
    return store


def load_store(root: Path, room: Room[ConfigT]) -> tuple[ConfigT, Store]:
    """The store that a query of a room has written, and the query's configuration.

    Raises :class:`InputProblem` when there is none, when it belongs to a query of another room, or
    when it does not say what it is.
    """

    def read(found: Mapping[str, Any]) -> tuple[ConfigT, Store]:
        groups = stores.groups_of(found["group_columns"])
        return room.read(found["config"]), Store(root, room, groups)

    return stores.described(root, room.name, VERSION, read)


def _check_same(
    root: Path, room: Room[ConfigT], config: ConfigT, groups: Sequence[pa.Field]
) -> None:
    """Refuse the store of another query."""
    found, store = load_store(root, room)
    theirs, ours = found.to_json(), config.to_json()
    for name in sorted(ours):
        if theirs[name] != ours[name]:
            msg = (
                f"{root} belongs to a query with {name} = {theirs[name]!r},"
                f" this one has {ours[name]!r}"
            )
            raise InputProblem(msg)
    if store.groups != tuple(groups):
        msg = (
            f"{root} belongs to a query grouped by {stores.names_of(store.groups)},"
            f" this one is grouped by {stores.names_of(groups)}"
        )
        raise InputProblem(msg)
