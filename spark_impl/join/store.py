"""The store of a chain.

    query.json                              version, and the settings that never change
    checkpoint/                             Spark's own, if the input is a stream; may be elsewhere
    epochs/<epoch>/<attempt>/state-<i>.arrow       state of worker i after the epoch
    epochs/<epoch>/<attempt>/matches-<i>.parquet   pairs that worker i found in the epoch
    epochs/<epoch>/<attempt>/rejected-<i>.parquet  arrivals that worker i rejected
    epochs/<epoch>/<attempt>/steps-<i>.ndjson      steps of worker i, if they are recorded
    epochs/<epoch>/<attempt>/admitted-<stream>.parquet  admitted tuples, if a history is kept
    commits/<epoch>.json                    the attempt that counts, and its figures
    merged/commits/<first>-<last>.json      the commits of a hundred epochs
    merged/<table>/<first>-<last>.parquet   their rows (:mod:`spark_impl.join.merging`)

Rules of this file:

* An attempt writes only in its own folder, so that a task of an older attempt that is still alive
  changes nothing that counts.
* An epoch is done when its commit exists; readers look at nothing else.
* A merged file of commits counts instead of those it holds, and says whether merged files hold
  the rows of its epochs, too. It is written behind these.
* A worker writes its state last: where the state is, everything that the worker wrote is.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa

from model.vocabulary import JoinConfig
from model.vocabulary.join import NO_WATERMARK_US, Decision, R, S
from model.vocabulary.join_load import LoadState, Measured
from model.vocabulary.settings import JsonObject, PlainData
from spark_impl.join.checkpoint import WorkerState, decode_state, encode_state
from spark_impl.join.idle import Clocks, StreamClock
from spark_impl.join.matching import SCHEMA, Counts
from spark_impl.runtime import folder_stores as stores
from spark_impl.runtime.histories import write_parquet
from spark_impl.runtime.storage import InputProblem, Location, locate

ReadT = TypeVar("ReadT")

FIXED = ("window_us", "lateness_us")
"""Settings of a chain that never change; all others may change between two epochs."""

ONE_FOLDER = "the driver and all workers have to reach one folder under this address"
"""The likely reason why something that was written is not found."""
VERSION = 3
_MERGED = r"\d+-\d+\.\w+"
_STATES = r"state-\d+\.arrow"
_EPOCH = pa.field("epoch", pa.int64())
MATCHES = pa.schema([("query", pa.string()), ("r_id", pa.int64()), ("s_id", pa.int64()), _EPOCH])
REJECTED = pa.schema(
    [
        ("stream", pa.string()),
        ("seq", pa.int64()),
        ("source_id", pa.int64()),
        ("key", pa.string()),
        ("event_time_us", pa.int64()),
        ("reason", pa.string()),
        _EPOCH,
    ]
)
"""Files of earlier releases have no keys and no event times."""
ADMITTED = SCHEMA.append(_EPOCH)
TABLES = {
    "matches": MATCHES,
    "rejected": REJECTED,
    f"admitted-{R}": ADMITTED,
    f"admitted-{S}": ADMITTED,
}
"""Columns of the tables of an epoch."""
STEPS = "steps"


class Load(NamedTuple):
    """The control of a chain after an epoch."""

    measured: Measured
    state: LoadState
    decision: Decision
    """The decision for the next epoch."""

    @classmethod
    def from_json(cls, data: Sequence[Sequence[PlainData]]) -> "Load":
        """Build from plain data, which is a list for each field."""
        measured, state, decision = data
        busy = Measured(*measured)
        return cls(
            busy._replace(busy_us=tuple(busy.busy_us)), LoadState(*state), Decision(*decision)
        )


class Commit(NamedTuple):
    """An epoch that is done."""

    epoch: int
    attempt: str
    flush: bool
    config: JoinConfig
    """The chain as it was in this epoch, with all queries that it ever had.

    Its only decision is the one in force, if there was any.
    """
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
    complete_us: int = NO_WATERMARK_US
    """Every pair whose event times are both below this one has come out."""
    reasons: Mapping[str, int] = {}
    """Number of arrivals rejected in this epoch, by reason; empty in files of earlier releases."""
    clocks: Clocks = Clocks()
    """The progress of both streams."""
    changed: tuple[str, ...] = ()
    """Queries that were submitted or withdrawn while the chain ran."""
    load: Load | None = None
    """The control, if the chain follows its load; a flush has none."""

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
            "changed": tuple(data.get("changed", ())),
            "clocks": Clocks(*(StreamClock(*each) for each in data.get("clocks", ()))),
            "load": Load.from_json(data["load"]) if data.get("load") else None,
        }
        return cls(**fields)


class Part(NamedTuple):
    """Epochs whose commits are in one file: a single epoch, or some that were merged."""

    commits: list[Commit]
    holds_rows: bool
    """Whether the rows of these epochs were merged, too."""

    def to_json(self) -> JsonObject:
        """Return plain data; :meth:`from_json` reads it back."""
        return {**self._asdict(), "commits": [each.to_json() for each in self.commits]}

    @classmethod
    def from_json(cls, data: JsonObject) -> "Part":
        """Build a part from plain data."""
        return cls(**{**data, "commits": list(map(Commit.from_json, data["commits"]))})


@dataclass(frozen=True, slots=True)
class ChainStore(stores.Store):
    """The store of one chain."""

    def folder(self, epoch: int, attempt: str) -> Location:
        """Return the folder of one attempt at an epoch."""
        return self.root / "epochs" / str(epoch) / attempt

    def file(self, epoch: int, attempt: str, name: str) -> Location:
        """Return the file of one attempt at an epoch with a name."""
        return self.folder(epoch, attempt) / name

    def commits(self) -> list[Commit]:
        """Return all commits, in the order of epochs."""
        return [each for part in self.parts() for each in part.commits]

    def listed(self) -> tuple[list[range], range]:
        """Return the epochs that are done: those of each merged file, and those that stand alone.

        Raise :class:`InputProblem` if the commit of an epoch is missing.
        """
        numbers = self.numbers("commits")  # first: what is removed meanwhile was merged before
        names = [file.stem.split("-") for file in self.merged_file("commits").children(_MERGED)]
        merged = sorted((range(int(first), int(last) + 1) for first, last in names), key=min)
        end = merged[-1].stop if merged else 0
        alone = [range(each, each + 1) for each in numbers if each >= end]
        for before, after in pairwise([range(0), *merged, *alone]):
            if before.stop != after.start:
                msg = (
                    f"{self.commit_file(before.stop)} is missing, but epoch {after.start} is there"
                )
                raise InputProblem(msg)
        return merged, range(end, end + len(alone))

    def parts(self, first: int = 0, last: int | None = None) -> list[Part]:
        """Return the parts that hold some epochs, in order, and perhaps others beside these.

        ``last`` is by default the last epoch that is done.
        """
        merged, alone = self.listed()
        end = alone.stop if last is None else last + 1
        spans = [span for span in merged if span.start < end and first < span.stop]
        singles = range(max(first, alone.start), min(end, alone.stop))
        return [
            *map(self.load_part, spans),
            *(Part([self.commit_of(epoch)], holds_rows=False) for epoch in singles),
        ]

    def load_part(self, span: range) -> Part:
        """Return the merged commits of some epochs."""
        return _read_json(self.merged_file("commits", span), Part.from_json)

    def write_part(self, part: Part) -> None:
        """Write the merged commits of some epochs; from now on they count."""
        span = range(part.commits[0].epoch, part.commits[-1].epoch + 1)
        text = json.dumps(part.to_json(), indent=1)
        self.merged_file("commits", span).write_bytes(text.encode("utf-8"))

    def merged_file(self, table: str, span: range | None = None) -> Location:
        """Return the merged file of some epochs; without ``span`` the folder of these files."""
        folder = self.root / "merged" / table
        if span is None:
            return folder
        ending = {"commits": "json", STEPS: "ndjson"}.get(table, "parquet")
        return folder / f"{span.start:08d}-{span.stop - 1:08d}.{ending}"

    def commit_of(self, epoch: int) -> Commit:
        """Return the commit of an epoch. Raise :class:`InputProblem` if it is not done."""
        try:
            return _read_json(self.commit_file(epoch), Commit.from_json)
        except FileNotFoundError:
            for span in self.listed()[0]:
                if epoch in span:
                    return self.load_part(span).commits[epoch - span.start]
        msg = f"epoch {epoch} of the chain in {self.root} has not been committed"
        raise InputProblem(msg)

    def last(self, known: Commit | None = None) -> Commit | None:
        """Return the last commit; from one that is ``known`` no commits before it are listed."""
        if known is None or not self.commit_file(known.epoch).exists():
            done = self.listed()[1].stop
            return self.commit_of(done - 1) if done else None
        epoch = known.epoch
        while self.commit_file(epoch + 1).exists():
            epoch += 1
        return self.commit_of(epoch)

    def admitted_before(self, epoch: int) -> Counts:
        """Return the number of tuples admitted before an epoch; the epoch before it is done."""
        return self.commit_of(epoch - 1).admitted if epoch else Counts(0, 0)

    def commit(self, done: Commit) -> None:
        """Write a commit, then remove the files that no run needs any more.

        Raise :class:`InputProblem`, and write nothing, if the state of a worker is not there, or if
        the epoch is committed already.
        """
        self._require_states(done)
        text = json.dumps(done.to_json(), indent=1)
        self.commit_file(done.epoch).write_bytes(text.encode("utf-8"), is_new=True)
        epochs = self.root / "epochs"
        with suppress(InputProblem, OSError):  # a worker of an older attempt may still be writing
            for attempt in (epochs / str(done.epoch)).children():
                if attempt.name != done.attempt:
                    attempt.remove()
            for old in (epochs / str(done.epoch - 2)).children():
                for state in old.children(_STATES):
                    state.remove()

    def _require_states(self, done: Commit) -> None:
        here = len(self.folder(done.epoch, done.attempt).children(_STATES))
        if here != done.config.workers:
            msg = (
                f"{self.root} has {here} of the {done.config.workers} states that workers wrote in"
                f" epoch {done.epoch}: {ONE_FOLDER}"
            )
            raise InputProblem(msg)

    def lose_commit(self) -> None:
        """Undo the last commit, as if the driver had crashed just before it."""
        self.commit_file(self.listed()[1][-1]).remove()

    def commit_file(self, epoch: int) -> Location:
        """Return the file of a commit that stands alone."""
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

    def files(self, table: str, parts: Iterable[Part]) -> list[Location]:
        """Return the files of a table with the rows of some epochs."""
        merged = {file.name: file for file in self.merged_file(table).children(_MERGED)}
        found = []
        for part in parts:
            first, last = part.commits[0].epoch, part.commits[-1].epoch
            name = self.merged_file(table, range(first, last + 1)).name
            if not part.holds_rows:
                for each in part.commits:
                    found += self.folder(each.epoch, each.attempt).children(rf"{table}(-\d+)?\.\w+")
            elif name in merged:  # else there were no rows
                found.append(merged[name])
        return found

    def rows_written(self, table: str, commits: Sequence[Commit]) -> int:
        """Return the number of rows that consecutive epochs wrote to a table."""
        if table == "matches":
            return sum(sum(each.matches.values()) for each in commits)
        if table == "rejected":
            return sum(each.rejected for each in commits)
        stream = {f"admitted-{R}": "r", f"admitted-{S}": "s"}[table]
        counts = [self.admitted_before(commits[0].epoch), *(each.admitted for each in commits)]
        admitted = [getattr(each, stream) for each in counts]
        new = (after - before for before, after in pairwise(admitted))
        return sum(rows for each, rows in zip(commits, new, strict=True) if each.history)


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


def _read_json(file: Location, read: Callable[[Any], ReadT]) -> ReadT:
    """Read a file of commits; raise :class:`InputProblem` if it holds anything else."""
    try:
        return read(json.loads(file.read_bytes()))
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        msg = f"{file} does not hold the commits of epochs; restore it from a copy"
        raise InputProblem(msg) from error
