"""The store of a chain.

The store is a :class:`spark_impl.runtime.stores.TableStore`. An epoch is a version of its table;
``batch`` is the number of the epoch. The kinds of rows are

    commit                     figures of an epoch that is done
    matches                    pairs that were found in the epoch
    rejected                   arrivals that were rejected
    admitted-R, admitted-S     admitted tuples, if a history is kept
    account                    rows of the epoch, by place of the ledger
    steps                      steps of the workers, if they are recorded
    state                      states of the workers after the last epoch

Rules of this file:

* The files of an attempt at an epoch carry its id, so that a task of an older attempt that is still
  alive changes nothing that counts.
* An epoch is done when it is committed, with all of its files; readers look at nothing else.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import NamedTuple

import pyarrow as pa

from model.vocabulary import JoinConfig
from model.vocabulary.join import STREAMS, Decision, R, S
from model.vocabulary.join_load import LoadState, Measured
from model.vocabulary.join_predicates import Columns
from model.vocabulary.settings import JsonObject, PlainData
from spark_impl.join.columns import TYPES, name_of_column
from spark_impl.join.control import Clocks, StreamClock
from spark_impl.join.matching import SCHEMA, Counts
from spark_impl.runtime import accounts, stores
from spark_impl.runtime.limits import Limits
from spark_impl.runtime.storage import Address, InputProblem, locate
from spark_impl.runtime.tables import BATCH, TableWriter

FIXED = ("window_us", "lateness_us")
"""Settings of a chain that never change; all others may change between two epochs."""

VERSION = 6
ROOM = "join"
COMMIT, MATCHES, REJECTED, STEPS, STATE = "commit", "matches", "rejected", "steps", "state"
KINDS = {
    COMMIT: pa.schema([("content", pa.binary())]),
    MATCHES: pa.schema([("query", pa.string()), ("r_id", pa.int64()), ("s_id", pa.int64())]),
    REJECTED: pa.schema(
        [
            ("stream", pa.string()),
            ("seq", pa.int64()),
            ("source_id", pa.int64()),
            ("key", pa.string()),
            ("event_time_us", pa.int64()),
            ("reason", pa.string()),
        ]
    ),
    f"admitted-{R}": SCHEMA,
    f"admitted-{S}": SCHEMA,
    STEPS: pa.schema([("line", pa.string())]),
    STATE: pa.schema([("number", pa.int64()), ("content", pa.binary())]),
    accounts.ACCOUNT: accounts.COLUMNS,
}
"""Columns by kind, if tuples have none but the built-in ones."""


class Load(NamedTuple):
    """The control of a chain after an epoch."""

    measured: Measured
    state: LoadState
    decision: Decision
    """The decision for the next epoch."""

    @classmethod
    def from_json(cls, data: Sequence[Sequence[PlainData]]) -> "Load":
        """Build from plain data, which is a list for each field."""
        # Stores written before this version count arrivals and tuples behind the busy times.
        (epoch, elapsed_us, busy_us, *_), state, decision = data
        measured = Measured(epoch, elapsed_us, tuple(busy_us))
        return cls(measured, LoadState(*state), Decision(*decision))


def queries_of(data: JsonObject) -> JsonObject:
    """Return the fields about queries that the commit of an epoch and the register both have."""
    return {
        "config": JoinConfig.from_json(data["config"]),
        "functions": tuple(data["functions"]),
        "changed": tuple(data["changed"]),
        "selects": {name: tuple(each) for name, each in data["selects"].items()},
        "absent": tuple((stream, column) for stream, column in data["absent"]),
    }


class Commit(NamedTuple):
    """An epoch that is done."""

    epoch: int
    flush: bool
    config: JoinConfig
    """The chain as it was in this epoch, with all queries that it ever had.

    Its only decision is the one in force, if there was any.
    """
    history: bool
    """True if admitted tuples are kept."""
    committed_us: int
    """Wall-clock time on the driver, since 1970."""
    matches: Mapping[str, int]
    """Number of pairs found in this epoch, by query."""
    reasons: Mapping[str, int]
    """Number of arrivals rejected in this epoch, by reason."""
    admitted: Counts
    """Number of tuples admitted so far, by stream."""
    held: Counts
    """Number of tuples that all workers hold after the epoch, by stream."""
    complete_us: int
    """Every pair whose event times are both below this one has come out."""
    clocks: Clocks
    """The progress of both streams."""
    functions: tuple[str, ...] = ()
    """Queries whose predicates are functions, which this file cannot hold."""
    changed: tuple[str, ...] = ()
    """Queries that were submitted or withdrawn while the chain ran."""
    selects: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    """Columns that answers to a query have besides, by query."""
    absent: tuple[tuple[str, str], ...] = ()
    """Streams and built-in columns that the inputs lacked."""
    load: Load | None = None
    """The control, if the chain follows its load; a flush has none."""

    def to_json(self) -> JsonObject:
        """Return plain data; :meth:`from_json` reads it back."""
        return {**self._asdict(), "config": self.config.to_json(), "selects": {**self.selects}}

    @classmethod
    def from_json(cls, data: JsonObject) -> "Commit":
        """Build a commit from plain data."""
        fields = {
            **data,
            # Stores written before this version have neither.
            **queries_of({"selects": {}, "absent": (), **data}),
            **{name: Counts(*data[name]) for name in ("admitted", "held")},
            "clocks": Clocks(*(StreamClock(*each) for each in data["clocks"])),
            "load": Load.from_json(data["load"]) if data["load"] else None,
        }
        return cls(**fields)


@dataclass(frozen=True, slots=True)
class ChainStore(stores.TableStore):
    """The store of one chain."""

    more: Mapping[str, Columns] = field(default_factory=dict, kw_only=True)
    """Columns of admitted tuples besides the built-in ones, by stream."""
    replaced = (STATE,)

    @property
    def kinds(self) -> Mapping[str, pa.Schema]:
        """The columns of every kind of rows, without ``batch``."""
        return KINDS | {
            f"admitted-{stream}": pa.schema([*SCHEMA, *self.fields(stream)]) for stream in STREAMS
        }

    def fields(self, stream: str) -> list[pa.Field]:
        """Return the columns of a stream besides the built-in ones, as they are in the table."""
        columns = self.more.get(stream, ())
        return [pa.field(name_of_column(stream, name), TYPES[kind]) for name, kind in columns]

    def with_columns(self, config: JoinConfig) -> "ChainStore":
        """Return the store of a chain with this configuration."""
        return replace(self, more={stream: config.columns(stream) for stream in STREAMS})

    def commits(self, epoch: int | None = None) -> list[Commit]:
        """Return all commits, in the order of epochs, or that of an epoch."""
        rows = self.read_kind(COMMIT, epoch).sort_by(BATCH)
        return [Commit.from_json(json.loads(each.as_py())) for each in rows.column("content")]

    def commit_of(self, epoch: int) -> Commit:
        """Return the commit of an epoch. Raise :class:`InputProblem` if it is not done."""
        found = self.commits(epoch)
        if not found:
            msg = f"epoch {epoch} of the chain in {self.root} has not been committed"
            raise InputProblem(msg)
        return found[0]

    def last(self) -> Commit | None:
        """Return the last commit, ``None`` if there is none."""
        return self.commit_of(self.view.last) if self.view.last >= 0 else None

    def admitted_before(self, epoch: int) -> Counts:
        """Return the number of tuples admitted before an epoch; the epoch before it is done."""
        return self.commit_of(epoch - 1).admitted if epoch else Counts(0, 0)


def name_of(attempt: str, worker: int) -> str:
    """Return the name of a worker's files in an attempt at an epoch."""
    return f"{attempt}-{worker}"


def commit_epoch(
    store: ChainStore,
    writer: TableWriter,
    done: Commit,
    rows: Mapping[str, Mapping[str, int]],
    reading: accounts.Reading,
    places: Mapping[str, int],
    limits: Limits,
) -> None:
    """Commit an epoch; ``rows`` are the numbers of rows that workers wrote, by file and kind.

    ``reading`` and ``places`` are its account.

    Raise :class:`InputProblem`, and commit nothing, if the driver does not find all of them, if the
    account is beyond a limit, or if the epoch has been committed by another chain.
    """
    draft = stores.Draft(store, writer, done.epoch)
    for kind in KINDS:
        files = {store.file(kind, done.epoch, name): own.get(kind, 0) for name, own in rows.items()}
        draft.add(kind, {file: count for file, count in files.items() if count})
    text = json.dumps(done.to_json()).encode("utf-8")
    draft.write(COMMIT, pa.table([[text]], schema=KINDS[COMMIT]))
    limits.write_account(draft, reading, places)
    draft.removed += writer.view.of(STATE)
    draft.commit()


def open_store(where: Address, config: JoinConfig) -> ChainStore:
    """Return the store of a chain; make it if it does not exist.

    Raises :class:`InputProblem`, and writes nothing, if the folder belongs to another chain.
    """
    store = ChainStore(locate(where)).with_columns(config)
    fixed = {name: getattr(config, name) for name in FIXED}
    identity = {"version": VERSION, "room": ROOM, **fixed}
    stores.claim(store, identity, "chain")
    return store


def load_store(where: Address) -> ChainStore:
    """Return the store that a chain has written, at its present version.

    Raise :class:`InputProblem` if there is none.
    """
    view = stores.require_view(locate(where), "chain")
    stores.require_owner(view, VERSION, ROOM)
    return ChainStore(view.root, seen=view)
