"""What a worker holds between epochs, as bytes: one Arrow file a worker.

The rows are tuples of the two stores and, at a source worker, the identities that may come again;
a column says which. Watermarks and counts stand in the metadata of the schema.
"""

import json
from typing import Any

import numpy as np
import pyarrow as pa

from spark_impl.join.admission import Admitted, Identities
from spark_impl.join.lane import WorkerState
from spark_impl.join.matching import SCHEMA, to_arrow, tuples_from_arrow

VERSION = 1
_META = b"straggler.join.worker"
_PART = pa.field("part", pa.string())
_STORES = {"r": "r_intake", "s": "s_intake"}


def empty_state() -> WorkerState:
    """Before the first epoch."""
    nothing = tuples_from_arrow(SCHEMA.empty_table())
    return WorkerState(nothing, nothing)


def encode_state(state: WorkerState) -> bytes:
    """The bytes that :func:`decode_state` reads."""
    tables: list[pa.Table] = []
    meta: dict[str, Any] = {"version": VERSION, "r_wm": state.r_wm_us, "s_wm": state.s_wm_us}
    for part, intake in _STORES.items():
        rows = pa.Table.from_batches([to_arrow(getattr(state, part))])
        tables.append(_marked(rows, part))
        admitted: Admitted | None = getattr(state, intake)
        if admitted is not None:
            meta[intake] = [admitted.t_max_us, admitted.tuples]
            tables.append(_marked(_known_table(admitted), intake))
    table = pa.concat_tables(tables).replace_schema_metadata({_META: json.dumps(meta)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as out:
        out.write_table(table)
    return bytes(sink.getvalue())


def decode_state(data: bytes) -> WorkerState:
    """What :func:`encode_state` wrote; ``ValueError`` when it is of another version."""
    table = pa.ipc.open_file(pa.BufferReader(data)).read_all()
    meta = json.loads(table.schema.metadata[_META])
    if meta["version"] != VERSION:
        msg = f"the state of a worker has version {meta['version']!r}, not {VERSION}"
        raise ValueError(msg)
    parts = table.column("part").to_numpy(zero_copy_only=False).astype(str)
    rows = {name: table.filter(pa.array(parts == name)) for name in np.unique(parts)}
    nothing = table.slice(0, 0)
    fields: dict[str, Any] = {"r_wm_us": meta["r_wm"], "s_wm_us": meta["s_wm"]}
    for part, intake in _STORES.items():
        fields[part] = tuples_from_arrow(rows.get(part, nothing).select(SCHEMA.names))
        if intake in meta:
            known = rows.get(intake, nothing)
            identities = Identities(known["source_id"].to_numpy(), known["ts"].to_numpy())
            t_max_us, count = meta[intake]
            fields[intake] = Admitted(t_max_us, count, identities)
    return WorkerState(**fields)


def _known_table(admitted: Admitted) -> pa.Table:
    """Identities in the columns of tuples; what has no meaning here is null."""
    given = admitted.known._asdict()
    nothing = [None] * len(admitted.known.ts)
    columns = [pa.array(given.get(each.name, nothing), each.type) for each in SCHEMA]
    return pa.table(columns, schema=SCHEMA)


def _marked(table: pa.Table, part: str) -> pa.Table:
    return table.append_column(_PART, pa.array([part] * table.num_rows, pa.string()))
