"""Figures of finished runs, in a folder, by their addresses.

Rules of this file:

* A file is there as a whole or not at all: it is written beside its place and then moved.
* What cannot be read, or is not what was written for that address, is not there.
"""

import hashlib
import json
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from sim.sweep.forecast import TIMES, time_of
from sim.sweep.work import Done, Figure

RUNS = "runs"


class NotWritten(Exception):  # noqa: N818 (a full disk, not a bug)
    """The message says which file could not be written, and why, without a full stop."""


class Store(NamedTuple):
    """A folder with results."""

    folder: Path

    def read(self, address: str) -> Mapping[str, Figure] | None:
        """Figures of a run; ``None`` if there are none, or none that can be trusted."""
        try:
            record = json.loads(self._path(address).read_text(encoding="utf-8"))
            digest = record.pop("digest")
            figures: Mapping[str, Figure] = record["figures"]
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
        return figures if digest == _digest(address, record) else None

    def is_damaged(self, address: str) -> bool:
        """Whether there is a file that cannot be trusted: cut off, or changed by somebody."""
        return self.read(address) is None and self._path(address).exists()

    def keep(self, done: Done) -> None:
        """Write down the runs of a job, and how long it took; or :class:`NotWritten`."""
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
            write_whole(self._path(address), json.dumps(record) + "\n")
        times = self.folder / TIMES
        with written(times), times.open("a", encoding="utf-8") as out:
            out.write(json.dumps(time_of(done)) + "\n")

    def _path(self, address: str) -> Path:
        return self.folder / RUNS / f"{address}.json"


def _digest(address: str, record: Mapping[str, Any]) -> str:
    text = address + json.dumps(record)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:32]


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Where to write what then becomes ``path``; of a failure nothing is left there.

    Folders that are missing are made. Raises :class:`NotWritten`.
    """
    # Sweeps in two containers may have the same process number.
    beside = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    with written(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield beside
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)


@contextmanager
def written(path: Path) -> Iterator[None]:
    """Raise :class:`NotWritten` where a file cannot be written in this block."""
    try:
        yield
    except OSError as error:
        msg = f"{str(path)!r} cannot be written: {error.strerror or error}"
        raise NotWritten(msg) from error


def write_whole(path: Path, text: str) -> None:
    """Write a file that is there as a whole or not at all; or :class:`NotWritten`."""
    with whole(path) as beside:
        beside.write_text(text, encoding="utf-8")


def as_json(record: Mapping[str, Any]) -> str:
    """A record as a text that people can read, too."""
    return json.dumps(record, indent=1, ensure_ascii=False) + "\n"
