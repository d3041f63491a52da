"""Packed files: each kind is read within bounds, or refused in one sentence with its name."""

import bz2
import gzip
import io
import lzma
import sys
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from straggler.errors import UsageError
from straggler.inputs.frames import Format, read_frame
from straggler.inputs.tables import read_table
from straggler.options import STDIO
from tests.straggler.command import Straggler, assert_refused
from tests.straggler.test_text_files import Endless

TEXT = b"event_time,value\n1,2\n"
LIMIT = 1 << 17
NOT_READ = "is no {} archive of one file that can be read"


def with_arrow(kind: str) -> Callable[[bytes], bytes]:
    def pack(data: bytes) -> bytes:
        packed = pa.BufferOutputStream()
        with pa.CompressedOutputStream(packed, kind) as file:
            file.write(data)
        return bytes(packed.getvalue().to_pybytes())

    return pack


def zipped(data: bytes, names: tuple[str, ...] = ("data.csv",)) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(name, data)
    return packed.getvalue()


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zip": zipped,
    "zstd": with_arrow("zstd"),
    "lz4": with_arrow("lz4"),
}
each_kind = pytest.mark.parametrize("kind", PACKERS)


def write(folder: Path, data: bytes) -> Path:
    path = folder / "data.csv.packed"
    path.write_bytes(data)
    return path


def refusal(path: Path) -> str:
    with pytest.raises(UsageError) as refused:
        read_frame(path, Format(), LIMIT)
    return str(refused.value)


@each_kind
def test_packed_tables_are_read(tmp_path: Path, kind: str) -> None:
    assert read_table(write(tmp_path, PACKERS[kind](TEXT))).events[0].value == 2
    buffer = io.BytesIO()
    parquet.write_table(pa.table({"event_time": [1], "value": [2.0]}), buffer)
    assert read_table(write(tmp_path, PACKERS[kind](buffer.getvalue()))).events[0].value == 2
    sentence = refusal(write(tmp_path, PACKERS[kind](b"a\0b")))
    assert sentence == "data.csv.packed is neither a Parquet nor a CSV file"


@each_kind
def test_half_an_archive_is_named(tmp_path: Path, kind: str) -> None:
    data = PACKERS[kind](TEXT)
    path = write(tmp_path, data[: len(data) // 2])
    assert refusal(path) == f"data.csv.packed {NOT_READ.format(kind)}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("packed")


@given(
    kind=st.sampled_from(sorted(PACKERS)),
    rows=st.integers(1, 300),
    places=st.lists(st.tuples(st.integers(6, 600), st.integers(1, 255)), min_size=1, max_size=4),
)
def test_a_damaged_archive_is_read_or_named(
    folder: Path, kind: str, rows: int, places: list[tuple[int, int]]
) -> None:
    data = bytearray(PACKERS[kind](TEXT + b"".join(b"%d,%d\n" % (n, n * n) for n in range(rows))))
    for place, change in places:
        data[6 + (place - 6) % (len(data) - 6)] ^= change
    path = write(folder, bytes(data))
    said = "data.csv.packed"
    try:
        read_frame(path, Format(), LIMIT)  # not every kind has a checksum
    except UsageError as error:
        said = str(error)
    assert "data.csv.packed" in said


def changed(data: bytes, place: int, fresh: bytes) -> bytes:
    """Return a zip archive with a changed field of its file, in both headers."""
    central = data.index(b"PK\x01\x02")
    for start in (place + 6, central + place + 8):
        data = data[:start] + fresh + data[start + len(fresh) :]
    return data


def body(data: bytes, place: int) -> bytes:
    return data[:place] + b"\xff" * 20 + data[place + 20 :]


DAMAGED = {
    "broken deflate": (body(gzip.compress(TEXT * 9), 10), "gzip"),
    "broken deflate in zip": (body(zipped(TEXT * 9), 38), "zip"),
    "password": (changed(zipped(TEXT), 0, b"\x01\x00"), "zip"),
    "unknown method": (changed(zipped(TEXT), 2, b"\x63\x00"), "zip"),
    "two files": (zipped(TEXT, ("a.csv", "b.csv")), "zip"),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_an_archive_that_cannot_be_read_is_one_sentence(
    straggler: Straggler, tmp_path: Path, damage: str
) -> None:
    data, kind = DAMAGED[damage]
    path = write(tmp_path, data)
    done = straggler("workload", "slack", "--input", str(path), "--output", "-")
    assert_refused(done, f"data.csv.packed {NOT_READ.format(kind)}")


@pytest.mark.parametrize(
    ("mark", "kind"),
    [(b"7z\xbc\xaf\x27\x1c", "7z"), (b"Rar!\x1a\x07\x01", "rar"), (b"\x1f\x9d\x90", "compress")],
)
def test_an_archive_of_another_kind_is_named(tmp_path: Path, mark: bytes, kind: str) -> None:
    sentence = refusal(write(tmp_path, mark + b"\0\0packed"))
    assert sentence == (
        f"data.csv.packed is a {kind} archive, which is not read here; unpack it first"
    )


# ------------------------------------------------------------------------------ without an end


@each_kind
def test_an_archive_that_unpacks_to_any_size_is_refused_in_bounded_memory(
    tmp_path: Path, kind: str
) -> None:
    path = write(tmp_path, PACKERS[kind](TEXT + b"1,2\n" * (8 << 20)))  # 32 MiB
    tracemalloc.start()
    sentence = refusal(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sentence == ("data.csv.packed has no end in 0.125 MiB, unpacked; unpack it into a file")
    assert peak < 16 << 20  # xz has a dictionary of 8 MiB


@pytest.mark.parametrize("head", [b"PAR1", b"PAR1" + b"\0" * 99, b"a,b\n", gzip.compress(b"")])
@given(repeated=st.binary(min_size=1, max_size=9))
def test_standard_input_without_an_end_is_refused(head: bytes, repeated: bytes) -> None:
    endless = Endless(head, repeated)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(endless, 1 << 10)))
        sentence = refusal(STDIO)
    assert sentence in (
        "standard input has no end in 0.125 MiB; save it in a file",
        "standard input is neither a Parquet nor a CSV file",
    )
    assert endless.read_bytes <= 2 * LIMIT
