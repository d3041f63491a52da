"""The store of a stream that is being spread.

    query.json                   configuration and version
    checkpoint/                  Spark's own; elsewhere if the stream says so
    batches/<batch>/sender-<i>.arrow    state of sender i after the micro-batch
    batches/<batch>/instance-<i>.arrow  state of instance i, and its work, if instances have any
    batches/<batch>.json                the standing after the micro-batch, which is then done
    rejected/batch=<batch>/sender-<i>.parquet   rows of sender i without a finite value, if listed
    empty/<number>.json                 the source's last micro-batch without rows, by its number

Rules of this file:

* The state of a sender or an instance follows from its state before and its tuples: writing it
  again, after a crash or in a second attempt, writes the same.
* A micro-batch is done when its file exists; the files of the last two are kept.
* A file appears under its name when it is complete, or not at all.
* The absence of a file says nothing. The standing says which files there are, and tasks report
  those that they write. One that is missing then is an error.
"""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq

from model.vocabulary import GroupingConfig
from model.vocabulary.settings import JsonObject
from spark_impl.grouping.keys import HeavyKey, Summary, Table
from spark_impl.grouping.router import SenderState
from spark_impl.grouping.windows import Standing
from spark_impl.runtime import stores
from spark_impl.runtime.arrays import Ints
from spark_impl.runtime.histories import write_parquet
from spark_impl.runtime.storage import InputProblem, Location, reading, reason_of

VERSION = 2
_SENDER, _WORKED = b"straggler.sender", b"straggler.worked"
_EMPTY = pa.table({})
_COLUMNS = ["key", "count", "error"]
_DAMAGED = (AttributeError, LookupError, TypeError, ValueError)
"""Errors of reading a file that somebody has changed."""


REFUSED = pa.schema(
    [
        ("seq", pa.int64()),
        ("key", pa.string()),
        ("source_id", pa.int64()),
        ("event_time_us", pa.int64()),
        ("reason", pa.string()),
        ("batch", pa.int64()),
    ]
)
"""Columns of refused rows; what the input does not have is NULL."""


class Worked(NamedTuple):
    """The work of an instance in a micro-batch."""

    tuples: int = 0
    busy_us: int = 0
    state: pa.Table | None = None
    """State of the instance afterwards."""


@dataclass(frozen=True, slots=True)
class GroupingStore(stores.Store):
    """The store of one stream."""

    def standing(self, batch: int) -> Standing:
        """Return the standing after a micro-batch."""
        with self._required(self._batches / f"{batch}.json") as file:
            return decode_standing(file.read())

    def done(self) -> int:
        """Return the number of micro-batches that are done."""
        return max(self.numbers("batches"), default=-1) + 1

    def finish(self, standing: Standing) -> None:
        """Mark a micro-batch as done, and remove the files of the one two before it."""
        batch = standing.batch - 1
        (self._batches / f"{batch}.json").write_bytes(encode_standing(standing))
        for file in self._batches.children(r"\d+(\.json)?"):
            if int(file.stem) < batch - 1:
                file.remove()

    def note_empty(self, source_batch: int) -> None:
        """Note that a micro-batch of the source had no rows; forget the one before."""
        file = self.root / "empty" / f"{source_batch}.json"
        file.write_bytes(b"{}")
        for other in file.parent.children(r"\d+\.json"):
            if other != file:
                other.remove()

    def forget(self, batch: int) -> None:
        """Remove what an earlier attempt at a micro-batch left."""
        (self._batches / str(batch)).remove()
        self.refused_file(batch, 0).parent.remove()

    def refused_file(self, batch: int, sender: int) -> Location:
        """Return the file of a sender's rows in a micro-batch that had no finite value."""
        return self.root / "rejected" / f"batch={batch}" / f"sender-{sender}.parquet"

    def write_refused(self, batch: int, sender: int, rows: pa.Table) -> None:
        """Write a sender's rows in a micro-batch that had no finite value."""
        write_parquet(rows, self.refused_file(batch, sender))

    def refused(self, batch: int) -> list[Location]:
        """Return the files of all refused rows of one micro-batch."""
        return self.refused_file(batch, 0).parent.children(r"sender-\d+\.parquet")

    def all_refused(self) -> list[Location]:
        """Return the files of all refused rows of the micro-batches that are done."""
        done, folders = self.done(), (self.root / "rejected").children(r"batch=\d+")
        numbers = sorted(int(folder.name.removeprefix("batch=")) for folder in folders)
        return [file for batch in numbers if batch < done for file in self.refused(batch)]

    def sender_file(self, batch: int, sender: int) -> Location:
        """Return the file of a sender's state after a micro-batch."""
        return self._batches / str(batch) / f"sender-{sender}.arrow"

    def load_sender(self, batch: int, sender: int) -> SenderState:
        """Return the state of a sender after a micro-batch; an empty one before the first."""
        if batch < 0:
            return SenderState()
        with self._required(self.sender_file(batch, sender)) as file:
            return decode_state(file.read_buffer())

    def write_sender(self, batch: int, sender: int, state: SenderState) -> None:
        """Write the state of a sender after a micro-batch."""
        self.sender_file(batch, sender).write_bytes(encode_state(state))

    def load_worked(self, batch: int, instance: int) -> Worked:
        """Return the work of an instance in a micro-batch."""
        with self._required(self.instance_file(batch, instance)) as file:
            table, plain = _read(file, _WORKED)
        return Worked(plain["tuples"], plain["busy_us"], table if plain["holds"] else None)

    def spent(self, batch: int, instance: int) -> tuple[int, int]:
        """Return the tuples of an instance in a micro-batch and their time (us)."""
        with self._required(self.instance_file(batch, instance)) as file:  # reads no state
            plain = json.loads(pa.ipc.open_file(file).schema.metadata[_WORKED])
        return plain["tuples"], plain["busy_us"]

    def write_worked(self, batch: int, instance: int, worked: Worked) -> None:
        """Write the work of an instance in a micro-batch."""
        plain = {
            "tuples": worked.tuples,
            "busy_us": worked.busy_us,
            "holds": worked.state is not None,
        }
        state = _EMPTY if worked.state is None else worked.state
        self.instance_file(batch, instance).write_bytes(_encode_table(state, _WORKED, plain))

    def instance_file(self, batch: int, instance: int) -> Location:
        """Return the file of an instance's work in a micro-batch."""
        return self._batches / str(batch) / f"instance-{instance}.arrow"

    @property
    def _batches(self) -> Location:
        return self.root / "batches"

    @contextmanager
    def _required(self, file: Location) -> Iterator[pa.NativeFile]:
        """Open a file that a task or an earlier micro-batch has written.

        Raise :class:`InputProblem` if it is not there, or if the caller cannot read it.
        """
        try:
            with file.open() as opened:
                yield opened
        except FileNotFoundError as error:
            name = f"{file.parent.name}/{file.name}"
            raise unshared(self.root, f"lacks {name}, which has been written") from error
        except OSError as error:
            msg = f"{file} cannot be read: {reason_of(error)}"
            raise InputProblem(msg) from error
        except _DAMAGED as error:
            msg = f"{file} does not hold what was written; restore the store from a copy"
            raise InputProblem(msg) from error


def unshared(root: Location, finding: str) -> InputProblem:
    """Return the error for a store that is not as tasks have left it."""
    msg = (
        f"{root} {finding}: the driver and all workers have to reach one folder under this address"
    )
    return InputProblem(msg)


def rows_of(files: Iterable[Location]) -> int:
    """Return the number of rows of some Parquet files."""
    found = 0
    for file in files:
        with reading(file):
            found += pq.read_metadata(file.path, filesystem=file.files).num_rows
    return found


def load_store(root: Location) -> GroupingStore:
    """Return the store that a stream has written. Raise :class:`InputProblem` if there is none."""
    stores.read_identity(root, VERSION, dict, kind="stream")
    return GroupingStore(root)


def open_store(root: Location, config: GroupingConfig) -> GroupingStore:
    """Return the store of a stream; make it if it does not exist.

    Raises :class:`InputProblem`, and writes nothing, if the folder belongs to another stream.
    """
    identity = {"version": VERSION, "config": config.to_json()}

    def require_same() -> None:
        theirs: JsonObject = stores.read_identity(root, VERSION, dict, kind="stream")
        stores.require_same(root, theirs, identity, "stream")

    stores.claim(root, identity, require_same, "stream")
    return GroupingStore(root)


def encode_state(state: SenderState) -> pa.Buffer:
    """Return the file that holds a sender's state."""
    plain = state._asdict()
    summary: Summary = plain.pop("summary")
    plain["counted"] = [summary.tuples, summary.floor]
    columns = [summary.keys, pa.array(summary.counts), pa.array(summary.errors)]
    return _encode_table(pa.table(columns, names=_COLUMNS), _SENDER, plain)


def decode_state(data: pa.Buffer) -> SenderState:
    """Return the sender's state that :func:`encode_state` wrote."""
    table, plain = _read(pa.BufferReader(data), _SENDER)
    keys, counts, errors = (table.column(name).combine_chunks() for name in _COLUMNS)
    tuples, floor = plain["counted"]
    return SenderState(
        loads=tuple(plain["loads"]),
        routed=plain["routed"],
        virtual=tuple(plain["virtual"]),
        sent=tuple((key, tuple(places)) for key, places in plain["sent"]),
        summary=Summary(keys, _numbers(counts), _numbers(errors), tuples, floor),
        buckets=tuple(plain["buckets"]),
    )


def _encode_table(table: pa.Table, name: bytes, plain: JsonObject) -> pa.Buffer:
    """Return the file that holds a table, and plain data as its metadata."""
    kept = {**(table.schema.metadata or {}), name: json.dumps(plain).encode("utf-8")}
    sink = pa.BufferOutputStream()
    feather.write_feather(table.replace_schema_metadata(kept), sink, compression="zstd")
    return sink.getvalue()


def _read(file: pa.NativeFile, name: bytes) -> tuple[pa.Table, JsonObject]:
    """Read what :func:`_encode_table` returned."""
    table = feather.read_table(file)
    return table, json.loads(table.schema.metadata[name])


def _numbers(column: pa.Array) -> Ints:
    return np.array(column, np.int64)


def encode_standing(standing: Standing) -> bytes:
    """Return the file that says where a stream stands."""
    plain = {**standing._asdict(), "table": standing.table._asdict()}
    return json.dumps(plain).encode("utf-8")


def decode_standing(text: bytes) -> Standing:
    """Return where a stream stands: what :func:`encode_standing` wrote."""
    data = json.loads(text)
    table = dict(data["table"])
    table["times"] = tuple(table["times"])
    table["heavy"] = {key: HeavyKey(*each) for key, each in table["heavy"].items()}
    if table["buckets"] is not None:
        table["buckets"] = tuple(table["buckets"])
    plain = {name: tuple(data[name]) for name in ("measured", "worked", "busy_us")}
    return Standing(**{**data, **plain, "table": Table(**table)})
