"""The state of a worker between epochs: its bytes, and its way to another number of workers.

The bytes are one Arrow file per worker. Its rows are the tuples of the two stores and, at a source
worker, the identities that may come again; a column says which. Watermarks and counts are in the
metadata of the schema.

Rules for another number of workers (docs/join.md, section 7):

* The chain is quiet: nothing but the states exists. The pairs that have not met are those of an r
  to the left of an s.
* The states of several old workers become that of one new worker after these pairs have met.
* If one old worker becomes several, no r may come to lie to the left of an s: they have met.
"""

import json
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from model.vocabulary.join import NO_WATERMARK_US
from spark_impl.join.admission import Admitted, Identities
from spark_impl.join.matching import SCHEMA, Pairs, Tuples, to_arrow, tuples_from_arrow
from spark_impl.join.side import Matcher


class WorkerState(NamedTuple):
    """The state of a worker when the chain is quiet; an epoch begins and ends with it."""

    r: Tuples
    s: Tuples
    r_wm_us: int = NO_WATERMARK_US
    s_wm_us: int = NO_WATERMARK_US
    r_intake: Admitted | None = None
    """Present at worker 0 only."""
    s_intake: Admitted | None = None
    """Present at the last worker only."""


VERSION = 1
_META = b"straggler.join.worker"
_PART = pa.field("part", pa.string())
_STORES = {"r": "r_intake", "s": "s_intake"}


def empty_state() -> WorkerState:
    """Return the state before the first epoch."""
    nothing = tuples_from_arrow(SCHEMA.empty_table())
    return WorkerState(nothing, nothing)


def encode_state(state: WorkerState) -> bytes:
    """Return the bytes that :func:`decode_state` reads."""
    tables: list[pa.Table] = []
    meta: dict[str, int | list[int]] = {
        "version": VERSION,
        "r_wm": state.r_wm_us,
        "s_wm": state.s_wm_us,
    }
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
    """Read the bytes of :func:`encode_state`. Raise ``ValueError`` for another version."""
    table = pa.ipc.open_file(pa.BufferReader(data)).read_all()
    meta = json.loads(table.schema.metadata[_META])
    if meta["version"] != VERSION:
        msg = f"the state of a worker has version {meta['version']!r}, not {VERSION}"
        raise ValueError(msg)
    parts = table.column("part").to_numpy(zero_copy_only=False).astype(str)
    rows = {name: table.filter(pa.array(parts == name)) for name in np.unique(parts)}
    nothing = table.slice(0, 0)

    def read_store(part: str) -> Tuples:
        return tuples_from_arrow(rows.get(part, nothing).select(SCHEMA.names))

    def read_intake(part: str) -> Admitted | None:
        if part not in meta:
            return None
        known = rows.get(part, nothing)
        identities = Identities(known["source_id"].to_numpy(), known["ts"].to_numpy())
        t_max_us, count = meta[part]
        return Admitted(t_max_us, count, identities)

    r, s = map(read_store, _STORES)
    return WorkerState(r, s, meta["r_wm"], meta["s_wm"], *map(read_intake, _STORES.values()))


def _known_table(admitted: Admitted) -> pa.Table:
    """Return identities in the columns of tuples; columns without a meaning here are null."""
    given = admitted.known._asdict()
    nothing = [None] * len(admitted.known.ts)
    columns = [pa.array(given.get(each.name, nothing), each.type) for each in SCHEMA]
    return pa.table(columns, schema=SCHEMA)


def _marked(table: pa.Table, part: str) -> pa.Table:
    return table.append_column(_PART, pa.array([part] * table.num_rows, pa.string()))


def adopt(
    load: Callable[[int], WorkerState], old: int, new: int, number: int, matcher: Matcher
) -> tuple[WorkerState, list[list[Pairs]]]:
    """Return the state of worker ``number`` of ``new`` workers, if there were ``old`` before.

    ``load`` returns the state of an old worker; there is at least one. The second value holds the
    pairs that meet when states are merged, by query.
    """
    if new <= old:
        first, end = number * old // new, (number + 1) * old // new
        return _merge([load(each) for each in range(first, end)], matcher)
    # The old worker that is split into new ones, among them ``number``.
    origin = ((number + 1) * old - 1) // new
    first, end = origin * new // old, (origin + 1) * new // old
    state = load(origin)
    return _split(state, number == first, number == end - 1), [[] for _ in matcher.queries]


def _merge(states: list[WorkerState], matcher: Matcher) -> tuple[WorkerState, list[list[Pairs]]]:
    """Merge neighbours, given from left to right, into one worker."""
    merged, *others = states
    found: list[list[Pairs]] = [[] for _ in matcher.queries]
    for right in others:
        for kept, pairs in zip(found, matcher.match(merged.r, right.s), strict=True):
            kept.append(pairs)
        merged = WorkerState(
            r=Tuples.concat([right.r, merged.r]),
            s=Tuples.concat([merged.s, right.s]),
            r_wm_us=right.r_wm_us,
            s_wm_us=merged.s_wm_us,
            r_intake=merged.r_intake,
            s_intake=right.s_intake,
        )
    return merged, found


def _split(state: WorkerState, is_leftmost: bool, is_rightmost: bool) -> WorkerState:
    """Return one part of a split worker: S goes to the leftmost part, R to the rightmost one."""
    nothing = empty_state()
    return state._replace(
        r=state.r if is_rightmost else nothing.r,
        s=state.s if is_leftmost else nothing.s,
        r_intake=state.r_intake if is_leftmost else None,
        s_intake=state.s_intake if is_rightmost else None,
    )
