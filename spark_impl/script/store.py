"""The store of a query of scripts.

The store is a :class:`spark_impl.runtime.stores.TableStore`. The table ``worker`` marks a
micro-batch as complete. The folder ``control`` holds requests to flush and the messages of workers
to each other. A replayed micro-batch sends the same messages, so the first ones stay.
"""

import uuid
from collections.abc import Iterable
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from model.vocabulary import ScriptConfig
from model.vocabulary.settings import JsonObject
from spark_impl.runtime import stores
from spark_impl.runtime.arrays import Values
from spark_impl.runtime.histories import InputProblem, append, writing
from spark_impl.script.encoding import SCHEMAS

VERSION = 2
ROOM = "script"
TABLES = {
    **SCHEMAS,
    "worker": pa.schema([("worker", pa.int32()), ("known_us", pa.int64())]),
}
"""Columns behind the grouping columns; ``worker`` holds the stamp below which results are known."""
BLOCK = pa.schema([("worker", pa.int32()), ("kind", pa.int32()), ("block", pa.binary())])
"""Rows of the files in ``control``, behind the grouping columns."""
_USUAL = {item.name: item.default for item in fields(ScriptConfig) if item.default is not MISSING}
"""Settings that a store may omit."""


@dataclass(frozen=True, slots=True)
class ScriptStore(stores.TableStore):
    """The store of one query."""

    since_us: int = 0
    """Results with earlier stamps are not recorded."""

    MARKER: ClassVar[str] = "worker"

    def tables(self) -> Iterable[str]:
        """Return the names of all tables."""
        return TABLES

    def schema(self, table: str) -> pa.Schema:
        """Return the schema of a table."""
        return self.schema_of(TABLES[table])

    def schema_of(self, columns: pa.Schema) -> pa.Schema:
        """Return the grouping columns and ``columns``."""
        return pa.schema([*self.groups, *columns])

    def known(self) -> dict[Values, dict[int, int]]:
        """Return the stamp below which each worker's results are known, by worker and group.

        A group is a combination of values of the grouping columns.
        """
        names = [field.name for field in self.groups]
        known: dict[Values, dict[int, int]] = {}
        for row in self.read_all("worker").sort_by("batch").to_pylist():
            own = known.setdefault(tuple(row[name] for name in names), {})
            own[row["worker"]] = row["known_us"]
        return known

    def send(self, batch: int, rows: pa.Table) -> None:
        """Write the messages that workers have after a micro-batch; the next one delivers them."""
        name = f"messages-{batch:08d}"
        if rows.num_rows and not (self.control / f"{name}.parquet").exists():
            append(self.control, rows, name)

    def sent_after(self, batch: int) -> bool:
        """Return whether workers sent messages after any micro-batch later than ``batch``."""
        numbers = (int(path.stem[-8:]) for path in self.control.glob("messages-*.parquet"))
        return max(numbers, default=-1) > batch

    def request(self, rows: Iterable[Values]) -> None:
        """Write requests to some workers; the next run carries them out, once."""
        schema = self.schema_of(BLOCK)
        arrays = [
            pa.array(column, field.type)
            for column, field in zip(zip(*rows, strict=True), schema, strict=True)
        ]
        append(self.control, pa.table(arrays, schema=schema), f"request-{uuid.uuid4().hex}")


def open_store(store: ScriptStore, config: ScriptConfig) -> None:
    """Make a folder the store of a query, if it is not yet.

    Raises :class:`InputProblem`, and writes nothing, if the folder belongs to another query, does
    not say to which, or cannot be written.
    """
    identity = {
        "version": VERSION,
        "room": ROOM,
        "config": config.to_json(),
        "group_columns": stores.groups_to_json(store.groups),
        "since_us": store.since_us,
    }
    stores.claim(store.root, identity, lambda: _require_same(store.root, identity))
    with writing(store.root):  # here, because a crash may have come between the two
        store.control.mkdir(exist_ok=True)


def load_store(root: Path) -> ScriptStore:
    """Return the store that a query has written.

    Raises :class:`InputProblem` if there is none, if it belongs to another room, or if it does not
    say to which query it belongs.
    """

    def read(identity: JsonObject) -> ScriptStore:
        groups = stores.groups_from_json(identity["group_columns"])
        return ScriptStore(root, groups, int(identity["since_us"]))

    return stores.read_identity(root, VERSION, read, room=ROOM)


def _require_same(root: Path, identity: JsonObject) -> None:
    """Raise :class:`InputProblem` if a store belongs to another query."""

    def read(other: JsonObject) -> JsonObject:
        config = {**_USUAL, **other["config"]}
        settings = {item.name: config[item.name] for item in fields(ScriptConfig)}
        return {**settings, **{name: other[name] for name in identity if name != "config"}}

    theirs, ours = stores.read_identity(root, VERSION, read, room=ROOM), read(identity)
    without = {name: value for name, value in ours.items() if name != "workflows"}
    stores.require_same(root, theirs, without)
    if theirs["workflows"] != ours["workflows"]:
        name = _first_difference(theirs["workflows"], ours["workflows"])
        msg = f"{root} belongs to another query: its workflow {name!r} is not the same"
        raise InputProblem(f"{msg}; other scripts need a new store")


def _first_difference(theirs: list[list[str]], ours: list[list[str]]) -> str:
    """Return the name of the first workflow that only one side has."""
    return next(flow[0] for flow in (*ours, *theirs) if flow not in theirs or flow not in ours)
