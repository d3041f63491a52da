"""The store and the tables of a windowed query.

The store is a :class:`spark_impl.runtime.stores.TableStore`. The table ``pending`` marks a
micro-batch as complete. The folder ``control`` holds requests to flush.
"""

import shutil
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, TypeAlias

import numpy as np
import pyarrow as pa

from model.vocabulary.settings import JsonObject
from spark_impl.runtime import stores
from spark_impl.runtime.arrays import Values
from spark_impl.runtime.histories import writing
from spark_impl.windows.records import LATE, REJECTED, RESULT
from spark_impl.windows.room import AnyRoom, ConfigT, WindowRoom

VERSION = 4
_PENDING_KEPT = 50
"""Number of pending sets that stay for slow readers."""

TaskId: TypeAlias = Values
"""Values of the grouping columns, then the task."""
Columns: TypeAlias = Mapping[str, pa.DataType]
"""Columns of a table behind the grouping columns and ``task``."""
_INT, _FLOAT, _TEXT, _FLAG = pa.int64(), pa.float64(), pa.string(), pa.bool_()
WINDOW: Columns = {"start_us": _INT, "key": _TEXT}
"""Columns that identify a window of a task."""
_PAIRS: Columns = {**WINDOW, "source_id": _INT, "event_time_us": _INT, "windows": _INT}
"""Columns of a tuple and a run of ``windows`` windows that begins with the one at ``start_us``."""
_STREAM: Mapping[str, Columns] = {
    "result": {**WINDOW, "value": _FLOAT, "n_rcv": _INT, "slack_us": _INT, "wm_us": _INT},
    "late": _PAIRS,
    "rejected": {"seq": _INT, "source_id": _INT, "reason": _TEXT},
}
_PROGRESS: Columns = {
    "t_max_us": _INT,
    "slack_us": _INT,
    "wm_us": _INT,
    "seq": _INT,
    "flushed": _FLAG,
}
_CORRECTION: Mapping[str, Columns] = {
    "revision": {**WINDOW, "revision": _INT, "value": _FLOAT, "n": _INT},
    "correlation": {
        **WINDOW,
        "revision": _INT,
        "n": _INT,
        "cross": _INT,
        "delay_spread": _INT,
        "value_spread": _INT,
    },
    "correction": {
        "reason": _TEXT,
        "pairs": _INT,
        "windows": _INT,
        "rows_read": _INT,
        "rows_needed": _INT,
    },
    "cleared": _PAIRS,
    "pending": _PAIRS,
}


def all_tables(room: AnyRoom) -> dict[str, Columns]:
    """Return the columns of all tables of a room, by table."""
    return {**_stream_tables(room), **_CORRECTION}


def _stream_tables(room: AnyRoom) -> dict[str, Columns]:
    """Return the tables that the stream part writes; corrections write the others."""
    return {**_STREAM, **room.columns, "progress": {**_PROGRESS, **room.progress}}


def output_columns(room: AnyRoom) -> Columns:
    """Return the columns of a task's output row: its progress, then its records as bytes."""
    progress = _stream_tables(room)["progress"]
    binaries = dict.fromkeys(("keys", *record_types(room)), pa.binary())
    return {"active": _FLAG, **progress, **binaries}


def record_types(room: AnyRoom) -> "dict[str, np.dtype[np.void]]":
    """Return the dtype of a task's records, by the table to which they belong."""
    return {"result": RESULT, "late": LATE, "rejected": REJECTED, **room.records}


@dataclass(frozen=True, slots=True)
class WindowStore(stores.TableStore):
    """The store of a windowed query."""

    room: AnyRoom = field(kw_only=True)

    MARKER: ClassVar[str] = "pending"

    @property
    def by(self) -> tuple[str, ...]:
        """The columns that identify a task: the grouping columns and ``task``."""
        return (*(group.name for group in self.groups), "task")

    def tables(self) -> Iterable[str]:
        """Return the names of all tables."""
        return all_tables(self.room)

    def schema(self, table: str) -> pa.Schema:
        """Return the schema of a table."""
        return self.schema_of(all_tables(self.room)[table])

    def schema_of(self, columns: Columns) -> pa.Schema:
        """Return the schema of rows that belong to tasks."""
        ours = {"task": pa.int32(), **columns}
        return pa.schema([*self.groups, *(pa.field(*each) for each in ours.items())])

    def forget_old_pending(self, batch: int) -> None:
        """Remove the pending set that has become too old for readers."""
        shutil.rmtree(self.folder("pending", batch - _PENDING_KEPT), ignore_errors=True)

    def mark(self, batch: int) -> tuple[int, int] | None:
        """Return an identifier of the present completion of a micro-batch, None if incomplete.

        If it is the same before and after a reader has listed files, these files belong together.
        """
        with suppress(FileNotFoundError):
            status = (self.folder("pending", batch) / "part-00000.parquet").stat()
            return status.st_ino, status.st_mtime_ns
        return None

    def files_of(self, table: str, batch: int) -> list[str]:
        """Return the files of a table that one micro-batch wrote."""
        return sorted(map(str, self.folder(table, batch).glob("part-*.parquet")))

    def read(self, table: str, batch: int) -> pa.Table:
        """Return the rows of a table that one micro-batch wrote."""
        return stores.read_parquet(self.files_of(table, batch), self.schema(table))

    def known_tasks(self) -> list[TaskId]:
        """Return every task that has accepted something."""
        rows = self.read_all("progress").group_by(list(self.by)).aggregate([])
        return sorted(zip(*(rows.column(name).to_pylist() for name in self.by), strict=True))

    def request_flush(self, tasks: Sequence[TaskId]) -> None:
        """Request a flush of some tasks; the next run carries it out, once."""
        schema = self.schema_of({})
        columns = zip(*tasks, strict=True)
        arrays = [pa.array(column, each.type) for column, each in zip(columns, schema, strict=True)]
        path = self.control / f"flush-{uuid.uuid4().hex}.parquet"
        stores.write_parquet(pa.table(arrays, schema=schema), path)


def open_store(
    root: Path, room: WindowRoom[ConfigT], config: ConfigT, groups: Sequence[pa.Field]
) -> WindowStore:
    """Return the store of a query; make it if it does not exist.

    Raises :class:`InputProblem`, and writes nothing, if the folder belongs to another query, does
    not say to which, or cannot be written.
    """
    ours = {
        "version": VERSION,
        "room": room.name,
        "config": config.to_json(),
        "group_columns": stores.groups_to_json(groups),
    }

    def require_same() -> None:
        theirs, store = load_store(root, room)
        stores.require_same(root, theirs.to_json(), config.to_json())
        groups = {"group_columns": stores.groups_to_json(store.groups)}
        stores.require_same(root, groups, {"group_columns": ours["group_columns"]})

    stores.claim(root, ours, require_same)
    store = WindowStore(root, tuple(groups), room=room)
    with writing(root):  # here, because a crash may have come between the two
        store.control.mkdir(exist_ok=True)
    return store


def load_store(root: Path, room: WindowRoom[ConfigT]) -> tuple[ConfigT, WindowStore]:
    """Return the configuration of the query that wrote a store, and the store.

    Raises :class:`InputProblem` if there is none, if it belongs to another room, or if it does not
    say to which query it belongs.
    """

    def read(identity: JsonObject) -> tuple[ConfigT, WindowStore]:
        groups = stores.groups_from_json(identity["group_columns"])
        return room.read(identity["config"]), WindowStore(root, groups, room=room)

    return stores.read_identity(root, VERSION, read, room=room.name)
