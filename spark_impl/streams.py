"""Histories: folders of Parquet files that streaming queries read, one file a micro-batch.

Spark takes the files of a folder in the order of their modification times, in milliseconds. The
functions here give every new file a later time than all files before it; whoever copies a history
has to keep the times (``cp -p``, ``rsync -t``). A query notices when they are wrong, because
arrival numbers then go down, and stops.

:mod:`spark_impl.landing` makes a history of any streaming DataFrame.
"""

import os
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

_STEP_NS = 1_000_000


class InputProblem(ValueError):  # noqa: N818 (a problem of the user, not a bug)
    """A source or a store that cannot be used; the message is one sentence for the user."""


def append(folder: Path, rows: pa.Table, name: str | None = None) -> Path:
    """Add a file to a history: complete or not there, and later than all others.

    ``name`` is the file's name without the ending; by default the number of the file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    present = list(folder.glob("[!._]*.parquet"))
    path = folder / f"{name or format(len(present), '08d')}.parquet"
    scratch = folder / f".{path.name}.{os.getpid()}"
    pq.write_table(rows, scratch, compression="zstd")
    latest = max((each.stat().st_mtime_ns for each in present), default=0)
    when = max(latest // _STEP_NS * _STEP_NS + _STEP_NS, time.time_ns() // _STEP_NS * _STEP_NS)
    os.utime(scratch, ns=(when, when))
    scratch.replace(path)
    return path
