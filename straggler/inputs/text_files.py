"""Text files of users: read once, so that pipes will do, in bounded memory, and written whole."""

import sys
from collections.abc import Iterator
from contextlib import nullcontext
from io import BufferedReader
from pathlib import Path
from typing import cast

from model.vocabulary.settings import PlainData
from model.vocabulary.trace import parse_json, refuse_long_integers
from straggler.errors import UsageError, counted
from straggler.options import STDIO

LINE_MAX = 1 << 28
"""Most bytes of a line, and of a file that is one JSON value."""
FILE_MAX = 1 << 30
"""Most bytes of a file of lines."""
EMPTY_MAX = 1000
"""Most empty lines at the end of a file."""
CHUNK = 1 << 20


def name_of(path: Path) -> str:
    """Return the name of a file in messages."""
    return "standard input" if path == STDIO else path.name


def is_stream(path: Path) -> bool:
    """Say whether a path is standard input, a pipe or a device, which can be read once."""
    return path == STDIO or (path.exists() and not path.is_file() and not path.is_dir())


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file with their numbers, from 1.

    Some editors and languages write a byte order mark first, or empty lines at the end. Raise
    :class:`UsageError` for a file that cannot be read, and for one without an end.
    """
    empty, size = 0, 0
    for number, line in enumerate(_pieces(path, b"\n"), start=1):
        size += len(line)
        where = f"{name_of(path)}, line {number}"
        if size + number - 1 > FILE_MAX:  # with the ends of the lines before it
            raise UsageError(f"{where}: a file may have at most {FILE_MAX >> 20} MiB")
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise UsageError(f"{where}: the text is not UTF-8") from error
        if not text.strip():
            empty = empty or number
            if number - empty >= EMPTY_MAX:
                raise UsageError(f"{where}: more than {counted(EMPTY_MAX, 'line')} are empty")
        elif empty:
            raise UsageError(f"{name_of(path)}, line {empty}: a line is empty")
        else:
            yield number, text


def read_json(path: Path) -> PlainData:
    """Read a file that is one JSON value without integers beyond 64 bits.

    Raise ``ValueError`` if it is none, and :class:`UsageError` if the file cannot be read.
    """
    data = parse_json(next(_pieces(path, None), b"").decode("utf-8-sig"))
    refuse_long_integers(data)
    return data


def _pieces(path: Path, end: bytes | None) -> Iterator[bytes]:
    """Yield the parts of a file that end with ``end``, or the whole file.

    No text has a NUL byte: a device that gives nothing else is refused at once.
    """
    unread = bytearray()
    number = 1
    try:
        for chunk in _chunks(path):
            if b"\0" in chunk:
                raise UsageError(f"{name_of(path)} is no text: it has a NUL byte")
            unread += chunk
            if end is not None and end in chunk:
                *lines, rest = bytes(unread).split(end)
                unread = bytearray(rest)
                number += len(lines)
                yield from lines
            if len(unread) > LINE_MAX:
                where = name_of(path) if end is None else f"{name_of(path)}, line {number}"
                raise UsageError(f"{where}: more than {LINE_MAX >> 20} MiB without an end")
    except FileNotFoundError as error:
        raise UsageError(f"there is no file {str(path)!r}") from error
    except OSError as error:
        raise UsageError(f"{name_of(path)} cannot be read: {error.strerror}") from error
    if unread:
        yield bytes(unread)


def _chunks(path: Path) -> Iterator[bytes]:
    """Yield what there is as it comes: who writes into a pipe may wait for an answer."""
    if path == STDIO and sys.stdin is None:
        raise UsageError("standard input is closed")
    opened = cast("BufferedReader", sys.stdin.buffer if path == STDIO else path.open("rb"))
    with nullcontext() if path == STDIO else opened:
        while chunk := opened.read1(CHUNK):
            yield chunk


# ---------------------------------------------------------------------------------------- writing


def write_output(path: Path | None, text: str) -> None:
    """Write a text to a file, to standard output for :data:`STDIO`, or nowhere for ``None``.

    The file is complete or stays as it was; pipes and devices take what comes. Raise
    :class:`UsageError` if it cannot be written, such as on a full disk.
    """
    # Imported here because simulations take a while to load, and --version does without them.
    from sim.sweep.store import WriteFailed, write_atomically

    if path == STDIO:
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    if path is None:
        return
    try:
        if cannot_be_replaced(path):
            path.write_text(text, encoding="utf-8")
        else:
            write_atomically(path.resolve(), text)
    except BrokenPipeError:  # the reader of a pipe has seen enough
        raise
    except OSError as error:
        raise UsageError(f"{str(path)!r} cannot be written: {reason_of(error)}") from error
    except WriteFailed as error:
        raise UsageError(str(error)) from error


def cannot_be_replaced(path: Path) -> bool:
    """Say whether a path is a pipe or a device, which no other file can replace."""
    return path.exists() and not path.is_file()


def reason_of(error: Exception) -> str:
    """Return why a file cannot be used."""
    return getattr(error, "strerror", None) or str(error)
