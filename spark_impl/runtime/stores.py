"""Folders in which queries keep what they found out, one folder a table and micro-batch.

Rules of this file:

* A micro-batch writes only folders of its own number and replaces what it finds there, so that a
  batch that Spark replays after a crash repairs whatever the crash left.
* One table marks a micro-batch as complete: it is the last one that is written, and the first one
  that is removed.
* A file appears under its name when it is complete, or not at all.
"""

import json
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from spark_impl.runtime import lock
from spark_impl.runtime.histories import InputProblem, complete, writing

_FILE = "query.json"
_GROUP_TYPES = {"string": pa.string(), "int64": pa.int64()}
_Found = TypeVar("_Found")


def begin(root: Path, last: int, batch: int, tables: Iterable[str]) -> None:
    """Remove what an earlier attempt at a batch left; the table that marks it comes first.

    ``last`` is the last complete one. Raises :class:`InputProblem` when the tables are not where
    Spark's checkpoint is.
    """
    if last not in (batch - 1, batch):
        msg = (
            f"{root / 'checkpoint'} is at micro-batch {batch}, the tables beside it at {last};"
            " one of them was changed by hand or by a crash of the machine"
        )
        raise InputProblem(msg)
    for table in tables:
        folder = folder_of(root, table, batch)
        with writing(folder):
            if folder.exists():
                shutil.rmtree(folder)


def folder_of(root: Path, table: str, batch: int) -> Path:
    """Where one micro-batch writes a table."""
    return root / table / f"batch={batch}"


def write_part(root: Path, table: str, batch: int, rows: pa.Table, part: int) -> None:
    """Write one part of a table."""
    folder = folder_of(root, table, batch)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    write_parquet(rows, folder / f"part-{part:05d}.parquet")


def files(root: Path, table: str) -> dict[int, list[str]]:
    """Files of a table by micro-batch, incomplete ones included."""
    found: dict[int, list[str]] = {}
    for path in sorted(root.glob(f"{table}/batch=*/part-*.parquet")):
        batch = int(path.parent.name.removeprefix("batch="))
        found.setdefault(batch, []).append(str(path))
    return found


def read_upto(root: Path, table: str, schema: pa.Schema, last: int) -> pa.Table:
    """A table with its micro-batches up to one, told apart by the column ``batch``."""
    listed = files(root, table).items()
    paths = [path for batch, each in listed for path in each if batch <= last]
    return read_parquet(paths, schema.append(pa.field("batch", pa.int64())))


def describe(root: Path, plain: Mapping[str, Any], require_same: Callable[[], None]) -> None:
    """Make a folder the store of a query, unless it is one: then look whether of the same.

    Raises :class:`InputProblem`, and writes nothing, when it is something else.
    """
    path = root / _FILE
    if path.exists():
        require_same()
    elif root.exists() and not _is_empty(root):
        msg = f"{root} is neither an empty folder nor the store of a query"
        raise InputProblem(msg)
    else:
        with writing(root):
            root.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps(plain, indent=1))


def _is_empty(root: Path) -> bool:
    """Whether a folder holds nothing but what a crash in :func:`describe` may leave."""
    ours = (lock.FILE, f".{_FILE}.")
    return root.is_dir() and all(each.name.startswith(ours) for each in root.iterdir())


def described(
    root: Path, room: str, version: int, read: Callable[[Mapping[str, Any]], _Found]
) -> _Found:
    """To which query of a room a store belongs.

    Raises :class:`InputProblem` when there is none, when it belongs to a query of another room, or
    when it does not say what it is.
    """
    path = root / _FILE
    if not path.exists():
        msg = f"{root} is not the store of a query"
        raise InputProblem(msg)
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        whose, written = found.get("room", room), found["version"]
        if (whose, written) == (room, version):
            return read(found)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        msg = f"{path} does not say to which query the store belongs; bring it back from a copy"
        raise InputProblem(msg) from error
    if whose != room:
        msg = f"{root} belongs to a query of room {whose!r}, not {room!r}"
    else:
        msg = f"{root} was written by version {written!r} of the store, not {version}"
    raise InputProblem(msg)


def names_of(groups: Iterable[pa.Field]) -> list[list[str]]:
    """Grouping columns and their types, as JSON has them."""
    return [[field.name, str(field.type)] for field in groups]


def groups_of(names: Iterable[Sequence[str]]) -> tuple[pa.Field, ...]:
    """Read what :func:`names_of` wrote."""
    return tuple(pa.field(name, _GROUP_TYPES[kind]) for name, kind in names)


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
