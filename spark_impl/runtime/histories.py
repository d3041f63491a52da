"""Histories: folders of numbered Parquet files that streaming queries read, one a micro-batch.

    00000000.parquet, 00000001.parquet, ...

Rules of this file:

* Files are read in the order of their numbers, which have no gaps. The first number may be any.
* A history is only appended to: a file has its name when it is complete, and never changes. Its
  writer creates the name, which no other file may have.
* Each file notes the one before it (:mod:`spark_impl.runtime.history_chain`).

:mod:`spark_impl.runtime.landing` makes a history of any streaming DataFrame.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import pairwise
from typing import Any, NamedTuple, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from spark_impl.runtime.storage import Address, InputProblem, Location, locate, reading, writing

COLUMNS = {
    "seq": pa.int64(),
    "source_id": pa.int64(),
    "key": pa.string(),
    "event_time_us": pa.int64(),
    "value": pa.float64(),
    "arrival_us": pa.int64(),
}
"""Columns of a history, besides the grouping columns of the caller."""
REFUSED = pa.schema(
    [
        *((name, COLUMNS[name]) for name in ("seq", "key", "source_id", "event_time_us")),
        ("reason", pa.string()),
    ]
)
"""Columns of refused rows; what the input does not have is NULL."""
SOURCE_TEXT = "source_text"
"""The column of the identities as the source has them, if they are text."""
VALUE = "value"
"""The column of the values, unless a history has several."""
_NAME = re.compile(r"\d{8,}\.parquet")
_RISING = ("seq", "source_id", "event_time_us", "arrival_us")
"""Columns whose numbers are often close to the ones before them: a file has their differences."""


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
    """Return the file of a history with a number."""
    return folder / f"{number:08d}.parquet"


def files_of(folder: Location) -> list[Location]:
    """Return the files of a history, in order.

    Raise :class:`InputProblem` if one is missing, and for a Parquet file without a number, which
    would never be read.
    """
    files = folder.children(r"[^._].*\.parquet")
    for file in files:
        if _NAME.fullmatch(file.name) is None:
            msg = f"{file} has no number; the files of a history are called 00000000.parquet, ..."
            raise InputProblem(msg)
    files.sort(key=number_of)
    for before, after in pairwise(files):
        if number_of(after) != number_of(before) + 1:
            missing = file_of(folder, number_of(before) + 1)
            msg = f"{missing} is missing, but {after.name} is there"
            raise InputProblem(msg)
    return files


def number_of(file: Location) -> int:
    """Return the number of a file of a history."""
    return int(file.stem)


def numbers(folder: Location) -> range:
    """Return the numbers of a history. Raise :class:`InputProblem` if one is missing."""
    files = files_of(folder)
    return range(number_of(files[0]), number_of(files[-1]) + 1) if files else range(0)


class Follower:
    """Follows a history as it grows; it lists the folder once, however many files there are."""

    def __init__(self, folder: Location) -> None:
        self._folder = folder
        self._known = range(0)

    def numbers(self) -> range:
        """Return the numbers of the history. Raise :class:`InputProblem` if one is missing."""
        known, end = self._known, self._known.stop
        while known and file_of(self._folder, end).exists():
            end += 1
        ends = (known.start, True), (end + 1, False)
        if known and all(file_of(self._folder, at).exists() == there for at, there in ends):
            self._known = range(known.start, end)
        else:
            self._known = numbers(self._folder)
        return self._known


class Piece(NamedTuple):
    """Some row groups of a file."""

    address: Location
    file: pq.ParquetFile
    groups: range

    def batches(self, rows: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield some columns, at most ``rows`` rows at a time.

        Raise :class:`InputProblem` if the file was damaged.
        """
        with reading(self.address):
            yield from self.file.iter_batches(rows, [*self.groups], columns)


def open_piece(file: Location, groups: range | None = None) -> Piece:
    """Open a file, or some of its row groups; keys are read as numbers if it has any.

    Raise :class:`InputProblem` if it cannot be read, or has two columns of one name, of which
    neither is the right one.
    """
    with reading(file):
        try:
            opened = _open(file, ["key"])
        except KeyError:  # whoever needs a column says that it is missing
            opened = _open(file, None)
    names = opened.schema_arrow.names
    for name in names:
        if names.count(name) > 1:
            msg = f"{file} has more than one column {name!r}"
            raise InputProblem(msg)
    return Piece(file, opened, range(opened.num_row_groups) if groups is None else groups)


def read_footer(file: Location) -> pq.FileMetaData:
    """Return the footer of a Parquet file. Raise :class:`InputProblem` if it cannot be read."""
    with reading(file), file.open() as content:
        return pq.read_metadata(content)


def bounds_of(
    footer: pq.FileMetaData, columns: Collection[str], group: int | None = None
) -> dict[str, tuple[int, int]]:
    """Return the smallest and largest values of those of some columns for which a footer has them.

    They are those of a row group, or of all. Columns are known by their whole paths: a leaf of a
    struct may have the name of a column.
    """
    chosen = range(footer.num_row_groups) if group is None else [group]
    parts = [footer.row_group(number) for number in chosen]
    found = {}
    for place in range(footer.num_columns):
        stats = [part.column(place).statistics for part in parts]
        if (name := footer.schema.column(place).path) in columns and all(
            each is not None and each.has_min_max for each in stats
        ):
            found[name] = (min(each.min for each in stats), max(each.max for each in stats))
    return found


def _open(file: Location, numbered: list[str] | None) -> pq.ParquetFile:
    checked = {"page_checksum_verification": True}
    return pq.ParquetFile(file.path, filesystem=file.files, read_dictionary=numbered, **checked)


def files_below(folder: Location, number: int) -> list[Location]:
    """Return the files of a history with numbers below another one, in order.

    Raise :class:`InputProblem` if the history would have no file left. The last one says where its
    :class:`Landing` continues.
    """
    files = files_of(folder)
    most = number_of(files[-1]) if files else 0
    if number > most:
        msg = f"number is {number}; it can be at most {most}, because {folder} keeps its last file"
        raise InputProblem(msg)
    return [each for each in files if number_of(each) < number]


def append(folder: Address, rows: pa.Table) -> Location:
    """Add the next file to a history and return it.

    Raise :class:`InputProblem`, and change nothing, if the folder cannot be written, or if another
    process writes the same number first.
    """
    from spark_impl.runtime.history_chain import note_of_next  # which reads histories, too

    history = locate(folder)
    number = numbers(history).stop
    file, note = file_of(history, number), note_of_next(history, number)
    noted = rows.replace_schema_metadata({**(rows.schema.metadata or {}), **note})
    write_parquet(noted, file, is_new=True)
    return file


def file_format(schema: pa.Schema) -> dict[str, Any]:
    """Return the settings of a Parquet file; every reader compares the checksums of its pages."""
    packed = [each.name for each in schema if each.name in _RISING and each.type == pa.int64()]
    return {
        "compression": "zstd",
        "write_page_checksum": True,
        "column_encoding": dict.fromkeys(packed, "DELTA_BINARY_PACKED"),
        "use_dictionary": [name for name in schema.names if name not in packed],
    }


def write_parquet(rows: pa.Table, file: Location, *, is_new: bool = False) -> None:
    """Write a Parquet file, and its folder if needed."""
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, **file_format(rows.schema))
    file.write_bytes(sink.getvalue(), is_new=is_new)


def read_parquet(
    files: Sequence[Location], schema: pa.Schema, where: pc.Expression | None = None
) -> pa.Table:
    """Return the rows of some Parquet files that pass a filter, with the columns of ``schema``."""
    if not files:
        return schema.empty_table()
    # Imported here: processes that only write need not wait for this import.
    import pyarrow.dataset as ds

    checked = ds.ParquetFragmentScanOptions(page_checksum_verification=True)
    kind = ds.ParquetFileFormat(default_fragment_scan_options=checked)
    parts = [kind.make_fragment(file.path, file.files) for file in files]
    source = ds.FileSystemDataset(parts, schema, kind, files[0].files)
    with reading(files[0].parent):
        return source.to_table(columns=schema.names, filter=where)


class RowFile:
    """A Parquet file that appears at the end of a ``with`` block, and not at all without rows."""

    def __init__(self, file: Location, schema: pa.Schema) -> None:
        self.file = file
        self._schema = schema
        self._open = ExitStack()
        self._writer: pq.ParquetWriter | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:  # what the block raised, which Python passes on
        with writing(self.file.parent):
            self._open.__exit__(*error)

    def write(self, rows: pa.Table, row_group: int | None = None) -> None:
        """Write some rows, by default as a row group."""
        with writing(self.file.parent):
            if self._writer is None:
                out = self._open.enter_context(self.file.stream())
                writer = pq.ParquetWriter(out, self._schema, **file_format(self._schema))
                self._writer = self._open.enter_context(writer)
            self._writer.write_table(rows, row_group)

    def note(self, metadata: Mapping[bytes, bytes]) -> None:
        """Add to the metadata of the file, if it has rows."""
        if self._writer is not None:
            self._writer.add_key_value_metadata(metadata)


def require_later(first: int, last: int) -> None:
    """Raise ``ValueError`` unless arrival number ``first`` is above ``last``, the last one read."""
    if first <= last:
        msg = (
            f"arrival number {first} comes after {last}: the files of a history must number"
            " arrivals in the order of their names"
        )
        raise ValueError(msg)
