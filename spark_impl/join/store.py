"""The store of a chain.

    query.json                              version, and the settings that never change
    checkpoint/                             Spark's own, if the input is a stream; may be elsewhere
    epochs/<epoch>/<attempt>/state-<i>.arrow       state of worker i after the epoch
    epochs/<epoch>/<attempt>/matches-<i>.parquet   pairs that worker i found in the epoch
    epochs/<epoch>/<attempt>/rejected-<i>.parquet  arrivals that worker i rejected
    epochs/<epoch>/<attempt>/steps-<i>.ndjson      steps of worker i, if they are recorded
    epochs/<epoch>/<attempt>/admitted-<stream>.parquet  admitted tuples, if a history is kept
    commits/<epoch>.json                    the attempt that counts, and its figures

Rules of this file:

* An attempt writes only in its own folder, so that a task of an older attempt that is still alive
  changes nothing that counts.
* An epoch is done when its commit exists; readers look at nothing else.
* A worker writes its state last: where the state is, everything that the worker wrote is.
"""

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from model.vocabulary import JoinConfig
from model.vocabulary.settings import JsonObject
from spark_impl.join.checkpoint import WorkerState, decode_state, encode_state
from spark_impl.join.matching import Counts
from spark_impl.runtime import stores
from spark_impl.runtime.histories import write_parquet
from spark_impl.runtime.storage import InputProblem, Location, locate

FIXED = ("window_us", "lateness_us")
"""Settings of a chain that never change; all others may change between two epochs."""

ONE_FOLDER = "the driver and all workers have to reach one folder under this address"
"""The likely reason why something that was written is not found."""
VERSION = 2
_STATES = "state-*.arrow"
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
    """An epoch that is done."""

    epoch: int
    attempt: str
    flush: bool
    config: JoinConfig
    """The chain as it was in this epoch, with all queries that it ever had."""
    functions: tuple[str, ...]
    """Queries whose predicates are functions, which this file cannot hold."""
    history: bool
    """Whether admitted tuples are kept."""
    committed_us: int
    """Wall-clock time on the driver, since 1970."""
    matches: Mapping[str, int]
    """Number of pairs found in this epoch, by query."""
    rejected: int
    """Number of arrivals rejected in this epoch."""
    admitted: Counts
    """Number of tuples admitted so far, by stream."""
    held: Counts
    """Number of tuples that all workers hold after the epoch, by stream."""

    def to_json(self) -> JsonObject:
        """Return plain data; :meth:`from_json` reads it back."""
        return {**self._asdict(), "config": self.config.to_json()}

    @classmethod
    def from_json(cls, data: JsonObject) -> "Commit":
        """Build a commit from plain data."""
        fields = {
            **data,
            "config": JoinConfig.from_json(data["config"]),
            "functions": tuple(data["functions"]),
            **{name: Counts(*data[name]) for name in ("admitted", "held")},
        }
        return cls(**fields)


@dataclass(frozen=True, slots=True)
class ChainStore(stores.Store):
    """The store of one chain."""

    def file(self, epoch: int, attempt: str, name: str) -> Location:
        """Return the file of one attempt at an epoch with a name."""
        return self.root / "epochs" / str(epoch) / attempt / name

    def commits(self) -> list[Commit]:
        """Return all commits, in the order of epochs."""
        return [self.commit_of(epoch) for epoch in self.epochs()]

    def epochs(self) -> list[int]:
        """Return the numbers of all epochs that are done, in order."""
        return self.numbers("commits")

    def commit_of(self, epoch: int) -> Commit:
        """Return the commit of an epoch. Raise :class:`InputProblem` if it is not done."""
        try:
            data = self._commit_file(epoch).read_bytes()
        except FileNotFoundError:
            msg = f"epoch {epoch} of the chain in {self.root} has not been committed"
            raise InputProblem(msg) from None
        return Commit.from_json(json.loads(data))

    def last(self, known: Commit | None = None) -> Commit | None:
        """Return the last commit; from one that is ``known`` no commits before it are listed."""
        if known is None or not self._commit_file(known.epoch).exists():
            epochs = self.epochs()
            return self.commit_of(epochs[-1]) if epochs else None
        epoch = known.epoch
        while self._commit_file(epoch + 1).exists():
            epoch += 1
        return self.commit_of(epoch)

    def admitted_before(self, epoch: int) -> Counts:
        """Return the number of tuples admitted before an epoch; the epoch before it is done."""
        return self.commit_of(epoch - 1).admitted if epoch else Counts(0, 0)

    def commit(self, done: Commit) -> None:
        """Write a commit, then remove the files that no run needs any more.

        Raise :class:`InputProblem`, and write nothing, if the state of a worker is not there.
        """
        self._require_states(done)
        text = json.dumps(done.to_json(), indent=1)
        self._commit_file(done.epoch).write_bytes(text.encode("utf-8"))
        epochs = self.root / "epochs"
        with suppress(InputProblem, OSError):  # a worker of an older attempt may still be writing
            for attempt in (epochs / str(done.epoch)).children():
                if attempt.name != done.attempt:
                    attempt.remove()
            for old in (epochs / str(done.epoch - 2)).children():
                for state in old.children(_STATES):
                    state.remove()

    def _require_states(self, done: Commit) -> None:
        attempt = self.root / "epochs" / str(done.epoch) / done.attempt
        here = len(attempt.children(_STATES))
        if here != done.config.workers:
            msg = (
                f"{self.root} has {here} of the {done.config.workers} states that workers wrote in"
                f" epoch {done.epoch}: {ONE_FOLDER}"
            )
            raise InputProblem(msg)

    def lose_commit(self) -> None:
        """Undo the last commit, as if the driver had crashed just before it."""
        self._commit_file(self.epochs()[-1]).remove()

    def _commit_file(self, epoch: int) -> Location:
        return self.root / "commits" / f"{epoch}.json"

    def load_state(self, before: Commit, worker: int) -> WorkerState:
        """Return the state of a worker after an epoch."""
        file = self.file(before.epoch, before.attempt, f"state-{worker}.arrow")
        try:
            return decode_state(file.read_bytes())
        except FileNotFoundError:
            msg = f"{file} is missing where worker {worker} runs: {ONE_FOLDER}"
            raise InputProblem(msg) from None

    def write_state(self, epoch: int, attempt: str, worker: int, state: WorkerState) -> None:
        """Write the state of a worker after an attempt at an epoch."""
        self.file(epoch, attempt, f"state-{worker}.arrow").write_bytes(encode_state(state))

    def write_table(self, epoch: int, attempt: str, name: str, rows: pa.Table) -> None:
        """Write the rows of a worker; write no file if there are none."""
        if rows.num_rows:
            write_parquet(rows, self.file(epoch, attempt, f"{name}.parquet"))

    def write_lines(self, epoch: int, attempt: str, name: str, lines: Iterable[str]) -> None:
        """Write the recording of a worker."""
        text = "".join(f"{line}\n" for line in lines)
        self.file(epoch, attempt, f"{name}.ndjson").write_bytes(text.encode("utf-8"))

    def files(self, pattern: str, epochs: Iterable[Commit]) -> list[Location]:
        """Return the files of some epochs that match a pattern."""
        folders = (self.root / "epochs" / str(each.epoch) / each.attempt for each in epochs)
        return [file for folder in folders for file in folder.children(pattern)]


def open_store(where: str | Path | Location, config: JoinConfig) -> ChainStore:
    """Return the store of a chain; make it if it does not exist.

    Raises :class:`InputProblem`, and writes nothing, if the folder belongs to another chain.
    """
    root = locate(where)
    identity = {"version": VERSION, **{name: getattr(config, name) for name in FIXED}}

    def require_same() -> None:
        theirs: JsonObject = stores.read_identity(root, VERSION, dict, kind="chain")
        stores.require_same(root, theirs, identity, "chain")

    stores.claim(root, identity, require_same, "chain")
    return ChainStore(root)


def load_store(where: str | Path | Location) -> ChainStore:
    """Return the store that a chain has written. Raise :class:`InputProblem` if there is none."""
    root = locate(where)
    stores.read_identity(root, VERSION, dict, kind="chain")
    return ChainStore(root)
