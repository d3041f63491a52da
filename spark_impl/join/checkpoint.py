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

import pyarrow as pa

from model.vocabulary.join import NO_WATERMARK_US, R, S
from spark_impl.join.admission import Admitted, Identities
from spark_impl.join.columns import name_of_column
from spark_impl.join.matching import (
    SCHEMA,
    Pairs,
    Tuples,
    to_arrow,
    tuples_from_arrow,
    with_columns,
)
from spark_impl.join.side import Matcher


class StreamState(NamedTuple):
    """One stream at a worker when the chain is quiet."""

    tuples: Tuples
    wm_us: int = NO_WATERMARK_US
    intake: Admitted | None = None
    """Present at the worker where the stream enters."""


class WorkerState(NamedTuple):
    """The state of a worker when the chain is quiet; an epoch begins and ends with it."""

    r: StreamState
    s: StreamState


_META = b"straggler.join.worker"
_PART = pa.field("part", pa.string())


def empty_state() -> WorkerState:
    """Return the state before the first epoch."""
    nothing = StreamState(tuples_from_arrow(SCHEMA.empty_table()))
    return WorkerState(nothing, nothing)


def encode_state(state: WorkerState) -> bytes:
    """Return the bytes that :func:`decode_state` reads."""
    tables, meta = list[pa.Table](), dict[str, list[int]]()
    for part, (tuples, wm_us, intake) in state._asdict().items():
        meta[part] = [wm_us]
        rows = to_arrow(tuples)
        names = [
            name if name in SCHEMA.names else name_of_column(part, name)
            for name in rows.schema.names
        ]
        tables.append(_marked(pa.Table.from_batches([rows]).rename_columns(names), part))
        if intake is not None:
            meta[part] += [intake.t_max_us, intake.tuples]
            tables.append(_marked(_known_table(intake), f"{part} known"))
    # Each part has nothing in the columns of the other stream.
    table = pa.concat_tables(tables, promote_options="default").replace_schema_metadata(
        {_META: json.dumps(meta)}
    )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as out:
        out.write_table(table)
    return bytes(sink.getvalue())


def decode_state(data: bytes) -> WorkerState:
    """Read the bytes of :func:`encode_state`."""
    table = pa.ipc.open_file(pa.BufferReader(data)).read_all()
    meta = json.loads(table.schema.metadata[_META])
    parts = table.column("part").to_numpy(zero_copy_only=False).astype(str)

    def read(part: str) -> StreamState:
        tuples, known = (table.filter(pa.array(parts == name)) for name in (part, f"{part} known"))
        wm_us, *figures = meta[part]
        intake = None
        if figures:
            t_max_us, count = figures
            identities = Identities(known["source_id"].to_numpy(), known["ts"].to_numpy())
            intake = Admitted(t_max_us, count, identities)
        prefix = name_of_column(part, "")
        names = {name: name for name in SCHEMA.names}
        names |= {
            name: name.removeprefix(prefix)
            for name in table.schema.names
            if name.startswith(prefix)
        }
        own = tuples.select([*names]).rename_columns([*names.values()])
        return StreamState(tuples_from_arrow(own), wm_us, intake)

    return WorkerState(*map(read, WorkerState._fields))


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
    pairs that meet when states are merged, by query. Old tuples have nothing in columns that have
    come since.
    """
    if new <= old:
        first, end = number * old // new, (number + 1) * old // new
        return _merge([_with_columns(load(each), matcher) for each in range(first, end)], matcher)
    # The old worker that is split into new ones, among them ``number``.
    origin = ((number + 1) * old - 1) // new
    first, end = origin * new // old, (origin + 1) * new // old
    state = _with_columns(load(origin), matcher)
    return _split(state, number == first, number == end - 1), [[] for _ in matcher.queries]


def _merge(states: list[WorkerState], matcher: Matcher) -> tuple[WorkerState, list[list[Pairs]]]:
    """Merge neighbours, given from left to right, into one worker."""
    merged, *others = states
    found: list[list[Pairs]] = [[] for _ in matcher.queries]
    for right in others:
        for kept, pairs in zip(found, matcher.match(merged.r.tuples, right.s.tuples), strict=True):
            kept.append(pairs)
        r, s = (
            Tuples.concat([right.r.tuples, merged.r.tuples]),
            Tuples.concat([merged.s.tuples, right.s.tuples]),
        )
        merged = WorkerState(
            StreamState(r, right.r.wm_us, merged.r.intake),
            StreamState(s, merged.s.wm_us, right.s.intake),
        )
    return merged, found


def _split(state: WorkerState, is_leftmost: bool, is_rightmost: bool) -> WorkerState:
    """Return one part of a split worker: S goes to the leftmost part, R to the rightmost one."""
    nothing = slice(0, 0)
    r, s = state
    if not is_rightmost:
        r, s = r._replace(tuples=r.tuples.take(nothing)), s._replace(intake=None)
    if not is_leftmost:
        r, s = r._replace(intake=None), s._replace(tuples=s.tuples.take(nothing))
    return WorkerState(r, s)


def _with_columns(state: WorkerState, matcher: Matcher) -> WorkerState:
    """Return a state whose tuples have the columns that they have now."""
    r, s = state
    return WorkerState(
        r._replace(tuples=with_columns(r.tuples, matcher.columns[R])),
        s._replace(tuples=with_columns(s.tuples, matcher.columns[S])),
    )
