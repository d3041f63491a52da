"""Figures of finished runs, in a folder, by their addresses.

Rules of this file:

* A file is there as a whole or not at all: it is written beside its place and then moved.
* What cannot be read is not there.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from sim.sweep.work import Done, Figure

TIMES = "times.jsonl"


class Store(NamedTuple):
    """A folder with results."""

    folder: Path

    def read(self, address: str) -> Mapping[str, Figure] | None:
        """Figures of a run; ``None`` if it has not been done."""
        try:
            record = json.loads(self._path(address).read_text(encoding="utf-8"))
            figures: Mapping[str, Figure] = record["figures"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return figures if isinstance(figures, dict) else None

    def keep(self, done: Done) -> None:
        """Write down the runs of a job, and how long it took."""
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
            self._path(address).parent.mkdir(parents=True, exist_ok=True)
            write_whole(self._path(address), json.dumps(record) + "\n")
        took = {
            "runs": job.addresses,
            "seconds": round(done.seconds, 3),
            "peak_mb": round(done.peak_mb, 1),
        }
        with (self.folder / TIMES).open("a", encoding="utf-8") as out:
            out.write(json.dumps(took) + "\n")

    def _path(self, address: str) -> Path:
        return self.folder / "runs" / f"{address}.json"


def write_whole(path: Path, text: str) -> None:
    """Write a file that is there as a whole or not at all."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)


def as_json(record: Mapping[str, Any]) -> str:
    """A record as a text that people can read, too."""
    return json.dumps(record, indent=1, ensure_ascii=False) + "\n"
