"""The folder in which a stream that is being spread keeps where it stands.

    query.json                   configuration and version
    checkpoint/                  Spark's own
    batches/<batch>/<i>.arrow    what sender i holds after the micro-batch
    batches/<batch>.json         the window that the next one belongs to: the micro-batch is done

Rules of this file:

* A sender's state follows from the state before and its tuples: whoever writes it again, after a
  crash or as a second attempt, writes the same.
* A file appears under its name when it is complete, or not at all.
"""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather

from model.vocabulary import GroupingConfig
from spark_impl.grouping.router import SenderState
from spark_impl.grouping.summaries import Summary
from spark_impl.grouping.table import HeavyKey, Table
from spark_impl.grouping.windows import Standing
from spark_impl.streams import InputProblem, complete

VERSION = 1
_STATE = b"straggler.sender"


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
        return _decoded(json.loads(path.read_text(encoding="utf-8")))

    def done(self) -> int:
        """How many micro-batches are done."""
        numbers = [int(path.stem) for path in self.root.glob("batches/[0-9]*.json")]
        return max(numbers, default=-1) + 1

    def finish(self, standing: Standing) -> None:
        """A micro-batch is done; what came two before it is needed no more."""
        batch = standing.batch - 1
        _write(self.root / "batches" / f"{batch}.json", _encoded(standing))
        self.forget_senders(batch - 2)
        (self.root / "batches" / f"{batch - 2}.json").unlink(missing_ok=True)

    def forget_senders(self, batch: int) -> None:
        """What senders hold after a micro-batch is about to be written anew."""
        shutil.rmtree(self.root / "batches" / str(batch), ignore_errors=True)

    def sender_path(self, batch: int, sender: int) -> Path:
        """The file of a sender's state after a micro-batch."""
        return self.root / "batches" / str(batch) / f"{sender}.arrow"

    def load_sender(self, batch: int, sender: int) -> SenderState:
        """What a sender holds after a micro-batch; nothing before the first one."""
        if batch < 0:
            return SenderState()
        table = feather.read_table(self.sender_path(batch, sender), memory_map=False)
        plain = json.loads(table.schema.metadata[_STATE])
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

    def write_sender(self, batch: int, sender: int, state: SenderState) -> None:
        """What a sender holds after a micro-batch."""
        plain = state._asdict()
        summary: Summary = plain.pop("summary")
        plain["counted"] = [summary.tuples, summary.floor]
        metadata = {_STATE: json.dumps(plain).encode("utf-8")}
        columns = [summary.keys, pa.array(summary.counts), pa.array(summary.errors)]
        table = pa.table(columns, names=_COLUMNS).replace_schema_metadata(metadata)
        path = self.sender_path(batch, sender)
        path.parent.mkdir(parents=True, exist_ok=True)
        with complete(path) as scratch:
            feather.write_feather(table, str(scratch), compression="zstd")


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
    elif root.exists() and (not root.is_dir() or any(root.iterdir())):
        msg = f"{root} is neither an empty folder nor the store of a stream"
        raise InputProblem(msg)
    else:
        (root / "batches").mkdir(parents=True, exist_ok=True)
        _write(path, wanted)
    return Store(root)


def _write(path: Path, data: Any) -> None:
    with complete(path) as scratch:
        scratch.write_text(json.dumps(data, indent=1, ensure_ascii=False), encoding="utf-8")


def _numbers(column: pa.Array) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.array(column, np.int64)


def _encoded(standing: Standing) -> dict[str, Any]:
    return {**standing._asdict(), "table": standing.table._asdict()}


def _decoded(data: dict[str, Any]) -> Standing:
    table = dict(data["table"])
    table["times"] = tuple(table["times"])
    table["heavy"] = {key: HeavyKey(*each) for key, each in table["heavy"].items()}
    if table["buckets"] is not None:
        table["buckets"] = tuple(table["buckets"])
    measured = data["measured"] and tuple(data["measured"])
    return Standing(**{**data, "table": Table(**table), "measured": measured})
