"""Histories: folders of numbered Parquet files that streaming queries read, one a micro-batch.

    00000000.parquet, 00000001.parquet, ...

Rules of this file:

* Files are read in the order of their numbers, which have no gaps. The first number may be any.
* A file has its name when it is complete, and never changes.
* A history has one writer at a time.

:mod:`spark_impl.runtime.landing` makes a history of any streaming DataFrame.
"""

import re
from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet as pq

from spark_impl.runtime.storage import Address, InputProblem, Location, locate

COLUMNS = {
    "seq": pa.int64(),
    "source_id": pa.int64(),
    "key": pa.string(),
    "event_time_us": pa.int64(),
    "value": pa.float64(),
    "arrival_us": pa.int64(),
}
"""Columns of a history, besides the grouping columns of the caller."""
_NAME = re.compile(r"\d{8,}\.parquet")


def history_schema(*groups: pa.Field) -> pa.Schema:
    """Return the schema of a history with some grouping columns in front."""
    return pa.schema([*groups, *(pa.field(*each) for each in COLUMNS.items())])


def file_of(folder: Location, number: int) -> Location:
    """Return the file of a history with a number."""
    return folder / f"{number:08d}.parquet"


def numbers(folder: Location) -> list[int]:
    """Return the numbers of all files of a history, in order.

    Raise :class:`InputProblem` for a Parquet file without a number, which would never be read, and
    for a gap.
    """
    found = []
    for file in folder.children("[!._]*.parquet"):
        if not _NAME.fullmatch(file.name):
            msg = f"{file} has no number; the files of a history are called 00000000.parquet, ..."
            raise InputProblem(msg)
        found.append(int(file.stem))
    found.sort()
    for number, after in pairwise(found):
        if after != number + 1:
            msg = f"{file_of(folder, number + 1)} is missing, but {after:08d}.parquet is there"
            raise InputProblem(msg)
    return found


def files_of(folder: Location) -> list[Location]:
    """Return the files of a history, in order. Raise the errors of :func:`numbers`."""
    return [file_of(folder, number) for number in numbers(folder)]


def append(folder: Address, rows: pa.Table) -> Location:
    """Add the next file to a history and return it.

    Raise :class:`InputProblem` if the folder cannot be written.
    """
    history = locate(folder)
    file = file_of(history, max(numbers(history), default=-1) + 1)
    write_parquet(rows, file)
    return file


def write_parquet(rows: pa.Table, file: Location) -> None:
    """Write a Parquet file, and its folder if needed."""
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, compression="zstd")
    file.write_bytes(sink.getvalue())


def require_later(first: int, last: int) -> None:
    """Raise ``ValueError`` unless arrival number ``first`` is above ``last``, the last one read."""
    if first <= last:
        msg = (
            f"arrival number {first} comes after {last}: the files of a history must number"
            " arrivals in the order of their names"
        )
        raise ValueError(msg)
