"""Histories: folders of numbered Parquet files that streaming queries read, one a micro-batch.

    00000000.parquet, 00000001.parquet, ...    one file each
    00000000-00000099.parquet                  a hundred of them, merged by :func:`compact`

Rules of this file:

* Files are read in the order of their numbers, which have no gaps. The first number may be any.
* A file has its name when it is complete, and never changes: its writer creates the name, which no
  other file may have. A merged file has the row groups of
  its files, so that each of them can still be read alone.
* A history has one writer at a time.

:mod:`spark_impl.runtime.landing` makes a history of any streaming DataFrame.
"""

import json
import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from spark_impl.runtime.storage import Address, InputProblem, Location, NameTaken, locate, reading

COLUMNS = {
    "seq": pa.int64(),
    "source_id": pa.int64(),
    "key": pa.string(),
    "event_time_us": pa.int64(),
    "value": pa.float64(),
    "arrival_us": pa.int64(),
}
"""Columns of a history, besides the grouping columns of the caller."""
SOURCE_TEXT = "source_text"
"""The column of the identities as the source has them, if they are text."""
VALUE = "value"
"""The column of the values, unless a history has several."""
_NAME = re.compile(r"(\d{8,})(?:-(\d{8,}))?\.parquet")
FORMAT = {"compression": "zstd", "write_page_checksum": True}
"""Settings of a Parquet file. Every reader compares the checksums of what it reads."""
MERGED = 100
"""Number of files that become one."""
_ROWS_MERGED = 4_000_000
"""Most rows of a merged file, which is built in memory."""
NOTE, DIGESTS = b"straggler.follows", b"straggler.digests"
"""Metadata of a file about the one before it, and of a merged file about each of its files
(:mod:`spark_impl.runtime.history_chain`)."""
_GROUPS = b"straggler.row_groups"
"""Metadata of a merged file: the number of row groups of each of its files."""


def history_schema(
    *groups: pa.Field, values: Sequence[str] = (VALUE,), has_texts: bool = False
) -> pa.Schema:
    """Return the schema of a history with some grouping columns in front.

    ``values`` are the columns of the values. With ``has_texts`` there is a column of identities as
    the source has them.
    """
    fields = [pa.field(*each) for each in COLUMNS.items()]
    place = list(COLUMNS).index(VALUE)
    fields[place : place + 1] = [pa.field(name, COLUMNS[VALUE]) for name in values]
    fields += [pa.field(SOURCE_TEXT, pa.string())] * has_texts
    return pa.schema([*groups, *fields])


def name_values(value: str | Sequence[str]) -> dict[str, str]:
    """Return the columns of a history for the values of a stream's columns.

    Values of a single column are in :data:`VALUE`; the values of ``watts``, one of several, are in
    ``value_watts``, whatever a column is called. Their order does not matter.
    """
    if isinstance(value, str):
        return {VALUE: value}
    return {f"{VALUE}_{name}": name for name in sorted(value)}


def file_of(folder: Location, number: int) -> Location:
    """Return the file of a history with a number; :func:`open_piece` finds it if it was merged."""
    return folder / f"{number:08d}.parquet"


class _File(NamedTuple):
    """A file, and the numbers that it holds."""

    first: int
    last: int
    file: Location


def _found(folder: Location) -> list[_File]:
    """Return every file of a history, in order, whether or not it was merged with others.

    Raise :class:`InputProblem` for a Parquet file without a number, which would never be read.
    """
    found = []
    for file in folder.children(r"[^._].*\.parquet"):
        name = _NAME.fullmatch(file.name)
        if name is None:
            msg = f"{file} has no number; the files of a history are called 00000000.parquet, ..."
            raise InputProblem(msg)
        found.append(_File(int(name[1]), int(name[2] or name[1]), file))
    return sorted(found, key=lambda each: (each.first, -each.last))


def _listed(folder: Location) -> list[_File]:
    """Return the files of a history, in order; of two with the same numbers the merged one.

    Raise :class:`InputProblem` for a Parquet file without a number, and for a gap.
    """
    chosen: list[_File] = []
    for each in _found(folder):
        if not chosen or each.last > chosen[-1].last:
            chosen.append(each)
    for before, after in pairwise(chosen):
        if after.first != before.last + 1:
            missing = file_of(folder, before.last + 1)
            msg = f"{missing} is missing, but {after.file.name} is there"
            raise InputProblem(msg)
    return chosen


def numbers(folder: Location) -> range:
    """Return the numbers of a history. Raise :class:`InputProblem` if one is missing."""
    files = _listed(folder)
    return range(files[0].first, files[-1].last + 1) if files else range(0)


def next_number(folder: Location) -> int:
    """Return the number of the file that comes next."""
    files = _listed(folder)
    return files[-1].last + 1 if files else 0


def files_of(folder: Location) -> list[Location]:
    """Return the files of a history, in order. Raise :class:`InputProblem` if one is missing."""
    return [each.file for each in _listed(folder)]


def holder_of(folder: Location, number: int) -> _File | None:
    """Return the file that holds a number, alone or merged, ``None`` if there is none."""
    alone = file_of(folder, number)
    if number >= 0 and alone.exists():
        return _File(number, number, alone)
    return next((each for each in _found(folder) if each.first <= number <= each.last), None)


class Piece(NamedTuple):
    """The rows of one number of a history."""

    address: Location
    file: pq.ParquetFile
    groups: range
    """Row groups of the file."""

    def batches(self, rows: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield some columns, at most ``rows`` rows at a time.

        Raise :class:`InputProblem` if the file was damaged.
        """
        with reading(self.address):
            yield from self.file.iter_batches(rows, [*self.groups], columns)


def open_piece(file: Location) -> Piece:
    """Open what :func:`file_of` returned, alone or in a merged file; keys are read as numbers.

    Raise :class:`InputProblem` if it cannot be read.
    """
    try:
        opened = open_parquet(file)
    except FileNotFoundError:
        return _merged_piece(file)
    return Piece(file, opened, range(opened.num_row_groups))


def _merged_piece(file: Location) -> Piece:
    number = int(file.stem)
    for each in _listed(file.parent):
        if each.first <= number <= each.last and each.file != file:
            opened = open_parquet(each.file)
            sizes = json.loads(opened.schema_arrow.metadata[_GROUPS])
            start = sum(sizes[: number - each.first])
            groups = range(start, start + sizes[number - each.first])
            return Piece(each.file, opened, groups)
    msg = f"{file} cannot be read: No such file or directory"
    raise InputProblem(msg)


def open_parquet(file: Location) -> pq.ParquetFile:
    """Open a Parquet file; keys are read as numbers if it has any.

    Raise :class:`InputProblem` if it cannot be read or has two columns of one name, of which
    neither is the right one, and ``FileNotFoundError`` if it is not there.
    """
    opened = _open_parquet(file)
    names = opened.schema_arrow.names
    for name in names:
        if names.count(name) > 1:
            msg = f"{file} has more than one column {name!r}"
            raise InputProblem(msg)
    return opened


def _open_parquet(file: Location) -> pq.ParquetFile:
    open_it = partial(
        pq.ParquetFile, file.path, filesystem=file.files, page_checksum_verification=True
    )
    try:
        return open_it(read_dictionary=["key"])
    except KeyError:  # whoever needs a column says that it is missing
        return open_it()
    except FileNotFoundError:
        raise
    except (OSError, pa.ArrowInvalid):
        with reading(file):
            raise


def compact(folder: Location, size: int | None = None) -> None:
    """Merge every full hundred of files but the newest; the writer of a history calls this.

    Merged files stay until the next hundred is merged: whoever has just listed them can read them
    for a while. Files with different columns are left alone. A history with more than four million
    rows in a hundred files is merged no more. ``size`` is another number than a hundred.
    """
    merged = size or MERGED
    listed = _listed(folder)
    single = [each.first for each in listed if each.first == each.last]
    end = listed[-1].last + 1 if listed else 0
    for first in range(
        -(-min(single, default=end) // merged) * merged, end - 2 * merged + 1, merged
    ):
        if first not in single:
            continue
        try:
            if not _merge_hundred(folder, range(first, first + merged)):
                break
        except FileNotFoundError:  # removed just now: see remove_below
            break


def _merge_hundred(folder: Location, merged: range) -> bool:
    """Merge some files, if their columns are the same, and remove those that were merged before.

    Return whether the files behind them may be merged, too.
    """
    from spark_impl.runtime.history_chain import digest_of  # which reads histories, too

    files = [
        pq.ParquetFile(path, filesystem=folder.files, page_checksum_verification=True)
        for path in (file_of(folder, number).path for number in merged)
    ]
    if sum(each.metadata.num_rows for each in files) > _ROWS_MERGED:
        return False
    target = folder / f"{merged[0]:08d}-{merged[-1]:08d}.parquet"
    try:
        with reading(folder):
            if not _merge(files, target, [digest_of(file_of(folder, each)) for each in merged]):
                return True
    except NameTaken:  # a merger that was given up has merged the same files
        return True
    found = _found(folder)
    if not {*merged} <= {each.first for each in found if each.first == each.last}:
        target.remove()  # it would bring back what was removed meanwhile
        return False
    needed = {each.first for each in _listed(folder) if each.first == each.last}
    for each in found:
        if each.first == each.last < merged[0] and each.first not in needed:
            each.file.remove()
    return True


def files_below(folder: Location, number: int) -> list[Location]:
    """Return the files of a history that hold only numbers below another one, in order.

    Raise :class:`InputProblem` if the history would have no file left. The last one says where its
    :class:`Landing` continues.
    """
    files = _listed(folder)
    most = files[-1].last if files else 0
    if number > most:
        msg = f"number is {number}; it can be at most {most}, because {folder} keeps its last file"
        raise InputProblem(msg)
    return [each.file for each in files if each.last < number]


def remove_below(folder: Location, number: int) -> None:
    """Remove the files of :func:`files_below`, from the lowest number upwards.

    The history is listed again behind the last one: meanwhile its writer may have merged some. A
    writer that merges later misses the files that it has read, and gives up.
    """
    while below := [each.file for each in _found(folder) if each.last < number]:
        for file in below:
            file.remove()


def _merge(opened: list[pq.ParquetFile], target: Location, digests: list[str]) -> bool:
    """Write one file with the row groups of some; return whether their columns are the same."""
    schema = opened[0].schema_arrow.remove_metadata()
    if any(each.schema_arrow.remove_metadata() != schema for each in opened):
        return False
    sizes = json.dumps([each.num_row_groups for each in opened])
    noted = {_GROUPS: sizes, DIGESTS: json.dumps(digests)}
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, schema.with_metadata(noted), **FORMAT) as out:
        for each in opened:
            for number in range(each.num_row_groups):
                out.write_table(each.read_row_group(number), row_group_size=1 << 30)
    target.write_bytes(sink.getvalue(), is_new=True)
    return True


def append(folder: Address, rows: pa.Table) -> Location:
    """Add the next file to a history and return it.

    Raise :class:`InputProblem`, and change nothing, if the folder cannot be written, or if another
    process writes the same number first.
    """
    from spark_impl.runtime.history_chain import note_of_next  # which reads histories, too

    history = locate(folder)
    number = next_number(history)
    file, note = file_of(history, number), note_of_next(history, number)
    noted = rows.replace_schema_metadata({**(rows.schema.metadata or {}), **note})
    write_parquet(noted, file, is_new=True)
    return file


def write_parquet(
    rows: pa.Table, file: Location, row_group: int | None = None, *, is_new: bool = False
) -> None:
    """Write a Parquet file, and its folder if needed."""
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, row_group_size=row_group, **FORMAT)
    file.write_bytes(sink.getvalue(), is_new=is_new)


def require_later(first: int, last: int) -> None:
    """Raise ``ValueError`` unless arrival number ``first`` is above ``last``, the last one read."""
    if first <= last:
        msg = (
            f"arrival number {first} comes after {last}: the files of a history must number"
            " arrivals in the order of their names"
        )
        raise ValueError(msg)
