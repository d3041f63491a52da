"""The store and the tables of a windowed query.

The store is a :class:`spark_impl.runtime.stores.TableStore`. A version of its table has the pending
pairs of the last micro-batch only; all other kinds of rows grow. The folder ``_control`` holds
requests to flush.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from spark_impl.runtime import accounts, stores
from spark_impl.runtime.arrays import Values
from spark_impl.runtime.histories import VALUE
from spark_impl.runtime.storage import Address, InputProblem, locate
from spark_impl.windows.records import LATE, REJECTED, RESULT, Taken
from spark_impl.windows.room import AnyRoom, ConfigT, WindowRoom

VERSION = 8
PENDING = "pending"

TaskId: TypeAlias = Values
"""Values of the grouping columns, then the task."""
Columns: TypeAlias = Mapping[str, pa.DataType]
"""Columns of a table behind the grouping columns and ``task``."""
_INT, _FLOAT, _TEXT, _FLAG = pa.int64(), pa.float64(), pa.string(), pa.bool_()
WINDOW: Columns = {"start_us": _INT, "key": _TEXT}
"""Columns that identify a window of a task."""
_PAIRS: Columns = {**WINDOW, "source_id": _INT, "event_time_us": _INT, "windows": _INT}
"""Columns of a tuple and a run of ``windows`` windows that begins with the one at ``start_us``."""
_PROGRESS: Columns = {
    "t_max_us": _INT,
    "slack_us": _INT,
    "wm_us": _INT,
    "seq": _INT,
    "flushed": _FLAG,
}
_CORRECTION: Mapping[str, Columns] = {
    "revision": {**WINDOW, "revision": _INT, "value": _FLOAT, "n": _INT},
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
    stream = {name: _columns_of(each) for name, each in record_types(room).items()}
    return {**stream, "progress": {**_PROGRESS, **room.progress}}


def _columns_of(records: "np.dtype[np.void]") -> Columns:
    """Return the columns of a table from the dtype of a task's records.

    A window is known by its start there, keys and reasons by their text.
    """
    columns = {}
    for name in records.names or ():
        if name in ("j", "first"):
            columns["start_us"] = _INT
        else:
            text = name in ("key", "reason")
            columns[name] = _TEXT if text else pa.from_numpy_dtype(records[name])
    return columns


def with_task(rows: DataFrame, tasks: int) -> DataFrame:
    """Return rows with the column ``task``: what ``task_of`` says of their keys."""
    return rows.withColumn("task", F.pmod(F.xxhash64("key"), F.lit(tasks)).cast("int"))


def written_column(table: str) -> str:
    """Return the column in which a task reports the number of its rows in a table."""
    return f"{table}_rows"


def report_columns(room: AnyRoom) -> Columns:
    """Return the columns of a task's report to the driver: its progress and what it wrote."""
    counted = {written_column(name): _INT for name in record_types(room)}
    counted |= dict.fromkeys(Taken._fields, _INT)
    return {"active": _FLAG, **_stream_tables(room)["progress"], **counted, stores.ATTEMPT: _TEXT}


def record_types(room: AnyRoom) -> "dict[str, np.dtype[np.void]]":
    """Return the dtype of a task's records, by the table to which they belong."""
    return {"result": RESULT, "late": LATE, "rejected": REJECTED, **room.records}


@dataclass(frozen=True, slots=True)
class WindowStore(stores.TableStore):
    """The store of a windowed query."""

    replaced = (PENDING,)
    room: AnyRoom = field(kw_only=True)
    value: str | None = field(default=VALUE, kw_only=True)
    """The column of the history with the values, None if the query reads none."""

    @property
    def by(self) -> tuple[str, ...]:
        """The columns that identify a task: the grouping columns and ``task``."""
        return (*(group.name for group in self.groups), "task")

    @property
    def kinds(self) -> Mapping[str, pa.Schema]:
        """The columns of every kind of rows."""
        own = {name: self.schema_of(each) for name, each in all_tables(self.room).items()}
        return {**own, accounts.ACCOUNT: accounts.COLUMNS}

    def schema_of(self, columns: Columns) -> pa.Schema:
        """Return the schema of rows that belong to tasks."""
        ours = {"task": pa.int32(), **columns}
        return pa.schema([*self.groups, *(pa.field(*each) for each in ours.items())])

    def known_tasks(self) -> list[TaskId]:
        """Return every task that has accepted something."""
        rows = self.read_kind("progress").group_by(list(self.by)).aggregate([])
        return sorted(zip(*(rows.column(name).to_pylist() for name in self.by), strict=True))


def open_store(
    root: Address,
    room: WindowRoom[ConfigT],
    config: ConfigT,
    groups: Sequence[pa.Field],
    value: str | None = VALUE,
) -> WindowStore:
    """Return the store of a query; make it if it does not exist.

    Raises :class:`InputProblem`, and writes nothing, if the folder belongs to another query, or
    cannot be written.
    """
    store = WindowStore(locate(root), tuple(groups), room=room, value=value)
    identity = {
        "version": VERSION,
        "room": room.name,
        "config": config.to_json(),
        "group_columns": stores.groups_to_json(groups),
        "value": value,
    }
    stores.claim(store, identity)
    return store


def load_store(root: Address, room: WindowRoom[ConfigT]) -> tuple[ConfigT, WindowStore]:
    """Return the configuration of the query that wrote a store, and the store at its last version.

    Raises :class:`InputProblem` if there is none, or if it belongs to another room or version.
    """
    view = stores.require_view(locate(root))
    stores.require_owner(view, VERSION, room.name)
    found = view.identity
    try:
        config = room.read(found["config"])
    except ValueError as error:
        msg = f"{view.root} was written by a query of another version: {error}"
        raise InputProblem(msg) from error
    groups = stores.groups_from_json(found["group_columns"])
    store = WindowStore(view.root, groups, room=room.of(config), value=found["value"], seen=view)
    return config, store
