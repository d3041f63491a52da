"""The folder in which a chain keeps what it found and where it stands.

    query.json                              configuration, names of free predicates, version
    checkpoint/                             Spark's own, when the input is a stream
    epochs/<epoch>/<attempt>/state-<i>.arrow       what worker i holds after the epoch
    epochs/<epoch>/<attempt>/matches-<i>.parquet   pairs that worker i found in the epoch
    epochs/<epoch>/<attempt>/rejected-<i>.parquet  arrivals that it did not let in
    epochs/<epoch>/<attempt>/steps-<i>.ndjson      what it did, if that is recorded
    commits/<epoch>.json                    which attempt at the epoch counts

Rules of this file:

* An attempt writes in its own folder only: a task of an older attempt that is still alive changes
  nothing that counts.
* An epoch happened when its commit is there; readers look at nothing else.
* A file appears under its name when it is complete, or not at all.
"""

import json
import os
import shutil
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from model.vocabulary import JoinConfig
from spark_impl.join.checkpoint import decode_state, empty_state, encode_state
from spark_impl.join.lane import WorkerState
from spark_impl.streams import InputProblem

VERSION = 1
MATCHES = pa.schema(
    [("query", pa.string()), ("r_id", pa.int64()), ("s_id", pa.int64()), ("epoch", pa.int64())]
)
REJECTED = pa.schema(
    [
        ("stream", pa.string()),
        ("seq", pa.int64()),
        ("source_id", pa.int64()),
        ("reason", pa.string()),
    ]
)


class Commit(NamedTuple):
    """An epoch that happened."""

    epoch: int
    attempt: str
    flush: bool


@dataclass(frozen=True, slots=True)
class Store:
    """Where everything of one chain lies."""

    root: Path

    @property
    def checkpoint(self) -> Path:
        """Spark's checkpoint."""
        return self.root / "checkpoint"

    def folder(self, epoch: int, attempt: str) -> Path:
        """Where one attempt at an epoch writes."""
        return self.root / "epochs" / str(epoch) / attempt

    def commits(self) -> list[Commit]:
        """The epochs that happened, in order."""
        found = [
            Commit(**json.loads(path.read_text(encoding="utf-8")))
            for path in self.root.glob("commits/[0-9]*.json")
        ]
        return sorted(found)

    def last(self) -> Commit | None:
        """The last epoch that happened."""
        return max(self.commits(), default=None)

    def commit(self, done: Commit) -> None:
        """Make an attempt count, then remove what no run needs any more."""
        folder = self.root / "commits"
        folder.mkdir(exist_ok=True)
        write_bytes(folder / f"{done.epoch}.json", json.dumps(done._asdict()).encode("utf-8"))
        for path in (self.root / "epochs" / str(done.epoch)).iterdir():
            if path.name != done.attempt:
                shutil.rmtree(path, ignore_errors=True)
        for path in self.root.glob(f"epochs/{done.epoch - 2}/*/state-*.arrow"):
            path.unlink(missing_ok=True)

    def load_state(self, before: Commit | None, worker: int) -> WorkerState:
        """What a worker held after an epoch."""
        if before is None:
            return empty_state()
        path = self.folder(before.epoch, before.attempt) / f"state-{worker}.arrow"
        return decode_state(path.read_bytes())

    def write_state(self, epoch: int, attempt: str, worker: int, state: WorkerState) -> None:
        """What a worker holds after an attempt at an epoch."""
        write_bytes(self._file(epoch, attempt, f"state-{worker}.arrow"), encode_state(state))

    def write_table(self, epoch: int, attempt: str, name: str, rows: pa.Table) -> None:
        """Rows that a worker found; nothing for no rows."""
        if rows.num_rows:
            path = self._file(epoch, attempt, f"{name}.parquet")
            scratch = path.with_name(f".{path.name}")
            pq.write_table(rows, scratch, compression="zstd")
            scratch.replace(path)

    def write_lines(self, epoch: int, attempt: str, name: str, lines: Iterable[str]) -> None:
        """The recording of a worker."""
        text = "".join(f"{line}\n" for line in lines)
        write_bytes(self._file(epoch, attempt, f"{name}.ndjson"), text.encode("utf-8"))

    def files(self, pattern: str) -> dict[int, list[Path]]:
        """Files of epochs that happened, by epoch."""
        return {
            done.epoch: sorted(self.folder(done.epoch, done.attempt).glob(pattern))
            for done in self.commits()
        }

    def _file(self, epoch: int, attempt: str, name: str) -> Path:
        folder = self.folder(epoch, attempt)
        folder.mkdir(parents=True, exist_ok=True)
        return folder / name


def open_store(root: Path, config: JoinConfig, free: Collection[str]) -> Store:
    """The store of a chain, made if it does not exist.

    Raises :class:`InputProblem`, and writes nothing, when it belongs to another chain.
    """
    wanted = {"version": VERSION, "config": config.to_json(), "free": sorted(free)}
    path = root / "query.json"
    if path.exists():
        found = json.loads(path.read_text(encoding="utf-8"))
        if found != wanted:
            msg = f"{root} belongs to another chain: {found}, this one is {wanted}"
            raise InputProblem(msg)
    elif root.exists() and (not root.is_dir() or any(root.iterdir())):
        msg = f"{root} is neither an empty folder nor the store of a chain"
        raise InputProblem(msg)
    else:
        root.mkdir(parents=True, exist_ok=True)
        write_bytes(path, json.dumps(wanted, indent=1).encode("utf-8"))
    return Store(root)


def load_store(root: Path) -> tuple[JoinConfig, Store]:
    """The store that a chain has written, and its configuration.

    Raises :class:`InputProblem` when there is none.
    """
    path = root / "query.json"
    if not path.exists():
        msg = f"{root} is not the store of a chain"
        raise InputProblem(msg)
    found = json.loads(path.read_text(encoding="utf-8"))
    if found.get("version") != VERSION:
        msg = f"{root} was written by version {found.get('version')!r} of the store, not {VERSION}"
        raise InputProblem(msg)
    return JoinConfig.from_json(found["config"]), Store(root)


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file that is complete or not there."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    scratch.write_bytes(data)
    scratch.replace(path)
