"""The store of a query of scripts.

The store is a :class:`spark_impl.runtime.stores.TableStore`. The folder ``_control`` holds requests
of two kinds (:mod:`spark_impl.runtime.sources`):

    00000000-messages-<id>.parquet    messages of workers after micro-batch <id>, due at once
    <number>-<name>.parquet           flushes, due after all files of the history below the number

A replayed micro-batch sends the same messages, so the first ones stay. A driver that another one
has superseded may send them again after they were read: a reader leaves out what it has counted.
"""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields

import pyarrow as pa

from model.vocabulary import ScriptConfig
from spark_impl.runtime import accounts, stores
from spark_impl.runtime.arrays import PlainRow, Values
from spark_impl.runtime.histories import write_parquet
from spark_impl.runtime.storage import Address, InputProblem, locate
from spark_impl.runtime.tables import BATCH, look
from spark_impl.script.encoding import SCHEMAS

VERSION = 7
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
"""Columns after the grouping columns.

``worker`` holds the stamp below which results are known, and the sensor with the lowest watermark.
"""
BLOCK = pa.schema([("worker", pa.int32()), ("kind", pa.int32()), ("block", pa.binary())])
"""Columns of the files in ``_control``, after the grouping columns."""
_USUAL = {item.name: item.default for item in fields(ScriptConfig) if item.default is not MISSING}
"""Default of each setting; a configuration leaves out settings with theirs."""


@dataclass(frozen=True, slots=True)
class ScriptStore(stores.TableStore):
    """The store of one query."""

    @property
    def kinds(self) -> Mapping[str, pa.Schema]:
        """The columns of every kind of rows."""
        own = {name: self.schema_of(each) for name, each in TABLES.items()}
        return {**own, accounts.ACCOUNT: accounts.COLUMNS}

    def schema_of(self, columns: pa.Schema) -> pa.Schema:
        """Return the grouping columns and ``columns``."""
        return pa.schema([*self.groups, *columns])

    def standing(self) -> dict[Values, dict[int, PlainRow]]:
        """Return the last row of kind ``worker`` by worker and group.

        A group is a combination of values of the grouping columns.
        """
        names = [field.name for field in self.groups]
        found: dict[Values, dict[int, PlainRow]] = {}
        for row in self.read_kind("worker").sort_by(BATCH).to_pylist():
            found.setdefault(tuple(row[name] for name in names), {})[row["worker"]] = row
        return found

    def send(self, batch: int, rows: pa.Table) -> None:
        """Write the messages that workers have after a micro-batch; the next one delivers them."""
        file = self.control / f"{0:08d}-messages-{batch:08d}.parquet"
        if rows.num_rows and not file.exists():
            write_parquet(rows, file)


def open_store(store: ScriptStore, config: ScriptConfig) -> None:
    """Make a folder the store of a query, unless it is that already.

    Raises :class:`InputProblem`, and writes nothing, if the folder belongs to another query, or
    cannot be written.
    """
    given = {**_USUAL, **config.to_json()}
    identity = {
        "version": VERSION,
        "room": ROOM,
        "config": given,
        "group_columns": stores.groups_to_json(store.groups),
    }
    view = look(store.root)
    if view is not None and view.identity.get("room") == ROOM:
        theirs, ours = view.identity["config"]["workflows"], given["workflows"]
        different = [flow[0] for flow in (*ours, *theirs) if flow not in theirs or flow not in ours]
        if different:
            msg = f"{store.root} belongs to another query: its workflow {different[0]!r} is not"
            raise InputProblem(f"{msg} the same; other scripts need a new store")
    stores.claim(store, identity)


def load_store(root: Address) -> ScriptStore:
    """Return the store that a query has written, at its present version.

    Raises :class:`InputProblem` if there is none, or if it belongs to another room.
    """
    view = stores.require_view(locate(root))
    stores.require_owner(view, VERSION, ROOM)
    groups = stores.groups_from_json(view.identity["group_columns"])
    return ScriptStore(view.root, groups, seen=view)
