"""The store of a stream that is being spread.

The store is a :class:`spark_impl.runtime.stores.TableStore` with these kinds of rows:

    sender     the state of a sender after a micro-batch
    instance   the state of an instance, if instances have any
    standing   the progress of the stream after a micro-batch
    rejected   rows without a finite value, if listed
    account    rows of a micro-batch, by place of the ledger

Rules of this file:

* The state of a sender or an instance follows from its previous state and its tuples. After a
  crash, or in a second attempt of a task, the same state is written into another file.
* A version has the states and the progress of the last two micro-batches, because the source may
  repeat the last one.
"""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.feather as feather

from model.vocabulary import GroupingConfig
from spark_impl.grouping.windows import Standing
from spark_impl.runtime import accounts, stores
from spark_impl.runtime.histories import REFUSED
from spark_impl.runtime.states import from_bytes
from spark_impl.runtime.storage import Location

VERSION = 6
ROOM = "grouping"
SENDER, INSTANCE, STANDING, REJECTED = "sender", "instance", "standing", "rejected"
_STATE = pa.schema([("number", pa.int64()), ("content", pa.binary())])
_KINDS = {
    **dict.fromkeys((SENDER, INSTANCE, STANDING), _STATE),
    REJECTED: REFUSED,
    accounts.ACCOUNT: accounts.COLUMNS,
}


@dataclass(frozen=True, slots=True)
class GroupingStore(stores.TableStore):
    """The store of one stream."""

    kinds = _KINDS
    replaced = (SENDER, INSTANCE, STANDING)

    def save(self, kind: str, batch: int, number: int, content: bytes) -> Location:
        """Write the state of a sender or an instance after a micro-batch; return its file."""
        row = pa.Table.from_pylist([{"number": number, "content": content}], _STATE)
        return self.write(kind, batch, row)

    def load(self, kind: str, file: Location) -> bytes:
        """Return the state of a sender or an instance."""
        return bytes(self.read_state(file, kind)["content"])

    def standing(self, batch: int) -> Standing:
        """Return the progress after a micro-batch, which is the last one or the one before."""
        (row,) = self.read_kind(STANDING, batch).to_pylist()
        found: Standing = from_bytes(row["content"])
        return found


def load_store(root: Location) -> GroupingStore:
    """Return the store that a stream has written, at its present version.

    Raise :class:`InputProblem` if there is none.
    """
    view = stores.require_view(root, "stream")
    stores.require_owner(view, VERSION, ROOM)
    return GroupingStore(root, seen=view)


def open_store(root: Location, config: GroupingConfig) -> GroupingStore:
    """Return the store of a stream; make it if it does not exist.

    Raises :class:`InputProblem`, and writes nothing, if the folder belongs to another stream.
    """
    store = GroupingStore(root)
    identity = {"version": VERSION, "room": ROOM, "config": config.to_json()}
    stores.claim(store, identity, "stream")
    return store


def encode_table(table: pa.Table | None) -> bytes:
    """Return an instance's state as bytes; no state becomes no bytes."""
    sink = pa.BufferOutputStream()
    if table is not None:  # the store compresses the file around it
        feather.write_feather(table, sink, compression="uncompressed")
    return bytes(sink.getvalue())


def decode_table(data: bytes) -> pa.Table | None:
    """Return the instance's state that :func:`encode_table` wrote."""
    return feather.read_table(pa.BufferReader(data)) if data else None
