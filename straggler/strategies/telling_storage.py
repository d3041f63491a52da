"""Files whose names are free, and those whose names are taken; requests to a query, and when."""

import errno
import os
from collections.abc import Callable, Mapping, Sequence
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq

from spark_impl.runtime.cell_arrays import shown
from spark_impl.runtime.cell_times import read_times
from spark_impl.runtime.histories import append, write_parquet
from spark_impl.runtime.landed_files import LastFile, require_same
from spark_impl.runtime.sources import HistoryReader
from spark_impl.runtime.storage import locate
from spark_impl.windows.arrival_files import read_request

LINKS = None
"""The file system has hard links."""


def _publish(given: tuple[str, int | None]) -> None:
    """Publish a file beside one called "a", where hard links fail with an error or do not."""
    name, code = given

    def link(path: str, to: str) -> None:
        raise OSError(code, "no link", path, None, to)

    with TemporaryDirectory() as folder:
        root = locate(folder)
        (root / "a").write_bytes(b"old")
        own = patch.object(os, "link", os.link if code is LINKS else link)
        try:
            with own:
                (root / name).write_bytes(b"new", is_new=True)
            assert (root / name).read_bytes() == b"new"
        finally:
            assert (root / "a").read_bytes() == b"old"
            found = {each.name for each in root.children()}
            assert found <= {"a", name}, found


def _link_twice(name: str) -> None:
    """Publish a file by a link that NFS makes, and then repeats."""
    link = os.link

    def twice(path: str, to: str) -> None:
        link(path, to)
        link(path, to)

    with patch.object(os, "link", twice):
        _publish((name, LINKS))


def _request(given: tuple[bool, Sequence[Sequence[str]]]) -> None:
    """Compare what a query reads in each micro-batch, and if a request is there after it."""
    is_mixed, due = given
    with TemporaryDirectory() as folder:
        history, requests = locate(folder) / "h", locate(folder) / "requests"
        for _ in range(2):
            append(history, pa.table({"seq": [0]}))
        reader = HistoryReader(history, requests, is_mixed=is_mixed)
        request = requests / "00000001-ab.parquet"
        request.write_bytes(b"")
        offset, found = reader.initialOffset(), []
        for _ in range(4):
            before, (files, offset) = offset, reader.read(offset)
            names = [(file,) for (file,) in files]
            assert before == offset or [*reader.readBetweenOffsets(before, offset)] == names
            found.append(
                [locate(file).stem[-2:] for (file,) in names] + ["kept"] * request.exists()
            )
    if found != due:
        raise ValueError(f"the micro-batches are {found}")


def flip(content: bytes) -> bytes:
    """Return a file with another last bit of its data."""
    column = pq.read_metadata(pa.BufferReader(content)).row_group(0).column(0)
    first = column.dictionary_page_offset or column.data_page_offset
    last = first + column.total_compressed_size - 1
    return content[:last] + bytes([content[last] ^ 1]) + content[last + 1 :]


def _reread(edit: Callable[[bytes], bytes]) -> None:
    """Read a request whose bytes were changed."""
    with TemporaryDirectory() as folder:
        file = locate(folder) / "00000001-ab.parquet"
        write_parquet(pa.table({"task": [3]}), file)
        file.write_bytes(edit(file.read_bytes()))
        assert read_request(file).column("task").to_pylist() == [3]


def _land_again(rows: int) -> None:
    """Land some rows of a micro-batch whose file has the arrival numbers 4 to 6."""
    require_same(locate("00000001.parquet"), LastFile(1, first=4, seq=6), rows)


def _show(given: tuple[int, str]) -> None:
    """Show a time in a list of times; Python has no value for one in a year beyond 9999."""
    number, text = given
    _, cell = shown(pa.array([0, number], pa.timestamp("us")))
    if str(cell) != text:
        raise ValueError(f"it is shown as {cell}")


def _read_time(text: str) -> None:
    """Read a text between numbers of seconds."""
    reason = read_times(pa.array(["1", text, "2"]), "s").reason[1].as_py()
    if reason is not None:
        raise ValueError(reason)


FAR_US, SHOWN = 1 << 61, "<value out of range: 2305843009213693952>"
STORED: Mapping[str, Callable[[Any], object]] = {
    "published": _publish,
    "linked twice": _link_twice,
    "requested": _request,
    "reread": _reread,
    "landed again": _land_again,
    "shown": _show,
    "dated": _read_time,
}
OF_STORAGE: Sequence[tuple[str, Any, Any, str]] = (
    ("published", ("b", LINKS), ("a", LINKS), "a is there already: another process has written it"),
    ("linked twice", "b", "a", "a is there already: another process has written it"),
    *(
        ("published", ("b", code), ("a", code), "a is there already: another process has written")
        for code in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)
    ),
    ("published", ("b", LINKS), ("b", errno.ENOSPC), "cannot be written: "),
    (
        "requested",
        (False, [["00", "kept"], ["ab", "kept"], ["01", "kept"], []]),
        (True, []),
        "[['00', 'kept'], ['01', 'ab', 'kept'], ['kept'], ['kept']]",
    ),
    ("shown", (0, "1970-01-01 00:00:00"), (FAR_US, ""), f"shown as {SHOWN}"),
    ("shown", (FAR_US, SHOWN), (0, SHOWN), "shown as 1970-01-01"),
    ("dated", "1.5", "2024-05-01T00:00:00Z", "is not a number of s; it looks like iso"),
    ("reread", bytes, flip, "CRC checksum verification failed"),
    (
        "landed again",
        3,
        2,
        "has 3 rows of micro-batch -1, of which 2 would land now: finish it with",
    ),
)
"""Actions: what each can be done with, what it just cannot be done with, and why."""
