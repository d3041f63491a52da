"""The folder in which a query of scripts keeps what it found out.

    query.json                      configuration, grouping columns, since when it answers, version
    checkpoint/                     Spark's own: offsets, commits, state
    control/                        requests to flush, and what workers have for each other
    <table>/batch=<id>/*.parquet    one folder a table and micro-batch

Rules of this file:

* Everything is written as :mod:`spark_impl.runtime.stores` says.
* ``worker`` is written last: a batch that has none did not happen yet, for every reader.
* Messages of a micro-batch are the same whenever it is replayed; the first ones stay.
"""

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

import pyarrow as pa

from model.vocabulary import ScriptConfig
from spark_impl.runtime import stores
from spark_impl.runtime.histories import InputProblem, append, writing
from spark_impl.script.encoding import SCHEMAS

VERSION = 2
ROOM = "script"
TABLES = {
    **SCHEMAS,
    "worker": pa.schema([("worker", pa.int32()), ("known_us", pa.int64())]),
}
"""Columns behind those of grouping; ``worker`` says until when its results are known."""
BLOCK = pa.schema([("worker", pa.int32()), ("kind", pa.int32()), ("block", pa.binary())])
"""Rows of the files in ``control``, behind the grouping columns."""
_USUAL = {item.name: item.default for item in fields(ScriptConfig) if item.default is not MISSING}
"""Settings that a store need not name."""


@dataclass(frozen=True, slots=True)
class Store:
    """Where the tables of one query lie, and how they are read and written."""

    root: Path
    groups: tuple[pa.Field, ...] = ()
    since_us: int = 0
    """Results that are stamped earlier are not recorded."""

    @property
    def checkpoint(self) -> Path:
        """Spark's checkpoint."""
        return self.root / "checkpoint"

    @property
    def control(self) -> Path:
        """What is read with the files of the history."""
        return self.root / "control"

    def schema(self, columns: pa.Schema) -> pa.Schema:
        """Columns behind those of grouping."""
        return pa.schema([*self.groups, *columns])

    def begin(self, batch: int) -> None:
        """Remove what an earlier attempt at this batch left, the mark that it is complete first.

        Raises :class:`InputProblem` when the tables are not where Spark's checkpoint is.
        """
        stores.begin(self.root, self.committed(), batch, ("worker", *SCHEMAS))

    def write(self, table: str, batch: int, rows: pa.Table, part: int = 0) -> None:
        """Write one part of a table; nothing for no rows, except that ``worker`` marks the end."""
        if rows.num_rows or table == "worker":
            stores.write_part(self.root, table, batch, rows, part)

    def committed(self) -> int:
        """The last complete micro-batch, -1 if there is none."""
        return max(stores.files(self.root, "worker"), default=-1)

    def read_all(self, table: str) -> pa.Table:
        """A table with its complete micro-batches, told apart by the column ``batch``."""
        schema = self.schema(TABLES[table])
        return stores.read_upto(self.root, table, schema, self.committed())

    def known(self) -> dict[tuple[Any, ...], dict[int, int]]:
        """By combination of the grouping columns' values: until when each worker's results are."""
        rows = self.read_all("worker")
        names = [field.name for field in self.groups]
        found: dict[tuple[Any, ...], dict[int, int]] = {}
        for row in rows.sort_by("batch").to_pylist():
            own = found.setdefault(tuple(row[name] for name in names), {})
            own[row["worker"]] = row["known_us"]
        return found

    def send(self, batch: int, rows: pa.Table) -> None:
        """What workers have for each other after a micro-batch; the next one brings it."""
        name = f"messages-{batch:08d}"
        if rows.num_rows and not (self.control / f"{name}.parquet").exists():
            append(self.control, rows, name)

    def sent_after(self, batch: int) -> bool:
        """Whether workers had something for each other after any later micro-batch."""
        numbers = (int(path.stem[-8:]) for path in self.control.glob("messages-*.parquet"))
        return max(numbers, default=-1) > batch

    def request(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Ask for something of some workers; the next run carries it out, once."""
        schema = self.schema(BLOCK)
        arrays = [
            pa.array(column, field.type)
            for column, field in zip(zip(*rows, strict=True), schema, strict=True)
        ]
        append(self.control, pa.table(arrays, schema=schema), f"request-{uuid.uuid4().hex}")


def open_store(store: Store, config: ScriptConfig) -> None:
    """Make a folder the store of a query, if it is not yet.

    Raises :class:`InputProblem`, and writes nothing, when it belongs to another query, does not say
    to which, or cannot be made.
    """
    plain = {
        "version": VERSION,
        "room": ROOM,
        "config": config.to_json(),
        "group_columns": stores.names_of(store.groups),
        "since_us": store.since_us,
    }
    stores.describe(store.root, plain, lambda: _require_same(store.root, plain))
    with writing(store.root):  # here, because a crash may have come between the two
        store.control.mkdir(exist_ok=True)


def load_store(root: Path) -> Store:
    """The store that a query has written.

    Raises :class:`InputProblem` when there is none, when it belongs to a query of another room, or
    when it does not say what it is.
    """

    def read(found: Mapping[str, Any]) -> Store:
        return Store(root, stores.groups_of(found["group_columns"]), int(found["since_us"]))

    return stores.described(root, ROOM, VERSION, read)


def _require_same(root: Path, plain: Mapping[str, Any]) -> None:
    """Refuse the store of another query."""

    def read(found: Mapping[str, Any]) -> dict[str, Any]:
        said = {**_USUAL, **found["config"]}
        settings = {item.name: said[item.name] for item in fields(ScriptConfig)}
        return {**settings, **{name: found[name] for name in plain if name != "config"}}

    theirs, ours = stores.described(root, ROOM, VERSION, read), read(plain)
    for name in sorted(ours):
        if theirs[name] != ours[name]:
            msg = f"{root} belongs to a query with other {name}"
            if name == "workflows":
                msg += f" ({_other(theirs[name], ours[name])}); other scripts need a new store"
            else:
                msg += f": {theirs[name]!r}, not {ours[name]!r}"
            raise InputProblem(msg)


def _other(theirs: list[Any], ours: list[Any]) -> str:
    """The first workflow that two sets do not have in common."""
    name = next(flow[0] for flow in (*ours, *theirs) if flow not in theirs or flow not in ours)
    return f"{name!r} is not the same"
