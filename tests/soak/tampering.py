"""Changes of files while no query runs: deleted, rolled back, copied, foreign and rewritten files.

Rules of this file:

* A change is refused with a sentence, or harms nothing; ``must`` says which of them has to happen.
* ``repair`` does what such a sentence asks for: it restores what was there, or all of one copy.
"""

import json
import shutil
import uuid
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from random import Random
from typing import NamedTuple

import pyarrow.compute as pc
import pyarrow.parquet as pq

DELETED = "control file deleted"
ROLLED_BACK = "one of two rolled back"
COPIED = "copied away and back"
FOREIGN = "foreign history"
REWRITTEN = "history rewritten"
CONTROL = (
    "store/_control/*.parquet",
    "store/_checkpoint/metadata",
    "landing/metadata",
    "landing/_landed.json",
    "*/_landing.json",
    "*/_history.json",
)
"""Files that hold no rows, as patterns."""
CHECKPOINT = "_checkpoint"
COPY = ("store", "handed", "landing", "history")
"""Everything that has to be of one copy; input is not."""


class Place(NamedTuple):
    """The files of a life."""

    room: str
    disk: Path
    aside: Path
    """An empty folder elsewhere."""
    draw: Random
    go_on: Callable[[], None]
    """Let the queries process more input, and stop."""

    @property
    def history(self) -> Path:
        """The history of the room; room ``grouping`` reads other files."""
        return self.disk / ("history" if self.room == "slack" else "in")


class Change(NamedTuple):
    """A change that was made."""

    struck: str
    repair: Callable[[], object]
    must: bool | None = None
    """True if a run has to be refused; ``None``: it may be, or its answers are right."""


def delete(place: Place) -> Change | None:
    """Delete a file that holds no rows."""
    found = sorted(file for each in CONTROL for file in place.disk.glob(each))
    if not found:
        return None
    file = place.draw.choice(found)
    kept = place.aside / file.name
    shutil.move(file, kept)
    return Change(str(file.relative_to(place.disk)), lambda: shutil.move(kept, file))


def roll_back(place: Place) -> Change:
    """Bring back an older checkpoint without what was written with it, or the reverse."""
    parts = {"checkpoint of the query": _checkpoint_of, "tables of the query": _tables_of}
    if place.room == "slack":
        parts |= {"checkpoint of the landing": _landing_of, "history": _history_of}
    part = place.draw.choice(sorted(parts))
    older = _copy_all(place)
    place.go_on()
    now, then = parts[part](place.disk), parts[part](older)
    kept = _set_aside(place, now)
    for each in then:
        shutil.copytree(each, place.disk / each.relative_to(older)) if each.is_dir() else (
            shutil.copy2(each, place.disk / each.relative_to(older))
        )

    def repair() -> None:
        if place.room != "join-load" and place.draw.random() < 0.5:  # which sheds anew what it says
            _replace_all(place, older)
            return
        for each in parts[part](place.disk):
            shutil.rmtree(each) if each.is_dir() else each.unlink()
        for file, there in kept.items():
            shutil.move(there, file)

    return Change(part, repair)


def copy(place: Place) -> Change:
    """Copy everything away and back, perhaps after the queries have gone on."""
    older = _copy_all(place)
    goes_on = place.room != "join-load" and place.draw.random() < 0.5
    if goes_on:
        place.go_on()
    _replace_all(place, older)
    return Change("older copy" if goes_on else "copy", lambda: None, must=False)


def make_foreign(place: Place) -> Change | None:
    """Put another history in the place of the right one."""
    kept = place.aside / "history"
    notes = [file for file in place.history.glob("_*.json") if file.name in _IDS]
    if not notes:
        return None
    shutil.move(place.history, kept)
    shutil.copytree(kept, place.history)
    for file in notes:
        note = json.loads(file.read_bytes())
        file.write_text(json.dumps({**note, _IDS[file.name]: uuid.uuid4().hex}), encoding="utf-8")

    def repair() -> None:
        shutil.rmtree(place.history)
        shutil.move(kept, place.history)

    return Change("history", repair, must=True)


_IDS = {"_history.json": "history", "_landing.json": "landing"}
"""Name of the id in each note of a history."""


def rewrite(place: Place) -> Change | None:
    """Rewrite a file of a history in place, or swap two.

    A landing has written nothing behind it. Other histories have files that nobody has read: the
    last file could not be told from a right one.
    """
    files = sorted(place.history.glob("[0-9]*.parquet"))
    if place.room != "slack":
        files = files[-3:-1]
    if not files:
        return None
    kept = {file: file.read_bytes() for file in files[-2:]}
    one, other = files[max(-2, -len(files))], files[-1]
    if one != other and place.draw.random() < 0.5:
        one.write_bytes(kept[other])
        other.write_bytes(kept[one])
        struck = "two files swapped"
    else:
        rows = pq.read_table(other)
        at = rows.column_names.index("value")
        values = pc.add(rows.column(at), 1.0)
        pq.write_table(rows.set_column(at, rows.schema.field(at), values), other)
        struck = "file rewritten"

    def repair() -> None:
        for file, content in kept.items():
            file.write_bytes(content)

    return Change(struck, repair, must=True)


TAMPERINGS: Mapping[str, Callable[[Place], Change | None]] = {
    DELETED: delete,
    ROLLED_BACK: roll_back,
    COPIED: copy,
    FOREIGN: make_foreign,
    REWRITTEN: rewrite,
}
"""Changes by kind; each returns what it did, ``None`` if there was nothing to change."""


def _checkpoint_of(disk: Path) -> list[Path]:
    return [disk / "store" / CHECKPOINT]


def _tables_of(disk: Path) -> list[Path]:
    return [each for each in sorted((disk / "store").iterdir()) if each.name != CHECKPOINT]


def _landing_of(disk: Path) -> list[Path]:
    return [disk / "landing"]


def _history_of(disk: Path) -> list[Path]:
    return [disk / "history"]


def _copy_all(place: Place) -> Path:
    """Return a folder with a copy of everything."""
    older = place.aside / "older"
    for name in COPY:
        if (place.disk / name).exists():
            shutil.copytree(place.disk / name, older / name)
    return older


def _replace_all(place: Place, older: Path) -> None:
    """Replace everything by a copy, whose files get other times."""
    for name in COPY:
        shutil.rmtree(place.disk / name, ignore_errors=True)
        if (older / name).exists():
            shutil.copytree(older / name, place.disk / name, copy_function=shutil.copy)


def _set_aside(place: Place, found: Iterable[Path]) -> dict[Path, Path]:
    """Move files and folders away; return where each one went."""
    kept = {each: place.aside / each.name for each in found}
    for each, there in kept.items():
        shutil.move(each, there)
    return kept
