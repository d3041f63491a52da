"""Stores: folders in which queries keep their identity, their position and what they found.

    query.json     which query the store belongs to: version, configuration, ...
    .lock          locked by the process that writes
    checkpoint/    Spark's own: offsets, commits, state
    control/       requests to the query, read with the files of the history, if it has any

A :class:`TableStore` also has ``<table>/batch=<id>/part-<n>.parquet``: one folder for each table
and micro-batch.

Rules of this file:

* A store has one writer at a time. Readers never wait.
* A file appears under its name when it is complete, or not at all.
* A micro-batch writes only folders of its own number and replaces their content, so replaying it
  repairs whatever a crash left.
* One table marks a micro-batch as complete: it is written last and removed first. Readers ignore
  micro-batches without it.
* The lock belongs to the driver's process and ends with it, however it ends, unless a process that
  was forked from it still runs. The file ``.lock`` stays.
"""

import fcntl
import json
import os
import shutil
import socket
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, ClassVar, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from model.vocabulary.settings import JsonObject
from spark_impl.runtime.histories import InputProblem, complete, reason_of, writing

LOCK_FILE = ".lock"
PATIENCE_S = 2.0
"""Longest wait for a lock: a query that was stopped or killed needs a moment to release it."""
_IDENTITY = "query.json"
_GROUP_TYPES = {"string": pa.string(), "int64": pa.int64()}
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Store:
    """The folder of one query."""

    root: Path

    @property
    def checkpoint(self) -> Path:
        """Spark's checkpoint."""
        return self.root / "checkpoint"

    @property
    def control(self) -> Path:
        """Requests to the query."""
        return self.root / "control"

    def numbers(self, folder: str) -> list[int]:
        """Return the numbers of the files ``<number>.json`` in a folder, in order."""
        return sorted(int(path.stem) for path in self.root.glob(f"{folder}/[0-9]*.json"))


@dataclass(frozen=True, slots=True)
class TableStore(Store):
    """A store with tables, one folder for each table and micro-batch."""

    groups: tuple[pa.Field, ...] = ()
    """The grouping columns, the first columns of every table."""

    MARKER: ClassVar[str]
    """The table that marks a micro-batch as complete."""

    def schema(self, table: str) -> pa.Schema:
        """Return the schema of a table."""
        raise NotImplementedError

    def tables(self) -> Iterable[str]:
        """Return the names of all tables."""
        raise NotImplementedError

    def folder(self, table: str, batch: int) -> Path:
        """Return the folder in which a micro-batch writes a table."""
        return self.root / table / f"batch={batch}"

    def begin(self, batch: int) -> None:
        """Remove what an earlier attempt at a micro-batch left, its mark first.

        Raises :class:`InputProblem` if the tables are not where Spark's checkpoint is.
        """
        last = self.committed()
        if last not in (batch - 1, batch):
            msg = (
                f"{self.checkpoint} is at micro-batch {batch}, the tables beside it at {last};"
                " one of them was changed by hand or by a crash of the machine"
            )
            raise InputProblem(msg)
        for table in (self.MARKER, *self.tables()):
            folder = self.folder(table, batch)
            with writing(folder):
                if folder.exists():
                    shutil.rmtree(folder)

    def write(self, table: str, batch: int, rows: pa.Table, part: int = 0) -> None:
        """Write one part of a table; no rows are written only if the table is the mark."""
        if rows.num_rows or table == self.MARKER:
            folder = self.folder(table, batch)
            with writing(folder):
                folder.mkdir(parents=True, exist_ok=True)
            rows = rows.select(self.schema(table).names)
            write_parquet(rows, folder / f"part-{part:05d}.parquet")

    def committed(self) -> int:
        """Return the last complete micro-batch, -1 if there is none."""
        return max(self.files(self.MARKER), default=-1)

    def files(self, table: str) -> dict[int, list[str]]:
        """Return the files of a table by micro-batch, incomplete micro-batches included."""
        by_batch: dict[int, list[str]] = {}
        for path in sorted(self.root.glob(f"{table}/batch=*/part-*.parquet")):
            batch = int(path.parent.name.removeprefix("batch="))
            by_batch.setdefault(batch, []).append(str(path))
        return by_batch

    def read_all(self, table: str, last: int | None = None) -> pa.Table:
        """Return a table up to micro-batch ``last``, with a column ``batch``.

        ``last`` is by default the last complete micro-batch.
        """
        upto = self.committed() if last is None else last
        listed = self.files(table).items()
        paths = [path for batch, each in listed for path in each if batch <= upto]
        return read_parquet(paths, self.schema(table).append(pa.field("batch", pa.int64())))


def claim(
    root: Path, identity: JsonObject, require_same: Callable[[], None], kind: str = "query"
) -> None:
    """Make a folder the store of a query; if it is a store already, call ``require_same``.

    ``kind`` is the word for the query in messages. Raises :class:`InputProblem`, and writes
    nothing, if the folder holds something else.
    """
    path = root / _IDENTITY
    if path.exists():
        require_same()
    elif root.exists() and not _is_empty(root):
        msg = f"{root} is neither an empty folder nor the store of a {kind}"
        raise InputProblem(msg)
    else:
        write_bytes(path, json.dumps(identity, indent=1).encode("utf-8"))


def _is_empty(root: Path) -> bool:
    """Return whether a folder holds nothing but what a crash in :func:`claim` may leave."""
    ours = (LOCK_FILE, f".{_IDENTITY}.")
    return root.is_dir() and all(each.name.startswith(ours) for each in root.iterdir())


def read_identity(
    root: Path,
    version: int,
    read: Callable[[JsonObject], _T],
    *,
    room: str | None = None,
    kind: str = "query",
) -> _T:
    """Return what ``read`` makes of the identity of a store.

    ``room`` is compared with the room that the store names, if it names one. Raises
    :class:`InputProblem` if there is no store, if it belongs to another room or was written by
    another version, or if its identity cannot be read.
    """
    path = root / _IDENTITY
    if not path.exists():
        msg = f"{root} is not the store of a {kind}"
        raise InputProblem(msg)
    try:
        identity = json.loads(path.read_text(encoding="utf-8"))
        owner, written = identity.get("room", room), identity["version"]
        if (owner, written) == (room, version):
            return read(identity)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        msg = f"{path} does not say to which {kind} the store belongs; restore it from a copy"
        raise InputProblem(msg) from error
    if owner != room:
        msg = f"{root} belongs to a query of room {owner!r}" + (f", not {room!r}" if room else "")
    else:
        msg = f"{root} was written by version {written!r} of the store, not {version}"
    raise InputProblem(msg)


def require_same(root: Path, theirs: JsonObject, ours: JsonObject, kind: str = "query") -> None:
    """Raise :class:`InputProblem` for the first of our settings with another value in the store."""
    for name in sorted(ours):
        if theirs.get(name) != ours[name]:
            msg = (
                f"{root} belongs to another {kind}:"
                f" its {name} is {theirs.get(name)!r}, not {ours[name]!r}"
            )
            raise InputProblem(msg)


def groups_to_json(groups: Iterable[pa.Field]) -> list[list[str]]:
    """Return grouping columns and their types as plain data."""
    return [[field.name, str(field.type)] for field in groups]


def groups_from_json(names: Iterable[Sequence[str]]) -> tuple[pa.Field, ...]:
    """Read what :func:`groups_to_json` returned."""
    return tuple(pa.field(name, _GROUP_TYPES[kind]) for name, kind in names)


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file, and its folder if needed."""
    with writing(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
    with complete(path) as scratch:
        scratch.write_bytes(data)


def write_parquet(rows: pa.Table, path: Path) -> None:
    """Write a Parquet file into a folder that exists."""
    with complete(path) as scratch:
        pq.write_table(rows, scratch, compression="zstd")


def read_parquet(files: Sequence[str], schema: pa.Schema, where: pc.Expression = None) -> pa.Table:
    """Return the rows of some Parquet files that pass a filter, with the columns of ``schema``."""
    if not files:
        return schema.empty_table()
    # Imported here: processes that only write need not wait for it.
    import pyarrow.dataset as ds

    # "hive" reads batch=3 in a path as the column ``batch``
    source = ds.dataset(list(files), schema=schema, format="parquet", partitioning="hive")
    return source.to_table(columns=schema.names, filter=where)


def lock(root: Path) -> BinaryIO:
    """Lock a store for writing until :func:`unlock` of the returned file.

    Raises :class:`InputProblem` if another query is writing, in this process or elsewhere, or if
    the file system has no locks.
    """
    with writing(root):
        file = (root / LOCK_FILE).open("a+b", buffering=0)
    try:
        _wait_for_lock(file)
        with writing(root):
            file.truncate(0)
            now = datetime.now(UTC).isoformat(" ", "seconds")
            file.write(f"process {os.getpid()} on {socket.gethostname()} since {now}".encode())
    except BaseException:
        unlock(file)
        raise
    return file


def unlock(file: BinaryIO) -> None:
    """Unlock a store and close the file of its lock."""
    with file, suppress(OSError):  # closing must do if unlocking cannot
        # Closing alone would leave the lock with every process forked in the meantime.
        fcntl.flock(file, fcntl.LOCK_UN)


def _wait_for_lock(file: BinaryIO) -> None:
    root = Path(file.name).parent
    ends_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() > ends_s:
                file.seek(0)
                holder = file.read().decode() or "another query"
                msg = f"{root} is being written by {holder}; it takes one running query at a time"
                raise InputProblem(msg) from error
            time.sleep(0.01)
        except OSError as error:
            msg = f"{root} cannot be locked against other queries: {reason_of(error)}"
            raise InputProblem(msg) from error
        else:
            return
