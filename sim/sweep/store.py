"""The store: figures of finished runs in a folder, by address.

Rules of this file:

* A file is complete or missing: it is written under another name and then moved.
* A file that cannot be read, or was not written for its address, counts as missing.
"""

import hashlib
import json
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from model.vocabulary.settings import JsonObject
from sim.sweep.jobs import Done, Figure

RUNS = "runs"


class WriteFailed(Exception):  # noqa: N818 (a full disk, not a bug)
    """A file could not be written; the message names it and the cause, without a full stop."""


class Store(NamedTuple):
    """A folder with results."""

    folder: Path

    def read(self, address: str) -> Mapping[str, Figure] | None:
        """Return the figures of a run; ``None`` if they are missing or cannot be trusted."""
        try:
            record = json.loads(self._path(address).read_text(encoding="utf-8"))
            digest = record.pop("digest")
            figures: Mapping[str, Figure] = record["figures"]
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
        return figures if digest == _digest(address, record) else None

    def keep(self, done: Done) -> None:
        """Write the runs of a job; raise :class:`WriteFailed` if that fails."""
        job = done.job
        for number, figures in enumerate(done.figures):
            own = {job.fan: job.values[number]} if job.fan else {}
            record = {
                "room": job.room,
                "run": job.run,
                "settings": {**job.settings, **own},
                "seed": job.seed,
                "figures": figures,
            }
            address = job.addresses[number]
            record["digest"] = _digest(address, record)
            write_atomically(self._path(address), json.dumps(record) + "\n")

    def _path(self, address: str) -> Path:
        return self.folder / RUNS / f"{address}.json"


def _digest(address: str, record: JsonObject) -> str:
    text = address + json.dumps(record)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:32]


@contextmanager
def replace_when_complete(path: Path) -> Iterator[Path]:
    """Yield a temporary path that replaces ``path`` at the end of the block, unless it fails.

    Missing folders are created. Raise :class:`WriteFailed` if a file cannot be written.
    """
    # A process id is not unique: sweeps in two containers may have the same one.
    beside = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield beside
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        msg = f"{str(path)!r} cannot be written: {error.strerror or error}"
        raise WriteFailed(msg) from error


def write_atomically(path: Path, text: str) -> None:
    """Write a complete file or none; raise :class:`WriteFailed` if that fails."""
    with replace_when_complete(path) as beside:
        beside.write_text(text, encoding="utf-8")


def as_json(record: JsonObject) -> str:
    """Return a record as indented JSON."""
    return json.dumps(record, indent=1, ensure_ascii=False) + "\n"
