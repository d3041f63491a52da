"""Packed files of users: one file in an archive, unpacked in bounded memory."""

import bz2
import gzip
import lzma
import zipfile
import zlib
from collections.abc import Callable
from contextlib import closing
from io import BufferedIOBase, BytesIO
from typing import IO, NamedTuple, TypeAlias

import pyarrow as pa

from straggler.errors import UsageError

CHUNK = 1 << 20


Unpacking: TypeAlias = IO[bytes] | BufferedIOBase
"""The file in an archive, opened."""


class Archive(NamedTuple):
    """A kind of archive."""

    name: str
    open: Callable[[BytesIO], Unpacking] | None
    """Return the file in an archive; without it such archives are not read."""


def _open_zip(packed: BytesIO) -> Unpacking:
    archive = zipfile.ZipFile(packed)
    (name,) = archive.namelist()
    return archive.open(name)


_KINDS = {
    b"\x1f\x8b": Archive("gzip", lambda packed: gzip.GzipFile(fileobj=packed)),
    b"BZh": Archive("bzip2", bz2.BZ2File),
    b"\xfd7zXZ\x00": Archive("xz", lzma.LZMAFile),
    b"PK\x03\x04": Archive("zip", _open_zip),
    b"\x28\xb5\x2f\xfd": Archive("zstd", lambda packed: pa.CompressedInputStream(packed, "zstd")),
    b"\x04\x22\x4d\x18": Archive("lz4", lambda packed: pa.CompressedInputStream(packed, "lz4")),
    b"7z\xbc\xaf\x27\x1c": Archive("7z", None),
    b"Rar!\x1a\x07": Archive("rar", None),
}
"""Archives by their first bytes."""
_DAMAGED = (
    *(OSError, EOFError, ValueError, RuntimeError),  # which an encrypted zip raises
    *(zlib.error, lzma.LZMAError, zipfile.BadZipFile),
)


def archive_of(data: bytes) -> Archive | None:
    """Return the kind of archive that data begins like."""
    return next((each for mark, each in _KINDS.items() if data.startswith(mark)), None)


def unpacked(name: str, data: bytes, bytes_max: int) -> bytes:
    """Return the file in an archive, or the data if they are none.

    Raise :class:`UsageError` with the ``name`` of the file if the archive cannot be read, or if
    what is in it has more than ``bytes_max`` bytes; no more than that is unpacked.
    """
    archive = archive_of(data)
    if archive is None:
        return data
    if archive.open is None:
        raise UsageError(f"{name} is a {archive.name} archive, which is not read; unpack it")
    found = bytearray()
    try:
        with closing(archive.open(BytesIO(data))) as file:
            while len(found) <= bytes_max and (chunk := file.read(CHUNK)):
                found += chunk
    except _DAMAGED as error:
        msg = f"{name} is no {archive.name} archive of one file that can be read"
        raise UsageError(msg) from error
    if len(found) > bytes_max:
        raise UsageError(f"what is packed in {name} has more than {bytes_max >> 20:,} MiB")
    return bytes(found)
