"""Files and folders on any file system that the driver and all workers share.

A :class:`Location` is used like a ``pathlib.Path``. Every operation goes through ``pyarrow.fs``, on
the driver and on workers alike, so Spark needs no connector for histories and stores; only Spark's
own checkpoint does.

    /data/x, file:///data/x      a local or mounted file system
    s3://bucket/x?region=...     S3; ``s3a`` is the same

Parameters of an S3 address are those of ``pyarrow.fs.S3FileSystem``. Credentials do not belong
there; they come from the environment or from the files of AWS.

Rules of this file:

* A file appears under its name when it is complete, or not at all: by renaming a scratch file where
  that is atomic, by writing it with one request on S3.
* A file that must be new never replaces another one: a local file gets its name by a hard link, and
  S3 takes a conditional request. Only on file systems without hard links is the name looked up
  first, in a step of its own.
* Every process sees a written file at once. S3 has guaranteed this since 2020; NFS guarantees it
  for files that are opened after the write.
"""

import errno
import os
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, urlsplit

import pyarrow as pa
from pyarrow import fs


class InputProblem(ValueError):  # noqa: N818 (a problem of the user, not a bug)
    """A source or a store cannot be used; the message is one sentence for the user."""


class _NameTaken(Exception):  # noqa: N818 (becomes an InputProblem)
    """A file that must be new is there already."""


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A file or a folder."""

    path: str
    """Absolute path in its file system; on S3 it begins with the bucket."""
    system: str = ""
    """``s3:`` and the parameters of the address, as in ``s3:?region=x``; empty for local paths."""

    def __truediv__(self, name: str) -> "Location":
        """Return the location of a file or a folder in this folder."""
        return Location(f"{self.path.rstrip('/')}/{name}", self.system)

    def __str__(self) -> str:
        """Return the address, as :func:`locate` reads it."""
        return self.path if self.is_local else f"s3://{self.path}{self.system.removeprefix('s3:')}"

    @property
    def is_local(self) -> bool:
        """Return whether the operating system knows this path."""
        return not self.system

    @property
    def s3_client(self) -> dict[str, str]:
        """Region and endpoint of an address on S3, if it names them, for clients but Arrow's."""
        given = dict(parse_qsl(self.system.partition("?")[2]))
        endpoint = given.get("endpoint_override", "")
        if endpoint and "://" not in endpoint:
            endpoint = f"{given.get('scheme', 'https')}://{endpoint}"
        named = {"region": given.get("region", ""), "endpoint": endpoint}
        return {name: value for name, value in named.items() if value}

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]

    @property
    def stem(self) -> str:
        """The name without its ending."""
        return self.name.rsplit(".", maxsplit=1)[0]

    @property
    def parent(self) -> "Location":
        """The folder that holds this file or folder."""
        return Location(self.path.rsplit("/", maxsplit=1)[0] or "/", self.system)

    @property
    def files(self) -> fs.FileSystem:
        """The file system, as pyarrow's functions take it."""
        return _connect(self.system)

    @property
    def for_spark(self) -> str:
        """The address as Spark and Hadoop take it, whatever their default file system is."""
        return f"file:{self.path}" if self.is_local else f"s3a://{self.path}"

    def info(self) -> fs.FileInfo:
        """Return type, size and modification time."""
        with reading(self):
            return self.files.get_file_info(self.path)

    def exists(self) -> bool:
        """Return whether there is a file or a folder."""
        return bool(self.info().type != fs.FileType.NotFound)

    def is_folder(self) -> bool:
        """Return whether there is a folder; on S3, whether there is anything in it."""
        return bool(self.info().type == fs.FileType.Directory)

    def entries(self, pattern: str = ".*") -> list[fs.FileInfo]:
        """Return the files and folders in a folder, ordered by path.

        Their whole names match ``pattern``, a regular expression. One that says all of a name
        leaves out the copies that people make beside a file. A folder that does not exist has no
        entries.
        """
        chosen = fs.FileSelector(self.path, allow_not_found=True)
        with reading(self):
            found = self.files.get_file_info(chosen)
        matching = [each for each in found if re.fullmatch(pattern, each.base_name)]
        return sorted(matching, key=lambda each: str(each.path))

    def children(self, pattern: str = ".*") -> list["Location"]:
        """Return the files and folders in a folder whose whole names match a pattern, by name."""
        return [Location(each.path, self.system) for each in self.entries(pattern)]

    def read_bytes(self) -> bytes:
        """Return the content of a file."""
        with self.open() as file:
            return bytes(file.readall())

    def open(self) -> pa.NativeFile:
        """Open a file for reading; a local one is mapped into memory."""
        return self.files.open_input_file(self.path)

    def find(self) -> pa.NativeFile | None:
        """Open a file as :meth:`open` does; return ``None`` if it is not there."""
        try:
            return self.open()
        except FileNotFoundError:
            return None

    def make(self) -> None:
        """Create this folder, and its parents if needed."""
        self.files.create_dir(self.path, recursive=True)

    def write_bytes(self, data: bytes | pa.Buffer, *, is_new: bool = False) -> None:
        """Write a file, and its folder if needed; replace an existing file unless it must be new.

        Raise :class:`InputProblem` if it cannot be written, or must be new and is there already.
        """
        if is_new:
            scratch = self._scratch()
            scratch.write_bytes(data)
            scratch.publish(self)
            return
        with writing(self.parent), self.stream() as out:
            out.write(data)

    @contextmanager
    def stream(self) -> Iterator[pa.NativeFile]:
        """Yield a stream that writes a file, and its folder if needed.

        The file appears at the end of the block, and replaces an existing file. If the block fails,
        there is no new file; on S3 a truncated file may be left.
        """
        if not self.is_local:  # S3 has no folders, and shows whole files only
            with self.files.open_output_stream(self.path) as out:
                yield out
            return
        self.parent.make()
        scratch = self._scratch()
        try:
            with self.files.open_output_stream(scratch.path) as out:
                yield out
            scratch.move(self)
        except BaseException:
            with suppress(OSError):
                self.files.delete_file(scratch.path)
            raise

    def _scratch(self) -> "Location":
        # Writers on two machines, or in two containers, may have the same process number.
        return self.parent / f".{self.name}.{uuid.uuid4().hex}"

    def move(self, to: "Location") -> None:
        """Move a file to a name, in the same file system; replace an existing file."""
        with writing(to.parent):
            if self.is_local:
                to.parent.make()
            to.files.move(self.path, to.path)

    def publish(self, to: "Location") -> None:
        """Move a file to a name that no file has, in the same file system.

        Raise :class:`InputProblem`, and change no other file, if another file has the name, or if
        the file cannot be written. On S3 the content passes through this process.
        """
        try:
            with writing(to.parent):
                if self.is_local:
                    to.parent.make()
                    _give_new_name(self.path, to.path)
                else:
                    _create_object(to, self.read_bytes())
        except _NameTaken as error:
            msg = f"{to} is there already: another process has written it, and it stays as it is"
            raise InputProblem(msg) from error
        finally:
            self.remove()

    def remove(self) -> None:
        """Remove a file or a folder with everything in it, if it is there."""
        kind = self.info().type
        with writing(self.parent), suppress(FileNotFoundError):  # another process removed it first
            if kind == fs.FileType.Directory:
                self.files.delete_dir(self.path)
            elif kind != fs.FileType.NotFound:
                self.files.delete_file(self.path)


Address: TypeAlias = str | Path | Location
"""Address of a file or a folder: a path, or a URL such as ``s3://bucket/folder``."""
_REMOTE = re.compile(r"(?!file:/?(?!/))(?:[A-Za-z][A-Za-z0-9+.-]+:/|.*://)")
"""Begins the addresses that are no paths of this machine."""


def locate(where: Address) -> Location:
    """Return the location with an address.

    Raise :class:`InputProblem` for a file system that is not supported.
    """
    if isinstance(where, Location):
        return where
    text = str(where)
    if text.startswith("file:///"):
        return _locate_path(text.removeprefix("file://"))
    # A path of pathlib keeps one slash of "s3://".
    if not _REMOTE.match(text):
        return _locate_path(text.removeprefix("file:"))
    parts = urlsplit(text, allow_fragments=False)  # "#" is a character like any other
    parameters = f"?{parts.query}" if parts.query else ""
    path = os.path.normpath(f"/{parts.path.lstrip('/')}").rstrip("/")
    if parts.scheme in ("s3", "s3a") and parts.netloc:
        return Location(f"{parts.netloc}{path}", f"s3:{parameters}")
    msg = f"{text} is not on a supported file system; supported are local paths and s3://"
    raise InputProblem(msg)


def _locate_path(path: str) -> Location:
    """Return a local location without "..", nor "//", which POSIX permits at the beginning."""
    return Location(re.sub("^//", "/", os.path.abspath(path)))


@lru_cache
def _connect(system: str) -> fs.FileSystem:
    if not system:
        return fs.LocalFileSystem(use_mmap=True)
    try:
        # With this option, writing a small file takes a single request.
        quick = ("&" if "?" in system else "?") + "allow_delayed_open=true"
        return fs.FileSystem.from_uri(f"s3://bucket{system.removeprefix('s3:')}{quick}")[0]
    except (OSError, ValueError) as error:
        reason = str(error).split("\n", maxsplit=1)[0]
        msg = f"the file system {system} cannot be reached: {reason}"
        raise InputProblem(msg) from error


_WITHOUT_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
"""Errors of hard links on file systems that have none."""


def _give_new_name(path: str, to: str) -> None:
    """Move a file to a name. Raise :class:`_NameTaken` if another file has it."""
    try:
        os.link(path, to)
    except FileExistsError:
        if not os.path.samefile(path, to):  # else NFS has repeated our own request
            raise _NameTaken from None
    except OSError as error:
        if error.errno not in _WITHOUT_LINKS:
            raise
        if os.path.lexists(to):
            raise _NameTaken from None
        os.rename(path, to)


def _create_object(to: Location, content: bytes) -> None:
    """Write an object on S3 in one request. Raise :class:`_NameTaken` if it is there."""
    from obstore import put  # only who publishes on S3 needs this library
    from obstore.exceptions import AlreadyExistsError, BaseError
    from obstore.store import S3Store

    bucket, _, key = to.path.partition("/")
    is_plain = to.s3_client.get("endpoint", "").startswith("http://")
    options: dict[str, Any] = {**to.s3_client, "client_options": {"allow_http": is_plain}}
    try:
        put(S3Store(bucket, **options), key, content, mode="create")
    except AlreadyExistsError as error:
        raise _NameTaken from error
    except BaseError as error:
        raise OSError(str(error)) from error


@contextmanager
def writing(folder: Location | Path) -> Iterator[None]:
    """Turn an ``OSError`` of the block into an :class:`InputProblem` about writing ``folder``."""
    try:
        yield
    except OSError as error:
        msg = f"{folder} cannot be written: {reason_of(error)}"
        raise InputProblem(msg) from error


@contextmanager
def reading(path: object) -> Iterator[None]:
    """Turn an error of the block into an :class:`InputProblem` about reading a Parquet file."""
    try:
        yield
    except pa.ArrowInvalid as error:
        msg = f"{path} is not a Parquet file, or it is not complete yet"
        raise InputProblem(msg) from error
    except OSError as error:
        msg = f"{path} cannot be read: {reason_of(error)}"
        raise InputProblem(msg) from error


def reason_of(error: OSError) -> str:
    """Return the reason that the operating system gave, such as ``No space left on device``."""
    return os.strerror(error.errno) if error.errno else str(error).split("\n", maxsplit=1)[0]
