"""Packed files: unpacked up to a limit, because two megabytes may unpack to any size."""

import bz2
import gzip
import lzma
import zipfile
import zlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from io import BytesIO
from typing import IO, Protocol

import pyarrow as pa

from straggler.errors import UsageError

CHUNK = 1 << 20
"""Most bytes of one read."""
_DAMAGE = (
    OSError,
    EOFError,
    ValueError,  # also Arrow's
    RuntimeError,  # a zip archive with a password, or packed with a method unknown here
    lzma.LZMAError,
    zipfile.BadZipFile,
    zlib.error,
)
"""Errors that libraries raise for archives that they cannot read."""


def _unzip(file: IO[bytes]) -> IO[bytes]:
    archive = zipfile.ZipFile(file)
    (name,) = archive.namelist()
    return archive.open(name)


def _with_arrow(kind: str) -> Callable[[IO[bytes]], pa.CompressedInputStream]:
    return lambda file: pa.CompressedInputStream(file, kind)


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


_Opener = Callable[[IO[bytes]], AbstractContextManager[_Readable]]
_ARCHIVES: dict[bytes, tuple[str, _Opener]] = {
    b"\x1f\x8b": ("gzip", lambda file: gzip.GzipFile(fileobj=file)),
    b"BZh": ("bzip2", bz2.open),
    b"\xfd7zXZ\x00": ("xz", lzma.open),
    b"PK\x03\x04": ("zip", _unzip),
    b"\x28\xb5\x2f\xfd": ("zstd", _with_arrow("zstd")),
    b"\x04\x22\x4d\x18": ("lz4", _with_arrow("lz4")),
}
"""Archives by their first bytes: name, and the function that opens the file in them."""
_UNREADABLE = {b"7z\xbc\xaf\x27\x1c": "7z", b"Rar!\x1a\x07": "rar", b"\x1f\x9d": "compress"}
"""Archives that are named and refused, by their first bytes."""


def is_packed(first: bytes) -> bool:
    """Say whether a file that begins with these bytes is an archive of a known kind."""
    return first.startswith((*_ARCHIVES, *_UNREADABLE))


def unpack(name: str, data: bytes, most: int) -> bytes:
    """Return the one file in an archive; raise :class:`UsageError` if it has more than ``most``."""
    for mark, kind in _UNREADABLE.items():
        if data.startswith(mark):
            raise UsageError(f"{name} is a {kind} archive, which is not read here; unpack it first")
    kind, opened = next(each for mark, each in _ARCHIVES.items() if data.startswith(mark))
    try:
        with opened(BytesIO(data)) as file:
            unpacked = read_up_to(file, most + 1)
    except _DAMAGE as error:
        raise UsageError(f"{name} is no {kind} archive of one file that can be read") from error
    if len(unpacked) > most:
        raise UsageError(f"{name} has no end in {in_mib(most)}, unpacked; unpack it into a file")
    return unpacked


def read_up_to(file: _Readable, most: int) -> bytes:
    """Return what a file has, at most so many bytes of it."""
    read = bytearray()
    while chunk := file.read(max(0, min(CHUNK, most - len(read)))):
        read += chunk
    return bytes(read)


def in_mib(size: int) -> str:
    """Write a number of bytes in MiB."""
    return f"{size / (1 << 20):,.4g} MiB"
