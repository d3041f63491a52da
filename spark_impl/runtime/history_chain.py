"""The chain of a history's files: each one says which file it follows.

The note of a file, in its footer, has the digest of the file before it; files of a
:class:`Landing` also have the id of their history and their number. A digest is that of a footer,
which has the place and the size of every page. Pages have checksums of their own.

Files of other programs need no note: they can be followed, and say nothing about others.
"""

import hashlib
import json
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from typing import NamedTuple

import pyarrow.parquet as pq

from model.vocabulary.settings import JsonObject
from spark_impl.runtime.histories import file_of, number_of
from spark_impl.runtime.provenance import identity_of
from spark_impl.runtime.storage import InputProblem, Location, reading

NOTE = b"straggler.follows"
"""Metadata of a file about the one before it."""
_LANDED = "_landed.json"
"""The file beside the checkpoint of a landing that names the last file of the history."""
_TAIL = 8
"""Bytes behind a footer: its length, and four letters."""


class _Link(NamedTuple):
    """The digest and the note of a file; a file that is not there has neither."""

    digest: str | None = None
    note: Mapping[str, str | int | None] = {}


def note_of_next(history: Location, number: int, identity: str | None = None) -> dict[bytes, str]:
    """Return the note of the file with a number, as metadata; the file before it is there.

    ``identity`` is the id of a history that has one; then the file may have no other number.
    """
    note: dict[str, str | int | None] = {"before": _read(history, number - 1).digest}
    if identity is not None:
        note |= {"history": identity, "number": number}
    return {NOTE: json.dumps(note)}


def require_chain(history: Location, numbers: range, read: str | None = None) -> str | None:
    """Return the digest of the last of some files, or ``read`` if there are none.

    ``read`` is the digest of the file before them when the reader read it. Raise
    :class:`InputProblem` if a file is not the one that its neighbours know. Both neighbours of
    ``numbers`` are looked at as well, if they are there.
    """
    before, last = _read(history, numbers.start - 1), read
    if read is not None and before.digest not in (None, read):
        msg = (
            f"{history} is not as it was written: {numbers.start - 1:08d}.parquet is not the file"
            " that was read; restore that file from a copy, with all files behind it"
        )
        raise InputProblem(msg)
    identity = identity_of(history)
    for number in range(numbers.start, numbers.stop + 1):
        try:
            found = _read(history, number)
        except InputProblem:
            if number in numbers:
                raise
            break  # it may not be complete yet, and has its own turn
        if number in numbers:
            _require_own(file_of(history, number), found, before, identity)
            last = found.digest
        follows = found.note.get("before")
        if follows is not None and before.digest not in (None, follows):
            msg = (
                f"{history} is not as it was written: {number:08d}.parquet follows another file"
                f" than {number - 1:08d}.parquet; restore the file that was changed from a copy"
            )
            raise InputProblem(msg)
        before = found
    return last


def note_landed(checkpoint: Location, file: Location) -> None:
    """Note the last file of a landing beside its checkpoint."""
    number = number_of(file)
    note = {"number": number, "digest": _read(file.parent, number).digest}
    (checkpoint / _LANDED).write_bytes(json.dumps(note).encode())


def read_landed(checkpoint: Location) -> JsonObject | None:
    """Return what a landing has noted: ``number`` and ``digest`` of the last file."""
    with suppress(FileNotFoundError, ValueError, TypeError):
        return dict(json.loads((checkpoint / _LANDED).read_bytes()))
    return None


def require_landed(history: Location, checkpoint: Location, last: int) -> None:
    """Raise :class:`InputProblem` if a history does not end with the last file of its landing.

    A landing that goes on behind another file would leave a history that nobody can repair.
    ``last`` is the number of the last file, -1 without one.
    """
    note, behind = read_landed(checkpoint), max(last, 0)
    if note is not None:
        number, behind = note["number"], note["number"] + 1
        found = _read(history, number).digest
        # A history may be shortened, but not behind its last file.
        if found != note["digest"] and (found or last < number):
            msg = (
                f"{history} is not as it was written: its landing has written another {number:08d}"
                ".parquet; restore that file from a copy"
            )
            raise InputProblem(msg)
    # Such a file is there if a crash came before its note; but it may not be of this landing.
    require_chain(history, range(behind, last + 1))


def _require_own(file: Location, link: _Link, before: _Link, identity: str | None) -> None:
    number, note = number_of(file), link.note
    if note.get("number", number) != number:
        msg = f"{file.parent} has number {note['number']} of a landing as {file.name}"
    elif note.get("history", identity) != identity:
        msg = f"{file.parent} has a file of another history, {note['history']}: {file.name}"
    elif "history" in before.note and "history" not in note:
        msg = f"{file.parent} has a file that its landing has not written: {file.name}"
        if link.digest is None:
            msg = f"{file} is missing, but {file_of(file.parent, number - 1).name} is there"
    else:
        return
    raise InputProblem(msg)


def _read(history: Location, number: int) -> _Link:
    file = file_of(history, number)
    with reading(file), file.find() or nullcontext() as content:
        if content is None:
            return _Link()
        size = content.size()
        content.seek(max(size - _TAIL, 0))
        length = int.from_bytes(content.read(4), "little")
        content.seek(max(size - _TAIL - length, 0))
        digest = hashlib.sha256(content.read(length)).hexdigest()
        kept = pq.read_metadata(content).metadata or {}
    note = json.loads(kept.get(NOTE, b"null"))
    return _Link(digest, note if isinstance(note, dict) else {})
