"""The folder in which a chain keeps what it found and where it stands.

    query.json                              version, and what never changes of the configuration
    checkpoint/                             Spark's own, when the input is a stream
    epochs/<epoch>/<attempt>/state-<i>.arrow       what worker i holds after the epoch
    epochs/<epoch>/<attempt>/matches-<i>.parquet   pairs that worker i found in the epoch
    epochs/<epoch>/<attempt>/rejected-<i>.parquet  arrivals that it did not let in
    epochs/<epoch>/<attempt>/steps-<i>.ndjson      what it did, if that is recorded
    epochs/<epoch>/<attempt>/admitted-<stream>.parquet  tuples let in, if a history is kept
    commits/<epoch>.json                    which attempt at the epoch counts, and what came of it

Rules of this file:

* An attempt writes in its own folder only: a task of an older attempt that is still alive changes
  nothing that counts.
* An epoch happened when its commit is there; readers look at nothing else.
* A file appears under its name when it is complete, or not at all.
"""

import json
import shutil
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from model.vocabulary import JoinConfig
from spark_impl.join.checkpoint import WorkerState, decode_state, encode_state
from spark_impl.join.matching import Counts
from spark_impl.runtime.histories import InputProblem

FIXED = ("window_us", "lateness_us")
"""Settings of a chain that stay what they are; all others may change between two epochs."""


VERSION = 2
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
    config: JoinConfig
    """The chain as it was in this epoch, with all queries that it ever had."""
    functions: tuple[str, ...]
    """Queries whose predicates are functions, which this file cannot hold."""
    history: bool
    """The tuples that were admitted are kept."""
    committed_us: int
    """Wall-clock time on the driver, since 1970."""
    matches: Mapping[str, int]
    """Pairs found in this epoch, by query."""
    rejected: int
    """Arrivals of this epoch that were not let in."""
    admitted: Counts
    """Tuples admitted so far."""
    held: Counts
    """Tuples in the stores of all workers afterwards."""

    def to_json(self) -> dict[str, Any]:
        """Plain data; :meth:`from_json` reads it back."""
        return {**self._asdict(), "config": self.config.to_json()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Commit":
        """Build from plain data."""
        given = dict(data)
        given["config"] = JoinConfig.from_json(given["config"])
        given["functions"] = tuple(given["functions"])
        for name in ("admitted", "held"):
            given[name] = Counts(*given[name])
        return cls(**given)


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
        return [self.commit_of(epoch) for epoch in self.epochs()]

    def epochs(self) -> list[int]:
        """Numbers of the epochs that happened, in order."""
        return sorted(int(path.stem) for path in self.root.glob("commits/[0-9]*.json"))

    def commit_of(self, epoch: int) -> Commit:
        """An epoch that happened; :class:`InputProblem` if it has not."""
        try:
            text = (self.root / "commits" / f"{epoch}.json").read_text(encoding="utf-8")
        except FileNotFoundError:
            msg = f"epoch {epoch} of the chain in {self.root} has not happened"
            raise InputProblem(msg) from None
        return Commit.from_json(json.loads(text))

    def last(self) -> Commit | None:
        """The last epoch that happened."""
        epochs = self.epochs()
        return self.commit_of(epochs[-1]) if epochs else None

    def admitted_before(self, epoch: int) -> Counts:
        """Tuples admitted before an epoch, by stream; the epoch before it happened."""
        return self.commit_of(epoch - 1).admitted if epoch else Counts(0, 0)

    def commit(self, done: Commit) -> None:
        """Make an attempt count, then remove what no run needs any more."""
        folder = self.root / "commits"
        folder.mkdir(exist_ok=True)
        text = json.dumps(done.to_json(), indent=1)
        write_bytes(folder / f"{done.epoch}.json", text.encode("utf-8"))
        for path in (self.root / "epochs" / str(done.epoch)).iterdir():
            if path.name != done.attempt:
                shutil.rmtree(path, ignore_errors=True)
        for path in self.root.glob(f"epochs/{done.epoch - 2}/*/state-*.arrow"):
            path.unlink(missing_ok=True)

    def lose_commit(self) -> None:
        """Make the store look as after a crash just before the last epoch counted."""
        (self.root / "commits" / f"{self.epochs()[-1]}.json").unlink()

    def load_state(self, before: Commit, worker: int) -> WorkerState:
        """What a worker held after an epoch."""
        path = self.folder(before.epoch, before.attempt) / f"state-{worker}.arrow"
        return decode_state(path.read_bytes())

    def write_state(self, epoch: int, attempt: str, worker: int, state: WorkerState) -> None:
        """What a worker holds after an attempt at an epoch."""
        write_bytes(self.file(epoch, attempt, f"state-{worker}.arrow"), encode_state(state))

    def write_table(self, epoch: int, attempt: str, name: str, rows: pa.Table) -> None:
        """Rows that a worker found; nothing for no rows."""
        if rows.num_rows:
            path = self.file(epoch, attempt, f"{name}.parquet")
            scratch = path.with_name(f".{path.name}")
            pq.write_table(rows, scratch, compression="zstd")
            scratch.replace(path)

    def write_lines(self, epoch: int, attempt: str, name: str, lines: Iterable[str]) -> None:
        """The recording of a worker."""
        text = "".join(f"{line}\n" for line in lines)
        write_bytes(self.file(epoch, attempt, f"{name}.ndjson"), text.encode("utf-8"))

    def files(self, pattern: str, epochs: Iterable[int]) -> list[Path]:
        """Files of some epochs, which happened."""
        counting = (self.commit_of(epoch) for epoch in epochs)
        folders = [self.folder(done.epoch, done.attempt) for done in counting]
        return [path for folder in folders for path in sorted(folder.glob(pattern))]

    def file(self, epoch: int, attempt: str, name: str) -> Path:
        """Where an attempt writes a file, in a folder that is there."""
        folder = self.folder(epoch, attempt)
        folder.mkdir(parents=True, exist_ok=True)
        return folder / name


def open_store(root: Path, config: JoinConfig) -> Store:
    """The store of a chain, made if it does not exist.

    Raises :class:`InputProblem`, and writes nothing, when it belongs to another chain.
    """
    if (root / "query.json").exists():
        store = load_store(root)
        found, wanted = _query(root), _identity(config)
        if found != wanted:
            msg = f"{root} belongs to another chain: {found}, this one is {wanted}"
            raise InputProblem(msg)
        return store
    if root.exists() and not (root.is_dir() and all(map(_is_hidden, root.iterdir()))):
        msg = f"{root} is neither an empty folder nor the store of a chain"
        raise InputProblem(msg)
    root.mkdir(parents=True, exist_ok=True)
    write_bytes(root / "query.json", json.dumps(_identity(config), indent=1).encode("utf-8"))
    return Store(root)


def load_store(root: Path) -> Store:
    """The store that a chain has written.

    Raises :class:`InputProblem` when there is none.
    """
    if not (root / "query.json").exists():
        msg = f"{root} is not the store of a chain"
        raise InputProblem(msg)
    version = _query(root).get("version")
    if version != VERSION:
        msg = f"{root} was written by version {version!r} of the store, not {VERSION}"
        raise InputProblem(msg)
    return Store(root)


def _is_hidden(path: Path) -> bool:
    """Ours, from a run that was killed while it made the store, or of no concern."""
    return path.name.startswith(".")


def _identity(config: JoinConfig) -> dict[str, Any]:
    """What never changes about a chain."""
    return {"version": VERSION, **{name: getattr(config, name) for name in FIXED}}


def _query(root: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((root / "query.json").read_text(encoding="utf-8"))
    return found


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file that is complete or not there."""
    scratch = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    scratch.write_bytes(data)
    scratch.replace(path)
