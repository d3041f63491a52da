"""The store of a stream that is being spread.

    query.json                   configuration and version
    checkpoint/                  Spark's own
    batches/<batch>/sender-<i>.arrow    state of sender i after the micro-batch
    batches/<batch>/instance-<i>.arrow  state of instance i, if it has one, and its work
    batches/<batch>.json                the standing after the micro-batch, which is then done

Rules of this file:

* The state of a sender or an instance follows from its state before and its tuples: writing it
  again, after a crash or in a second attempt, writes the same.
* A micro-batch is done when its file exists; the files of the last two are kept.
* A file appears under its name when it is complete, or not at all.
"""

import io
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather

from model.vocabulary import GroupingConfig
from model.vocabulary.settings import JsonObject
from spark_impl.grouping.keys import HeavyKey, Summary, Table
from spark_impl.grouping.router import SenderState
from spark_impl.grouping.windows import Standing
from spark_impl.runtime import stores
from spark_impl.runtime.arrays import Ints
from spark_impl.runtime.histories import complete

VERSION = 1
_SENDER, _WORKED = b"straggler.sender", b"straggler.worked"
_EMPTY = pa.table({})
_COLUMNS = ["key", "count", "error"]


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
        return decode_standing((self.root / "batches" / f"{batch}.json").read_bytes())

    def done(self) -> int:
        """Return the number of micro-batches that are done."""
        return max(self.numbers("batches"), default=-1) + 1

    def finish(self, standing: Standing) -> None:
        """Mark a micro-batch as done, and remove the files of the one two before it."""
        batch = standing.batch - 1
        stores.write_bytes(self.root / "batches" / f"{batch}.json", encode_standing(standing))
        for path in self.root.glob("batches/[0-9]*"):
            if int(path.stem) < batch - 1:
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def forget(self, batch: int) -> None:
        """Remove what an earlier attempt at a micro-batch left."""
        folder = self.root / "batches" / str(batch)
        if folder.exists():
            shutil.rmtree(folder)

    def sender_path(self, batch: int, sender: int) -> Path:
        """Return the file of a sender's state after a micro-batch."""
        return self.root / "batches" / str(batch) / f"sender-{sender}.arrow"

    def load_sender(self, batch: int, sender: int) -> SenderState:
        """Return the state of a sender after a micro-batch; an empty one before the first."""
        if batch < 0:
            return SenderState()
        return decode_state(self.sender_path(batch, sender).read_bytes())

    def write_sender(self, batch: int, sender: int, state: SenderState) -> None:
        """Write the state of a sender after a micro-batch."""
        stores.write_bytes(self.sender_path(batch, sender), encode_state(state))

    def load_worked(self, batch: int, instance: int) -> Worked:
        """Return the work of an instance in a micro-batch; nothing if there is no file."""
        path = self.instance_path(batch, instance)
        if not path.exists():
            return Worked()
        table, plain = _read(str(path), _WORKED)
        return Worked(plain["tuples"], plain["busy_us"], table if plain["holds"] else None)

    def spent(self, batch: int, instance: int) -> tuple[int, int]:
        """Return the tuples of an instance in a micro-batch and their time (us)."""
        path = self.instance_path(batch, instance)
        if not path.exists():
            return 0, 0
        with pa.memory_map(str(path)) as file:  # which reads no state
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
        path = self.instance_path(batch, instance)
        path.parent.mkdir(parents=True, exist_ok=True)
        with complete(path) as scratch:
            _write_table(str(scratch), state, _WORKED, plain)

    def instance_path(self, batch: int, instance: int) -> Path:
        """Return the file of an instance's work in a micro-batch."""
        return self.root / "batches" / str(batch) / f"instance-{instance}.arrow"


def open_store(root: Path, config: GroupingConfig) -> GroupingStore:
    """Return the store of a stream; make it if it does not exist.

    Raises :class:`InputProblem`, and writes nothing, if the folder belongs to another stream.
    """
    identity = {"version": VERSION, "config": config.to_json()}

    def require_same() -> None:
        theirs: JsonObject = stores.read_identity(root, VERSION, dict, kind="stream")
        stores.require_same(root, theirs, identity, "stream")

    stores.claim(root, identity, require_same, "stream")
    return GroupingStore(root)


def encode_state(state: SenderState) -> bytes:
    """Return the file that holds a sender's state."""
    plain = state._asdict()
    summary: Summary = plain.pop("summary")
    plain["counted"] = [summary.tuples, summary.floor]
    columns = [summary.keys, pa.array(summary.counts), pa.array(summary.errors)]
    file = io.BytesIO()
    _write_table(file, pa.table(columns, names=_COLUMNS), _SENDER, plain)
    return file.getvalue()


def decode_state(data: bytes) -> SenderState:
    """Return the sender's state that :func:`encode_state` wrote."""
    table, plain = _read(io.BytesIO(data), _SENDER)
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


def _write_table(file: str | BinaryIO, table: pa.Table, name: bytes, plain: JsonObject) -> None:
    """Write a table, and plain data as its metadata."""
    kept = {**(table.schema.metadata or {}), name: json.dumps(plain).encode("utf-8")}
    feather.write_feather(table.replace_schema_metadata(kept), file, compression="zstd")


def _read(file: str | BinaryIO, name: bytes) -> tuple[pa.Table, JsonObject]:
    """Read what :func:`_write_table` wrote."""
    table = feather.read_table(file, memory_map=False)
    return table, json.loads(table.schema.metadata[name])


def _text(data: JsonObject) -> bytes:
    return json.dumps(data, indent=1, ensure_ascii=False).encode("utf-8")


def _numbers(column: pa.Array) -> Ints:
    return np.array(column, np.int64)


def encode_standing(standing: Standing) -> bytes:
    """Return the file that says where a stream stands."""
    return _text({**standing._asdict(), "table": standing.table._asdict()})


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
