"""Text files of users: read once, so that pipes will do, and written whole."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO

from model.vocabulary.settings import PlainData
from model.vocabulary.trace import parse_json, refuse_long_integers
from straggler.errors import UsageError
from straggler.options import STDIO


def name_of(path: Path) -> str:
    """Return the name of a file in messages."""
    return "standard input" if path == STDIO else path.name


def is_stream(path: Path) -> bool:
    """Say whether a path is standard input, a pipe or a device, which can be read once."""
    return path == STDIO or (path.exists() and not path.is_file() and not path.is_dir())


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file with their numbers, from 1.

    Some editors and languages write a byte order mark first, or empty lines at the end. Raise
    :class:`UsageError` for a file that cannot be read.
    """
    empty = 0
    with opened(path) as file:
        for number, line in enumerate(file, start=1):
            try:
                text = line.removesuffix(b"\n").decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                where = f"{name_of(path)}, line {number}"
                raise UsageError(f"{where}: the text is not UTF-8") from error
            if not text.strip():
                empty = empty or number
            elif empty:
                raise UsageError(f"{name_of(path)}, line {empty}: a line is empty")
            else:
                yield number, text


def read_json(path: Path) -> PlainData:
    """Read a file that is one JSON value without integers beyond 64 bits.

    Raise ``ValueError`` if it is none, and :class:`UsageError` if the file cannot be read.
    """
    with opened(path) as file:
        data = parse_json(file.read().decode("utf-8-sig"))
    refuse_long_integers(data)
    return data


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """Give an input file or standard input; raise :class:`UsageError` if it cannot be read."""
    if path == STDIO and (sys.stdin is None or sys.stdin.closed):
        raise UsageError("standard input is closed, so there is no input '-'")
    if path.is_dir():
        raise UsageError(f"{str(path)!r} is a folder, not a file")
    try:
        with nullcontext(sys.stdin.buffer) if path == STDIO else path.open("rb") as file:
            yield file
    except FileNotFoundError as error:
        raise UsageError(f"there is no file {str(path)!r}") from error
    except OSError as error:
        raise UsageError(f"{name_of(path)} cannot be read: {error.strerror}") from error


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
