"""The folder in which a query keeps what it found out.

    query.json                      configuration, grouping columns, version
    checkpoint/                     Spark's own: offsets, commits, state
    control/                        requests to flush, read with the files of the history
    <table>/batch=<id>/*.parquet    one folder a table and micro-batch

Rules of this file:

* A micro-batch writes only folders of its own number and replaces what it finds there, so that a
  batch that Spark replays after a crash repairs whatever the crash left.
* ``pending`` is written last: a batch that has none did not happen yet, for every reader.
* A file appears under its name when it is complete, or not at all.
"""

import json
import shutil
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from spark_impl import lock
from spark_impl.streams import InputProblem, complete, writing
from spark_impl.windows.room import ConfigT, Room
from spark_impl.windows.tables import tables

VERSION = 3
_PENDING_KEPT = 50
_GROUP_TYPES = {"string": pa.string(), "int64": pa.int64()}


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
        columns = {"task": pa.int32(), **tables(self.room)[table]}
        return pa.schema([*self.groups, *(pa.field(*each) for each in columns.items())])

    def folder(self, table: str, batch: int) -> Path:
        """Where one micro-batch writes a table."""
        return self.root / table / f"batch={batch}"

    def begin(self, batch: int) -> None:
        """Remove what an earlier attempt at this batch left, the mark that it is complete first.

        Raises :class:`InputProblem` when the tables are not where Spark's checkpoint is.
        """
        last = self.committed()
        if last not in (batch - 1, batch):
            msg = (
                f"{self.checkpoint} is at micro-batch {batch}, the tables beside it at {last};"
                " one of them was changed by hand or by a crash of the machine"
            )
            raise InputProblem(msg)
        for table in ("pending", *tables(self.room)):
            folder = self.folder(table, batch)
            with writing(folder):
                if folder.exists():
                    shutil.rmtree(folder)

    def write(self, table: str, batch: int, rows: pa.Table, part: int = 0) -> None:
        """Write one part of a table; nothing for no rows, except that ``pending`` marks the end."""
        if rows.num_rows or table == "pending":
            folder = self.folder(table, batch)
            with writing(folder):
                folder.mkdir(parents=True, exist_ok=True)
            write_parquet(
                rows.select(self.schema(table).names), folder / f"part-{part:05d}.parquet"
            )

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
        found: dict[int, list[str]] = {}
        for path in sorted(self.root.glob(f"{table}/batch=*/part-*.parquet")):
            batch = int(path.parent.name.removeprefix("batch="))
            found.setdefault(batch, []).append(str(path))
        return found

    def files_of(self, table: str, batch: int) -> list[str]:
        """Files of a table that one micro-batch wrote."""
        return sorted(map(str, self.folder(table, batch).glob("part-*.parquet")))

    def read(self, table: str, batch: int) -> pa.Table:
        """A table as one micro-batch wrote it."""
        return read_parquet(self.files_of(table, batch), self.schema(table))

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
        write_parquet(pa.table(arrays, schema=schema), path)

    def read_all(self, table: str, upto: int) -> pa.Table:
        """A table with its micro-batches up to ``upto``, told apart by the column ``batch``."""
        schema = self.schema(table).append(pa.field("batch", pa.int64()))
        by_batch = self.files(table).items()
        files = [path for batch, paths in by_batch for path in paths if batch <= upto]
        return read_parquet(files, schema)


def open_store(
    root: Path, room: Room[ConfigT], config: ConfigT, groups: Sequence[pa.Field]
) -> Store:
    """The store of a query, made if it is not there yet.

    Raises :class:`InputProblem`, and writes nothing, when it belongs to another query, does not say
    to which, or cannot be made.
    """
    path = root / "query.json"
    if path.exists():
        _check_same(root, room, config, groups)
    elif root.exists() and not _is_empty(root):
        msg = f"{root} is neither an empty folder nor the store of a query"
        raise InputProblem(msg)
    else:
        with writing(root):
            root.mkdir(parents=True, exist_ok=True)
        ours = {
            "version": VERSION,
            "room": room.name,
            "config": config.to_json(),
            "group_columns": _names(groups),
        }
        write_text(path, json.dumps(ours, indent=1))
    store = Store(root, room, tuple(groups))
    with writing(root):  # here, because a crash may have come between the two
        store.control.mkdir(exist_ok=True)
    return store


def _is_empty(root: Path) -> bool:
    """Whether a folder holds nothing but what a crash in :func:`open_store` may leave."""
    ours = (lock.FILE, ".query.json.")
    return root.is_dir() and all(each.name.startswith(ours) for each in root.iterdir())


def load_store(root: Path, room: Room[ConfigT]) -> tuple[ConfigT, Store]:
    """The store that a query of a room has written, and the query's configuration.

    Raises :class:`InputProblem` when there is none, when it belongs to a query of another room, or
    when it does not say what it is.
    """
    path = root / "query.json"
    if not path.exists():
        msg = f"{root} is not the store of a query"
        raise InputProblem(msg)
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        version = found["version"]
        name = found["room"] if version == VERSION else ""
        if name == room.name:
            groups = [pa.field(each, _GROUP_TYPES[kind]) for each, kind in found["group_columns"]]
            return room.read(found["config"]), Store(root, room, tuple(groups))
    except (LookupError, TypeError, ValueError) as error:
        msg = f"{path} does not say to which query the store belongs; bring it back from a copy"
        raise InputProblem(msg) from error
    if version != VERSION:
        msg = f"{root} was written by version {version!r} of the store, not {VERSION}"
    else:
        msg = f"{root} belongs to a query of room {name!r}, not {room.name!r}"
    raise InputProblem(msg)


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
    if _names(store.groups) != _names(groups):
        msg = (
            f"{root} belongs to a query grouped by {_names(store.groups)},"
            f" this one is grouped by {_names(groups)}"
        )
        raise InputProblem(msg)


def _names(groups: Sequence[pa.Field]) -> list[list[str]]:
    """Grouping columns and their types, as JSON has them."""
    return [[field.name, str(field.type)] for field in groups]


def write_text(path: Path, text: str) -> None:
    """Write a file that is complete or not there."""
    with complete(path) as scratch:
        scratch.write_text(text, encoding="utf-8")


def write_parquet(rows: pa.Table, path: Path) -> None:
    """Write a Parquet file that is complete or not there."""
    with complete(path) as scratch:
        pq.write_table(rows, scratch, compression="zstd")


def read_parquet(files: Sequence[str], schema: pa.Schema, where: pc.Expression = None) -> pa.Table:
    """Rows of some Parquet files under a filter, with the columns of a schema."""
    if not files:
        return schema.empty_table()
    # Imported here: the processes that only write would wait for it.
    import pyarrow.dataset as ds

    # "hive" reads batch=3 in a path as the column ``batch``
    source = ds.dataset(list(files), schema=schema, format="parquet", partitioning="hive")
    return source.to_table(columns=schema.names, filter=where)
