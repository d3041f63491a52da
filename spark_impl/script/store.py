"""The store of a query of scripts.

The store is a :class:`spark_impl.runtime.stores.TableStore`. The folder ``_control`` holds requests
of two kinds (:mod:`spark_impl.runtime.sources`):

    00000000-messages-<id>.parquet    messages of workers after micro-batch <id>, due at once
    <number>-<name>.parquet           flushes, due after all files of the history below the number

A replayed micro-batch sends the same messages, so the first ones stay.
"""

import uuid
from collections.abc import Iterable
from dataclasses import MISSING, dataclass, fields

import pyarrow as pa

from model.vocabulary import ScriptConfig
from model.vocabulary.settings import JsonObject
from spark_impl.runtime import stores
from spark_impl.runtime.arrays import PlainRow, Values
from spark_impl.runtime.histories import next_number, write_parquet
from spark_impl.runtime.storage import Address, InputProblem, Location, locate
from spark_impl.runtime.versions import BATCH, View
from spark_impl.script.encoding import SCHEMAS

VERSION = 5
ROOM = "script"
TABLES = {
    **SCHEMAS,
    "worker": pa.schema(
        [
            ("worker", pa.int32()),
            ("known_us", pa.int64()),
            ("held_by", pa.string()),
            ("wm_us", pa.int64()),
        ]
    ),
}
"""Columns behind the grouping columns.

``worker`` holds the stamp below which results are known, and the sensor with the lowest watermark.
"""
BLOCK = pa.schema([("worker", pa.int32()), ("kind", pa.int32()), ("block", pa.binary())])
"""Rows of the files in ``control``, behind the grouping columns."""
_USUAL = {item.name: item.default for item in fields(ScriptConfig) if item.default is not MISSING}
"""Settings that a store may omit."""


@dataclass(frozen=True, slots=True)
class ScriptStore(stores.TableStore):
    """The store of one query."""

    since_us: int = 0
    """Results with earlier stamps are not recorded."""

    def kinds(self) -> Iterable[str]:
        """Return the names of all kinds of rows."""
        return TABLES

    def schema(self, kind: str) -> pa.Schema:
        """Return the columns of a kind of rows."""
        return self.schema_of(TABLES[kind])

    def schema_of(self, columns: pa.Schema) -> pa.Schema:
        """Return the grouping columns and ``columns``."""
        return pa.schema([*self.groups, *columns])

    def known(self, view: View) -> dict[Values, dict[int, int]]:
        """Return the stamp below which each worker's results are known, by worker and group.

        A group is a combination of values of the grouping columns.
        """
        return {
            group: {worker: row["known_us"] for worker, row in own.items()}
            for group, own in self.standing(view).items()
        }

    def standing(self, view: View) -> dict[Values, dict[int, PlainRow]]:
        """Return the last row of kind ``worker`` by worker and group."""
        names = [field.name for field in self.groups]
        found: dict[Values, dict[int, PlainRow]] = {}
        for row in self.read_kind(view, "worker").sort_by(BATCH).to_pylist():
            found.setdefault(tuple(row[name] for name in names), {})[row["worker"]] = row
        return found

    def send(self, batch: int, rows: pa.Table) -> None:
        """Write the messages that workers have after a micro-batch; the next one delivers them."""
        file = self.control / f"{0:08d}-messages-{batch:08d}.parquet"
        if rows.num_rows and not file.exists():
            write_parquet(rows, file)

    def request(self, rows: Iterable[Values], history: Location) -> None:
        """Write requests to some workers; they are due after all files that a history has now.

        The next run carries them out, once.
        """
        schema = self.schema_of(BLOCK)
        arrays = [
            pa.array(column, field.type)
            for column, field in zip(zip(*rows, strict=True), schema, strict=True)
        ]
        file = self.control / f"{next_number(history):08d}-{uuid.uuid4().hex}.parquet"
        write_parquet(pa.table(arrays, schema=schema), file)


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
    stores.claim(store, identity, lambda view: _require_same(view, identity))


def load_store(root: Address) -> tuple[ScriptStore, View]:
    """Return the store that a query has written, and its present version.

    Raises :class:`InputProblem` if there is none, if it belongs to another room, or if it does not
    say to which query it belongs.
    """
    folder = locate(root)

    def read(identity: JsonObject) -> ScriptStore:
        groups = stores.groups_from_json(identity["group_columns"])
        return ScriptStore(folder, groups, int(identity["since_us"]))

    return stores.read_identity(folder, VERSION, read, room=ROOM)


def config_of(view: View) -> ScriptConfig:
    """Return the configuration of the query that a store belongs to."""

    def read(identity: JsonObject) -> ScriptConfig:
        return ScriptConfig.from_json(identity["config"])

    return stores.read_identity(view.root, VERSION, read, room=ROOM, view=view)[0]


def _require_same(view: View, identity: JsonObject) -> None:
    """Raise :class:`InputProblem` if a store belongs to another query."""

    def read(other: JsonObject) -> JsonObject:
        config = {**_USUAL, **other["config"]}
        settings = {item.name: config[item.name] for item in fields(ScriptConfig)}
        return {**settings, **{name: other[name] for name in identity if name != "config"}}

    root, ours = view.root, read(identity)
    theirs, _ = stores.read_identity(root, VERSION, read, room=ROOM, view=view)
    without = {name: value for name, value in ours.items() if name != "workflows"}
    stores.require_same(root, theirs, without)
    if theirs["workflows"] != ours["workflows"]:
        name = _first_difference(theirs["workflows"], ours["workflows"])
        msg = f"{root} belongs to another query: its workflow {name!r} is not the same"
        raise InputProblem(f"{msg}; other scripts need a new store")


def _first_difference(theirs: list[list[str]], ours: list[list[str]]) -> str:
    """Return the name of the first workflow that only one side has."""
    return next(flow[0] for flow in (*ours, *theirs) if flow not in theirs or flow not in ours)
