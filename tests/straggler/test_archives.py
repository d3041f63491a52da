"""Packed files: read whole, or refused in one sentence, in bounded memory."""

import bz2
import gzip
import lzma
import zipfile
from contextlib import suppress
from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from straggler.errors import UsageError
from straggler.inputs import frames
from straggler.inputs.archives import unpacked
from straggler.inputs.tables import read_table

TEXT = b"event_time,value\n" + b"".join(b"%d,%d\n" % (n, n * n % 97) for n in range(200))


def zipped(data: bytes, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w", method) as archive:
        archive.writestr("data.csv", data)
    return packed.getvalue()


def by_arrow(data: bytes, codec: str) -> bytes:
    packed = pa.BufferOutputStream()
    with pa.CompressedOutputStream(packed, codec) as stream:
        stream.write(data)
    found: bytes = packed.getvalue().to_pybytes()
    return found


PACKED = {
    "gzip": gzip.compress(TEXT),
    "bzip2": bz2.compress(TEXT),
    "xz": lzma.compress(TEXT),
    "zip": zipped(TEXT),
    "zstd": by_arrow(TEXT, "zstd"),
    "lz4": by_arrow(TEXT, "lz4"),
}


@pytest.mark.parametrize("kind", PACKED)
def test_a_packed_file_is_read(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "data.csv.packed"
    path.write_bytes(PACKED[kind])
    assert len(read_table(path).events) == 200
    path.write_bytes(PACKED[kind][: len(PACKED[kind]) // 2])
    with pytest.raises(UsageError, match=rf"is no {kind} archive of one file that can be read"):
        read_table(path)


@given(
    kind=st.sampled_from(sorted(PACKED)),
    at=st.integers(0, 1 << 16),
    wrong=st.binary(min_size=1, max_size=40),
)
def test_a_damaged_archive_is_read_whole_or_refused(kind: str, at: int, wrong: bytes) -> None:
    data = bytearray(PACKED[kind])
    at = 8 + at % (len(data) - 8)
    data[at : at + len(wrong)] = wrong
    with suppress(UsageError):  # no other error; a byte may also mean nothing
        unpacked("data.csv", bytes(data), 1 << 20)


@pytest.mark.parametrize("kind", PACKED)
def test_no_more_is_unpacked_than_may_be(kind: str) -> None:
    assert unpacked("data.csv", PACKED[kind], len(TEXT)) == TEXT
    with pytest.raises(UsageError, match=r"^what is packed in data.csv has more than 0 MiB$"):
        unpacked("data.csv", PACKED[kind], len(TEXT) - 1)


def marked(data: bytes, local: int, central: int, value: int) -> bytes:
    """Return a zip archive with another flag or method in both of its headers."""
    changed = bytearray(data)
    for at in (local, data.index(b"PK\x01\x02") + central):
        changed[at] = value
    return bytes(changed)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (marked(PACKED["zip"], 6, 8, 1), "is no zip archive of one file that can be read"),
        (marked(PACKED["zip"], 8, 10, 99), "is no zip archive of one file that can be read"),
        (b"7z\xbc\xaf\x27\x1c" + bytes(99), "is a 7z archive, which is not read; unpack it"),
        (b"Rar!\x1a\x07" + bytes(99), "is a rar archive, which is not read; unpack it"),
    ],
    ids=["encrypted", "unknown method", "7z", "rar"],
)
def test_an_archive_that_is_not_read_is_named(tmp_path: Path, data: bytes, sentence: str) -> None:
    path = tmp_path / "data.csv"
    path.write_bytes(data)
    with pytest.raises(UsageError) as refused:
        read_table(path)
    assert str(refused.value) == f"data.csv {sentence}"


@pytest.mark.parametrize("first", [b"PAR1", b"event_time,value\n1,1\n"])
def test_an_endless_stream_ends_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, first: bytes
) -> None:
    path = tmp_path / "endless"
    path.write_bytes(first + b"a" * 3_000_000)
    monkeypatch.setattr(frames, "is_stream", lambda _: True)
    monkeypatch.setattr(Path, "is_file", lambda _: False)
    monkeypatch.setattr(frames, "STREAM_MAX", 1 << 20)
    with pytest.raises(UsageError, match=r"^endless has no end in 1 MiB; save it in a file$"):
        read_table(path)
