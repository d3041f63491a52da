"""Histories: folders of Parquet files that streaming queries read, one file a micro-batch.

Spark takes the files of a folder in the order of their modification times, in milliseconds. The
functions here give every new file a later time than all files before it; whoever copies a history
has to keep the times (``cp -p``, ``rsync -t``). A query notices when they are wrong, because
arrival numbers then go down, and stops.

A file is read as soon as it has its name. Whoever writes one gives it a name that begins with
``.`` or ``_`` until it is complete; a query that meets an incomplete file stops, and reads it when
it is run again. A file that was complete once may not change any more.

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

DATA_FILES = "[!._]*.parquet"
"""The files of a history; others, such as those still being written, have hidden names."""
_STEP_NS = 1_000_000


class InputProblem(ValueError):  # noqa: N818 (a problem of the user, not a bug)
    """A source or a store that cannot be used; the message is one sentence for the user."""


def append(folder: Path, rows: pa.Table, name: str | None = None) -> Path:
    """Add a file to a history: complete or not there, and later than all others.

    ``name`` is the file's name without the ending; by default the number of the file. Raises
    :class:`InputProblem` when the folder cannot be written.
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
    except FileNotFoundError:  # what was read may be removed at any time
        return 0


def written_ns(path: str) -> int:
    """When a file of a history was written.

    Raises :class:`InputProblem` for a file of no length: Spark passes over it, for ever.
    """
    found = Path(path).stat()
    if not found.st_size:
        msg = f"{path} is empty, so it is not complete yet"
        raise InputProblem(msg)
    return found.st_mtime_ns


def require_later(first: int, last: int) -> None:
    """Refuse arrivals that begin with a number not above the last one that was read."""
    if first <= last:
        msg = (
            f"arrival number {first} comes after {last}: the files of a history"
            " are taken by modification time and must number arrivals in that order"
        )
        raise ValueError(msg)


def literal(path: str | Path) -> str:
    """A pattern for this path and no other one, where Spark takes patterns."""
    return re.sub(r"([\\\[\]{}*?,^])", r"\\\1", str(path))


def either(*folders: Path) -> str:
    """A pattern for some folders, and for no other ones, where Spark takes a path."""
    above = Path(os.path.commonpath([folder.parent for folder in folders]))
    # Hadoop resolves braces first and takes away what protects their content.
    names = ",".join(literal(literal(folder.relative_to(above))) for folder in folders)
    return f"{literal(above).rstrip('/')}/{{{names}}}"


def on_disk(path: str) -> str:
    """Where a file lies, by the name that Spark's source ``binaryFile`` gives it."""
    return re.sub("^file:/+", "/", path)  # nothing in it is encoded


def tidy(checkpoint: Path) -> None:
    """Remove what Spark left where it could not write down the first plan of a query.

    It takes these scratch files for those of another query, and never starts again.
    """
    plans = checkpoint / "offsets"
    if not any(plans.glob("[0-9]*")):
        with writing(plans):
            for path in plans.glob(".*.tmp*"):
                path.unlink()


@contextmanager
def complete(path: Path) -> Iterator[Path]:
    """A scratch file to write; at the end of the block it becomes ``path``, or is gone.

    Raises :class:`InputProblem` when it cannot be written.
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
    """Say in one sentence, an :class:`InputProblem`, why a folder cannot be written."""
    try:
        yield
    except OSError as error:
        msg = f"{folder} cannot be written: {why(error)}"
        raise InputProblem(msg) from error


@contextmanager
def reading(path: str | Path) -> Iterator[None]:
    """Say in one sentence, an :class:`InputProblem`, why a Parquet file cannot be read."""
    try:
        yield
    except pa.ArrowInvalid as error:
        msg = f"{path} is not a Parquet file, or it is not complete yet"
        raise InputProblem(msg) from error
    except OSError as error:
        msg = f"{path} cannot be read: {why(error)}"
        raise InputProblem(msg) from error


def why(error: OSError) -> str:
    """The reason that the operating system gave, such as ``No space left on device``."""
    return os.strerror(error.errno) if error.errno else str(error).split("\n", maxsplit=1)[0]
