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
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather

from model.vocabulary import GroupingConfig
from spark_impl.grouping.keys import HeavyKey, Summary, Table
from spark_impl.grouping.router import SenderState
from spark_impl.grouping.windows import Standing
from spark_impl.runtime import stores
from spark_impl.runtime.arrays import Ints
from spark_impl.runtime.storage import Location

VERSION = 3
SENDER, INSTANCE, STANDING, REJECTED = "sender", "instance", "standing", "rejected"
_SENDER = b"straggler.sender"
_COLUMNS = ["key", "count", "error"]
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

    kinds = _KINDS
    replaced = (SENDER, INSTANCE, STANDING)

    def standing(self, batch: int) -> Standing:
        """Return the standing after a micro-batch, which is the last one or the one before."""
        (row,) = self.read_kind(STANDING, batch).to_pylist()
        return decode_standing(row["content"])

    def load_sender(self, file: Location) -> SenderState:
        """Return the state of a sender."""
        return decode_state(self.read_state(file, SENDER)["content"])

    def write_sender(self, batch: int, sender: int, state: SenderState) -> Location:
        """Write the state of a sender after a micro-batch; return its file."""
        row = {"number": sender, "content": encode_state(state)}
        return self.write_state(SENDER, batch, row)

    def load_worked(self, file: Location) -> Worked:
        """Return the work of an instance in a micro-batch."""
        row = self.read_state(file, INSTANCE)
        held = row["content"]
        state = None if held is None else feather.read_table(pa.BufferReader(held))
        return Worked(row["tuples"], row["busy_us"], state)

    def write_worked(self, batch: int, instance: int, worked: Worked) -> Location:
        """Write the work of an instance in a micro-batch; return its file."""
        held = None if worked.state is None else _encode_table(worked.state)
        row = {"number": instance, "tuples": worked.tuples, "busy_us": worked.busy_us}
        return self.write_state(INSTANCE, batch, {**row, "content": held})


def load_store(root: Location) -> GroupingStore:
    """Return the store that a stream has written, at its present version.

    Raise :class:`InputProblem` if there is none.
    """
    view = stores.require_view(root, "stream")
    stores.require_owner(view, VERSION)
    return GroupingStore(root, seen=view)


def open_store(root: Location, config: GroupingConfig) -> GroupingStore:
    """Return the store of a stream; make it if it does not exist.

    Raises :class:`InputProblem`, and writes nothing, if the folder belongs to another stream.
    """
    store = GroupingStore(root)
    stores.claim(store, {"version": VERSION, "config": config.to_json()}, "stream")
    return store


def encode_state(state: SenderState) -> bytes:
    """Return the file that holds a sender's state."""
    plain = state._asdict()
    summary: Summary = plain.pop("summary")
    plain["counted"] = [summary.tuples, summary.floor]
    columns = [summary.keys, pa.array(summary.counts), pa.array(summary.errors)]
    kept = {_SENDER: json.dumps(plain).encode("utf-8")}
    return _encode_table(pa.table(columns, names=_COLUMNS).replace_schema_metadata(kept))


def decode_state(data: bytes) -> SenderState:
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


def _encode_table(table: pa.Table) -> bytes:
    """Return the file that holds a table."""
    sink = pa.BufferOutputStream()
    feather.write_feather(table, sink, compression="uncompressed")  # the file around it is packed
    return bytes(sink.getvalue())


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
