"""A user's Parquet or CSV file as columns, with the number of every row in the file.

Rules of this file:

1. A file is opened and read once, because it may be a pipe or standard input.
2. Rows of a CSV file are numbered by the physical line in which they begin, the header is line 1;
   blank lines are no rows. Rows of a Parquet file are numbered from 1.
3. A line with which no row can begin is set aside, and reading goes on with the next line: a quote
   that is never closed would otherwise swallow the rest of the file.
4. The cells of a CSV file are text; an empty cell is missing.
"""

import csv
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from io import BytesIO, StringIO
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet
from pyarrow.lib import ArrowException

from straggler.errors import UsageError
from straggler.inputs.archives import archive_of, unpacked
from straggler.inputs.columns import Columns
from straggler.inputs.set_aside import Flaw
from straggler.inputs.text_files import is_stream, name_of
from straggler.options import STDIO

STREAM_MAX = 1 << 28
"""Most bytes of a stream, and of what is packed in a file: a table takes 20 to 40 times as much."""
FIRST_BYTES = 1 << 16
"""Bytes that are read before the rest, because a device may be endless."""
HEAD_ROWS = 100
"""Rows among which a header is searched for that is not the first row."""
_MARKS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"\xef\xbb\xbf": "utf-8-sig"}
"""Encodings by the byte order mark of a file."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A table with the names of its columns, and the number of every row."""

    file: str
    """Name of the file in messages."""
    names: Sequence[str]
    """Names of the columns, without surrounding blanks."""
    numbers: NDArray[np.int64]
    """Number of every row."""
    unit: str
    """Kind of these numbers: ``line`` or ``row``."""
    flaws: Sequence[Flaw]
    """Lines that are no rows of the table, each with the reason."""
    read: Callable[[int], pa.Array]
    """Return a column by its position."""
    head: Sequence[tuple[int, list[str]]] = ()
    """The first rows of a CSV file as they are, each with its line."""

    def column(self, name: str) -> pa.Array:
        """Return a column; raise :class:`UsageError` if its name is that of two columns."""
        if self.names.count(name) > 1:
            raise UsageError(f"{self.file} has more than one column {name!r}")
        return self.read(self.names.index(name))


def read_frame(path: Path, columns: Columns) -> Frame:
    """Read a Parquet or CSV file; raise :class:`UsageError` if it is neither."""
    name = name_of(path)
    try:
        with _open(path) as file:
            first = file.read(FIRST_BYTES)
            if first.startswith(b"PAR1") and path.is_file():
                return _read_parquet(name, path)
            if b"\0" in first and first[:2] not in _MARKS and archive_of(first) is None:
                if not first.startswith(b"PAR1"):
                    raise UsageError(f"{name} is neither a Parquet nor a CSV file")
            elif path.suffix.lower() in {".parquet", ".pq"}:
                raise UsageError(f"{name} is not a Parquet file that can be read")
            data = first + file.read(STREAM_MAX if is_stream(path) else -1)
            if len(data) > STREAM_MAX and is_stream(path):
                raise UsageError(
                    f"{name} has no end in {STREAM_MAX >> 20:,} MiB; save it in a file"
                )
            if first.startswith(b"PAR1"):
                return _read_parquet(name, BytesIO(data))
            return _read_csv(name, unpacked(name, data, STREAM_MAX), columns)
    except OSError as error:
        raise UsageError(f"{name} cannot be read: {error.strerror or error}") from error


def _open(path: Path) -> "nullcontext[IO[bytes]] | IO[bytes]":
    if path == STDIO:
        if sys.stdin is None or sys.stdin.closed:
            raise UsageError("standard input is closed, so there is no input '-'")
        return nullcontext(sys.stdin.buffer)
    if not path.exists():
        raise UsageError(f"there is no file {str(path)!r}")
    if path.is_dir():
        raise UsageError(f"{str(path)!r} is a folder, not a Parquet or CSV file")
    return path.open("rb")


# --------------------------------------------------------------------------------------- Parquet


def _read_parquet(name: str, data: Path | IO[bytes]) -> Frame:
    try:
        # Read a single file, because a data set would add columns from the path.
        with parquet.ParquetFile(data) as file:
            table = file.read()
    except (ArrowException, OSError) as error:
        raise UsageError(f"{name} is not a Parquet file that can be read") from error
    names = [each.strip() for each in table.column_names]
    numbers = np.arange(1, table.num_rows + 1, dtype=np.int64)
    return Frame(name, names, numbers, "row", (), lambda at: _whole(table.column(at)))


def _whole(column: pa.ChunkedArray) -> pa.Array:
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):  # more text than one array can hold
        array = pa.concat_arrays([pa.array(each.to_pylist(), each.type) for each in array.chunks])
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


# ------------------------------------------------------------------------------------------- CSV


def _read_csv(name: str, data: bytes, form: Columns) -> Frame:
    flaws: list[Flaw] = []
    text = _decoded(name, data, form.encoding)
    numbered = _rows(text, form.separator, flaws, form.header or 1)
    begun, first = next(numbered, (0, []))
    if flaws and form.header is not None:
        raise UsageError(f"line {flaws[0].number} of {name} is no header: {flaws[0].reason}")
    if not begun:
        more = "" if form.header in (None, 1) else f" from line {form.header} on"
        raise UsageError(f"{name} is empty{more}")
    names = [each.strip() for each in first]
    kept, head = [], [(begun, first)]
    if form.header is None:
        names = [str(number) for number in range(1, len(first) + 1)]
        kept = [(begun, first)]
    for number, row in numbered:
        head += [(number, row)] if len(head) < HEAD_ROWS else []
        if len(row) == len(names):
            kept.append((number, row))
        else:
            flaws.append(Flaw(number, _fields(len(row), len(names), form.header is not None)))
    numbers = np.fromiter((number for number, _ in kept), np.int64, len(kept))

    def read(at: int) -> pa.Array:
        return pa.array([row[at] or None for _, row in kept], pa.large_string())

    return Frame(name, names, numbers, "line", flaws, read, head)


def _fields(found: int, expected: int, has_header: bool) -> str:
    whose = "its header" if has_header else "the first row"
    return f"{found:,} field{'' if found == 1 else 's'} where {whose} has {expected:,}"


def _decoded(name: str, data: bytes, encoding: str) -> str:
    encoding = next((each for mark, each in _MARKS.items() if data.startswith(mark)), encoding)
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        at = data[: error.start].count(b"\n") + 1
        raise UsageError(
            f"{name} is not {encoding}: byte {data[error.start]:#04x} in line {at};"
            " --encoding names another encoding, such as latin-1"
        ) from error


def _rows(
    text: str, separator: str, flaws: list[Flaw], line: int
) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows from a line on that are not blank, each with its first line.

    Add lines that are no rows to ``flaws``.
    """
    lines = list(StringIO(text, newline=""))  # which leaves the ends of lines as they are
    begun = line - 1
    while begun < len(lines):
        rest = map(lines.__getitem__, range(begun, len(lines)))
        skips = len(separator) > 1
        reader = csv.reader(rest, delimiter=separator[0], skipinitialspace=skips, strict=True)
        start, end = begun, begun
        try:
            for row in reader:
                end = start + reader.line_num
                # In a file of one column, "" is a row with an empty cell.
                if len(row) > 1 or any(map(str.strip, lines[begun:end])):
                    yield begun + 1, row
                begun = end
        except csv.Error as error:
            flaws.append(Flaw(begun + 1, _why(error)))
            begun += 1


def _why(error: csv.Error) -> str:
    said = str(error)
    if "expected after" in said:
        return "text after the closing quote of a field"
    if "field limit" in said:
        return f"a field of more than {csv.field_size_limit():,} characters, or a quote left open"
    return "a quote that is never closed"
