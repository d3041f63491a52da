"""The folder in which a stream that is being spread keeps where it stands.

    query.json                   configuration and version
    checkpoint/                  Spark's own
    batches/<batch>/sender-<i>.arrow    what sender i holds after the micro-batch
    batches/<batch>/instance-<i>.arrow  what instance i holds, if it holds something, and its times
    batches/<batch>.json                the window that the next one belongs to: it is done

Rules of this file:

* What a sender or an instance holds follows from what it held before and its tuples: whoever
  writes it again, after a crash or as a second attempt, writes the same.
* A micro-batch is done when its file is there; what the last two left is kept.
* A file appears under its name when it is complete, or not at all.
"""

import io
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather

from model.vocabulary import GroupingConfig
from spark_impl.grouping.keys import HeavyKey, Summary, Table
from spark_impl.grouping.router import SenderState
from spark_impl.grouping.windows import Standing
from spark_impl.runtime.histories import InputProblem, complete, writing

VERSION = 1
_SENDER, _WORKED = b"straggler.sender", b"straggler.worked"
_EMPTY = pa.table({})


class Worked(NamedTuple):
    """What an instance did in a micro-batch."""

    tuples: int = 0
    busy_us: int = 0
    state: pa.Table | None = None
    """What it holds since."""


@dataclass(frozen=True, slots=True)
class Store:
    """Where everything of one stream lies."""

    root: Path

    @property
    def checkpoint(self) -> Path:
        """Spark's checkpoint."""
        return self.root / "checkpoint"

    def standing(self, batch: int) -> Standing:
        """Where the stream stood after a micro-batch."""
        path = self.root / "batches" / f"{batch}.json"
        return decode_standing(path.read_bytes())

    def done(self) -> int:
        """How many micro-batches are done."""
        numbers = [int(path.stem) for path in self.root.glob("batches/[0-9]*.json")]
        return max(numbers, default=-1) + 1

    def finish(self, standing: Standing) -> None:
        """A micro-batch is done; what came two before it is needed no more."""
        batch = standing.batch - 1
        _write(self.root / "batches" / f"{batch}.json", encode_standing(standing))
        for path in self.root.glob("batches/[0-9]*"):
            if int(path.stem) < batch - 1:
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def forget(self, batch: int) -> None:
        """What a micro-batch leaves is about to be written anew."""
        folder = self.root / "batches" / str(batch)
        if folder.exists():
            shutil.rmtree(folder)

    def sender_path(self, batch: int, sender: int) -> Path:
        """The file of a sender's state after a micro-batch."""
        return self.root / "batches" / str(batch) / f"sender-{sender}.arrow"

    def load_sender(self, batch: int, sender: int) -> SenderState:
        """What a sender holds after a micro-batch; nothing before the first one."""
        if batch < 0:
            return SenderState()
        return decode_state(self.sender_path(batch, sender).read_bytes())

    def write_sender(self, batch: int, sender: int, state: SenderState) -> None:
        """What a sender holds after a micro-batch."""
        _write(self.sender_path(batch, sender), encode_state(state))

    def load_worked(self, batch: int, instance: int) -> Worked:
        """What an instance did in a micro-batch; nothing if it did nothing."""
        path = self.instance_path(batch, instance)
        if not path.exists():
            return Worked()
        table, plain = _read(str(path), _WORKED)
        return Worked(plain["tuples"], plain["busy_us"], table if plain["holds"] else None)

    def spent(self, batch: int, instance: int) -> tuple[int, int]:
        """How many tuples an instance worked on in a micro-batch, and how long, in microseconds."""
        path = self.instance_path(batch, instance)
        if not path.exists():
            return 0, 0
        with pa.memory_map(str(path)) as file:  # which reads no state
            plain = json.loads(pa.ipc.open_file(file).schema.metadata[_WORKED])
        return plain["tuples"], plain["busy_us"]

    def write_worked(self, batch: int, instance: int, worked: Worked) -> None:
        """What an instance did in a micro-batch."""
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
        """The file of what an instance did in a micro-batch."""
        return self.root / "batches" / str(batch) / f"instance-{instance}.arrow"


_COLUMNS = ["key", "count", "error"]


def open_store(root: Path, config: GroupingConfig) -> Store:
    """The store of a stream, made if it does not exist.

    Raises :class:`InputProblem`, and writes nothing, when it belongs to another one.
    """
    wanted = {"version": VERSION, "config": config.to_json()}
    path = root / "query.json"
    if path.exists():
        found = json.loads(path.read_text(encoding="utf-8"))
        if found != wanted:
            msg = f"{root} belongs to another stream: {found}, this one is {wanted}"
            raise InputProblem(msg)
    elif root.exists() and not (root.is_dir() and all(map(_is_hidden, root.iterdir()))):
        msg = f"{root} is neither an empty folder nor the store of a stream"
        raise InputProblem(msg)
    else:
        with writing(root):
            root.mkdir(parents=True, exist_ok=True)
        _write(path, _text(wanted))
    return Store(root)


def _is_hidden(path: Path) -> bool:
    """Ours, from a run that was killed while it made the store, or of no concern."""
    return path.name.startswith(".")


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


def _write_table(file: str | BinaryIO, table: pa.Table, name: bytes, plain: Any) -> None:
    """A table, and plain data with it."""
    kept = {**(table.schema.metadata or {}), name: json.dumps(plain).encode("utf-8")}
    feather.write_feather(table.replace_schema_metadata(kept), file, compression="zstd")


def _read(file: str | BinaryIO, name: bytes) -> tuple[pa.Table, Any]:
    """What :func:`_write_table` wrote."""
    table = feather.read_table(file, memory_map=False)
    return table, json.loads(table.schema.metadata[name])


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with complete(path) as scratch:
        scratch.write_bytes(data)


def _text(data: Any) -> bytes:
    return json.dumps(data, indent=1, ensure_ascii=False).encode("utf-8")


def _numbers(column: pa.Array) -> np.ndarray[Any, np.dtype[np.int64]]:
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
