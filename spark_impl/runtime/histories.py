"""Histories: folders of Parquet files that streaming queries read, one file per micro-batch.

Spark takes the files of a folder in the order of their modification times, in milliseconds. The
functions here give every new file a later time than all files before it. A copy of a history must
keep the times (``cp -p``, ``rsync -t``). With wrong times, arrival numbers decrease and the query
stops.

A file is read as soon as it has its name. A writer gives it a name that begins with ``.`` or ``_``
until it is complete. A query that meets an incomplete file stops, and reads it when it runs again.
A complete file may not change any more.

:mod:`spark_impl.runtime.landing` makes a history of any streaming DataFrame.
"""

import os
import re
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

COLUMNS = {
    "seq": pa.int64(),
    "source_id": pa.int64(),
    "key": pa.string(),
    "event_time_us": pa.int64(),
    "value": pa.float64(),
    "arrival_us": pa.int64(),
}
"""Columns of a history, besides the grouping columns of the caller."""
DATA_FILES = "[!._]*.parquet"
"""The files of a history; others, such as those still being written, have hidden names."""
_STEP_NS = 1_000_000


class InputProblem(ValueError):  # noqa: N818 (a problem of the user, not a bug)
    """A source or a store cannot be used; the message is one sentence for the user."""


def history_schema(*groups: pa.Field) -> pa.Schema:
    """Return the schema of a history with some grouping columns in front."""
    return pa.schema([*groups, *(pa.field(*each) for each in COLUMNS.items())])


def append(folder: Path, rows: pa.Table, name: str | None = None) -> Path:
    """Add a file to a history, later than all others; return its path.

    ``name`` is the file's name without the ending, by default the number of the file. Raises
    :class:`InputProblem` if the folder cannot be written.
    """
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    present = list(folder.glob(DATA_FILES))
    path = folder / f"{name or format(len(present), '08d')}.parquet"
    with complete(path) as scratch:
        pq.write_table(rows, scratch, compression="zstd")
        latest = max(map(_changed_ns, present), default=0)
        when = max(latest // _STEP_NS * _STEP_NS + _STEP_NS, time.time_ns() // _STEP_NS * _STEP_NS)
        os.utime(scratch, ns=(when, when))
    return path


def _changed_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:  # files that were read may be removed at any time
        return 0


def written_ns(path: str) -> int:
    """Return the modification time of a history's file, nanoseconds since 1970.

    Raises :class:`InputProblem` if the file is empty: Spark would skip it for ever.
    """
    status = Path(path).stat()
    if not status.st_size:
        msg = f"{path} is empty, so it is not complete yet"
        raise InputProblem(msg)
    return status.st_mtime_ns


def require_later(first: int, last: int) -> None:
    """Raise ``ValueError`` unless arrival number ``first`` is above ``last``, the last one read."""
    if first <= last:
        msg = (
            f"arrival number {first} comes after {last}: the files of a history"
            " are taken by modification time and must number arrivals in that order"
        )
        raise ValueError(msg)


def escape_pattern(path: str | Path) -> str:
    """Return a pattern that matches this path only, for functions of Spark that take patterns."""
    return re.sub(r"([\\\[\]{}*?,^])", r"\\\1", str(path))


def match_any(*folders: Path) -> str:
    """Return a pattern that matches these folders only, for functions of Spark that take a path."""
    above = Path(os.path.commonpath([folder.parent for folder in folders]))
    below = [escape_pattern(folder.relative_to(above)) for folder in folders]
    # Hadoop resolves braces first and removes the escapes of their content.
    names = ",".join(map(escape_pattern, below))
    return f"{escape_pattern(above).rstrip('/')}/{{{names}}}"


def on_disk(path: str) -> str:
    """Return the path of a file from the name that Spark's source ``binaryFile`` gives it."""
    return re.sub("^file:/+", "/", path)  # nothing in the name is encoded


def tidy(checkpoint: Path) -> None:
    """Remove the scratch files of a first plan that Spark could not write.

    Spark would take them for those of another query and never start again.
    """
    plans = checkpoint / "offsets"
    if not any(plans.glob("[0-9]*")):
        with writing(plans):
            for path in plans.glob(".*.tmp*"):
                path.unlink()


@contextmanager
def complete(path: Path) -> Iterator[Path]:
    """Yield a scratch file that becomes ``path`` at the end of the block, or is removed.

    Raises :class:`InputProblem` if it cannot be written.
    """
    # Writers on two machines, or in two containers, may have the same process number.
    scratch = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    with writing(path.parent):
        try:
            yield scratch
            scratch.replace(path)
        finally:
            scratch.unlink(missing_ok=True)


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turn an ``OSError`` of the block into an :class:`InputProblem` about writing ``folder``."""
    try:
        yield
    except OSError as error:
        msg = f"{folder} cannot be written: {reason_of(error)}"
        raise InputProblem(msg) from error


@contextmanager
def reading(path: str | Path) -> Iterator[None]:
    """Turn an error of the block into an :class:`InputProblem` about reading a Parquet file."""
    try:
        yield
    except pa.ArrowInvalid as error:
        msg = f"{path} is not a Parquet file, or it is not complete yet"
        raise InputProblem(msg) from error
    except OSError as error:
        msg = f"{path} cannot be read: {reason_of(error)}"
        raise InputProblem(msg) from error


def reason_of(error: OSError) -> str:
    """Return the reason that the operating system gave, such as ``No space left on device``."""
    return os.strerror(error.errno) if error.errno else str(error).split("\n", maxsplit=1)[0]
