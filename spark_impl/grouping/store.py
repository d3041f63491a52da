"""The store of a stream that is being spread.

The store is a :class:`spark_impl.runtime.stores.TableStore` with these kinds of rows:

    sender     the state of a sender after a micro-batch
    instance   the state of an instance, and its work, if instances have any
    standing   the standing after a micro-batch
    rejected   rows without a finite value, if listed

Rules of this file:

* The state of a sender or an instance follows from its state before and its tuples: writing it
  again, after a crash or in a second attempt, writes the same, into another file.
* A version has the states and the standings of the last two micro-batches: the source may repeat
  the last one.
* The absence of a file says nothing. The standing says which states there are, and tasks report
  those that they write. One that is missing then is an error.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather

from model.vocabulary import GroupingConfig
from spark_impl.grouping.keys import HeavyKey, Summary, Table
from spark_impl.grouping.router import SenderState
from spark_impl.grouping.windows import Standing
from spark_impl.runtime import stores
from spark_impl.runtime.arrays import Ints, PlainRow
from spark_impl.runtime.storage import InputProblem, Location
from spark_impl.runtime.tables import View

VERSION = 3
SENDER, INSTANCE, STANDING, REJECTED = "sender", "instance", "standing", "rejected"
_SENDER = b"straggler.sender"
_COLUMNS = ["key", "count", "error"]
_DAMAGED = (AttributeError, LookupError, TypeError, ValueError)
"""Errors of decoding what somebody has changed."""
_CONTENT = pa.field("content", pa.binary())
_KINDS = {
    SENDER: pa.schema([("number", pa.int64()), _CONTENT]),
    INSTANCE: pa.schema(
        [("number", pa.int64()), ("tuples", pa.int64()), ("busy_us", pa.int64()), _CONTENT]
    ),
    STANDING: pa.schema([_CONTENT]),
    REJECTED: pa.schema(
        [
            ("seq", pa.int64()),
            ("key", pa.string()),
            ("source_id", pa.int64()),
            ("event_time_us", pa.int64()),
            ("reason", pa.string()),
        ]
    ),
}
"""Columns by kind; what the input does not have is NULL in a refused row."""
REFUSED = _KINDS[REJECTED]


class Worked(NamedTuple):
    """The work of an instance in a micro-batch."""

    tuples: int = 0
    busy_us: int = 0
    state: pa.Table | None = None
    """State of the instance afterwards."""


@dataclass(frozen=True, slots=True)
class GroupingStore(stores.TableStore):
    """The store of one stream."""

    replaced = (SENDER, INSTANCE, STANDING)

    @property
    def kinds(self) -> Mapping[str, pa.Schema]:
        """The columns of every kind of rows."""
        return _KINDS

    def standing(self, view: View, batch: int) -> Standing:
        """Return the standing after a micro-batch, which is the last one or the one before."""
        for row in self.read_kind(view, STANDING, batch).to_pylist():
            with self._damaged(view.of(STANDING, batch, batch)[0].file):
                return decode_standing(row["content"])
        raise unshared(self.root, f"lacks the standing after micro-batch {batch}")

    def states(self, view: View, kind: str, batch: int) -> dict[int, Location]:
        """Return the files of all states of one kind after a micro-batch, by their numbers."""
        return {each.bounds["number"][0]: each.file for each in view.of(kind, batch, batch)}

    def load_sender(self, file: Location) -> SenderState:
        """Return the state of a sender."""
        row = self._load(file, SENDER)
        with self._damaged(file):
            return decode_state(pa.py_buffer(row["content"]))

    def write_sender(self, batch: int, sender: int, state: SenderState) -> Location:
        """Write the state of a sender after a micro-batch; return its file."""
        row = {"number": sender, "content": encode_state(state).to_pybytes()}
        return self._save(batch, SENDER, row)

    def load_worked(self, file: Location) -> Worked:
        """Return the work of an instance in a micro-batch."""
        row = self._load(file, INSTANCE)
        with self._damaged(file):
            held = row["content"]
            state = None if held is None else feather.read_table(pa.BufferReader(held))
            return Worked(row["tuples"], row["busy_us"], state)

    def spent(self, file: Location) -> tuple[int, int]:
        """Return the tuples of an instance in a micro-batch and their time (us)."""
        row = self._load(file, INSTANCE, ["tuples", "busy_us"])  # reads no state
        return row["tuples"], row["busy_us"]

    def write_worked(self, batch: int, instance: int, worked: Worked) -> Location:
        """Write the work of an instance in a micro-batch; return its file."""
        held = None if worked.state is None else _encode_table(worked.state).to_pybytes()
        row = {"number": instance, "tuples": worked.tuples, "busy_us": worked.busy_us}
        return self._save(batch, INSTANCE, {**row, "content": held})

    def _save(self, batch: int, kind: str, row: PlainRow) -> Location:
        return self.write(kind, batch, pa.Table.from_pylist([row], _KINDS[kind]))

    def _load(self, file: Location, kind: str, names: Sequence[str] | None = None) -> Any:
        """Return the one row of a file, which a task or an earlier micro-batch has written."""
        if not file.exists():
            raise unshared(self.root, f"lacks {file.parent.name}/{file.name}, which was written")
        schema = _KINDS[kind]
        chosen = schema if names is None else pa.schema([schema.field(each) for each in names])
        return stores.read_parquet([file], chosen).to_pylist()[0]

    @contextmanager
    def _damaged(self, file: Location) -> Iterator[None]:
        """Turn an error of decoding in the block into an :class:`InputProblem`."""
        try:
            yield
        except _DAMAGED as error:
            msg = f"{file} does not hold what was written; restore the store from a copy"
            raise InputProblem(msg) from error


def unshared(root: Location, finding: str) -> InputProblem:
    """Return the error for a store that is not as tasks have left it."""
    msg = (
        f"{root} {finding}: the driver and all workers have to reach one folder under this address"
    )
    return InputProblem(msg)


def load_store(root: Location) -> tuple[GroupingStore, View]:
    """Return the store that a stream has written, and its present version.

    Raise :class:`InputProblem` if there is none.
    """
    view = stores.require_view(root, "stream")
    stores.require_owner(view, VERSION)
    return GroupingStore(root), view


def open_store(root: Location, config: GroupingConfig) -> GroupingStore:
    """Return the store of a stream; make it if it does not exist.

    Raises :class:`InputProblem`, and writes nothing, if the folder belongs to another stream.
    """
    store = GroupingStore(root)
    stores.claim(store, {"version": VERSION, "config": config.to_json()}, "stream")
    return store


def encode_state(state: SenderState) -> pa.Buffer:
    """Return the file that holds a sender's state."""
    plain = state._asdict()
    summary: Summary = plain.pop("summary")
    plain["counted"] = [summary.tuples, summary.floor]
    columns = [summary.keys, pa.array(summary.counts), pa.array(summary.errors)]
    kept = {_SENDER: json.dumps(plain).encode("utf-8")}
    return _encode_table(pa.table(columns, names=_COLUMNS).replace_schema_metadata(kept))


def decode_state(data: pa.Buffer) -> SenderState:
    """Return the sender's state that :func:`encode_state` wrote."""
    table = feather.read_table(pa.BufferReader(data))
    plain = json.loads(table.schema.metadata[_SENDER])
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


def _encode_table(table: pa.Table) -> pa.Buffer:
    """Return the file that holds a table."""
    sink = pa.BufferOutputStream()
    feather.write_feather(table, sink, compression="uncompressed")  # the file around it is packed
    return sink.getvalue()


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
