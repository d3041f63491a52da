"""A worker's state, inputs and outputs as bytes: arrays of records.

Rules of this file:

* Nothing here computes. Decoding returns what was encoded.
* Integers that do not fit into 64 bits are written as text.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from model.vocabulary.script.plan import Share
from spark_impl.runtime.arrays import Column, Records
from spark_impl.script.admission import Arrivals, Clock
from spark_impl.script.arithmetic import Folded, Integers, Scaled, Tuples
from spark_impl.script.kernel import Log, Message, State
from spark_impl.script.silence import Moments, Pieces, Timeline
from spark_impl.script.slices import Slices

SCHEMAS = {
    "result": pa.schema(
        [
            ("workflow", pa.string()),
            ("name", pa.string()),
            ("ts_us", pa.int64()),
            ("value", pa.float64()),
        ]
    ),
    "undefined": pa.schema(
        [("workflow", pa.string()), ("name", pa.string()), ("ts_us", pa.int64())]
    ),
    "rejected": pa.schema(
        [
            ("seq", pa.int64()),
            ("key", pa.string()),
            ("source_id", pa.int64()),
            ("event_time_us", pa.int64()),
            ("reason", pa.string()),
        ]
    ),
}
"""Columns of the result tables, behind the grouping columns."""


ARRIVAL = np.dtype(
    [("node", "<i4"), ("seq", "<i8"), ("source_id", "<i8"), ("ts", "<i8"), ("value", "<f8")]
)
TIMED_ARRIVAL = np.dtype([*ARRIVAL.descr, ("at", "<i8"), ("before", "<i8"), ("latest", "<i8")])
"""An arrival with the clock around it, if sensors may be idle."""
PIECE = np.dtype([(name, "<i8") for name in Pieces._fields])
TUPLE = np.dtype([("node", "<i4"), ("ts", "<i8"), ("value", "<f8")])
"""In messages, a tuple without a value says until when its stream is known."""
UNDEFINED = np.dtype([("node", "<i4"), ("ts", "<i8")])
REJECTED = np.dtype(
    [("node", "<i4"), ("seq", "<i8"), ("source_id", "<i8"), ("ts", "<i8"), ("reason", "<i8")]
)
_LOG = np.dtype([("node", "<i4"), ("source_id", "<i8"), ("ts", "<i8"), ("value", "<f8")])
_CLOCK = np.dtype(
    [
        ("node", "<i4"),
        ("latest_us", "<i8"),
        ("wm_us", "<i8"),
        ("inv", "<i8"),
        ("last_us", "<i8"),
    ]
)
_PLAIN = ("seq", "source_id", "ts", "value")
_CLUSTER = np.dtype([("node", "<i4"), ("ts", "<i8")])
_STAMP = np.dtype([("node", "<i4"), ("us", "<i8")])
_LATEST = np.dtype([("node", "<i4"), ("input", "<i4"), ("value", "<f8")])
_SLICE = np.dtype(
    [
        ("node", "<i4"),
        ("start", "<i8"),
        ("n", "<i8"),
        ("least", "<f8"),
        ("greatest", "<f8"),
        ("total", "<i8"),
        ("squares", "<i8"),
        ("unit", "<i4"),
    ]
)


class Kept(NamedTuple):
    """The state of a worker, in the columns of the state store."""

    logs: bytes
    until: bytes
    clocks: bytes
    clusters: bytes
    slices: bytes
    taken: bytes
    large: str
    """Sums of slices that do not fit into 64 bits, as JSON: hexadecimal, by stream."""
    latest: bytes
    known: bytes
    timeline: bytes
    """The arrival clock of all sensors."""
    seq: int


def encode_state(state: State) -> Kept:
    """Return a state as bytes."""
    latest = [
        (number, each, value) for number, row in state.latest.items() for each, value in row.items()
    ]
    large = {
        str(number): [_texts(part.integers) for part in (each.folded.total, each.folded.squares)]
        for number, each in state.slices.items()
        if object in (each.folded.total.integers.dtype, each.folded.squares.integers.dtype)
    }
    return Kept(
        encode_records(_LOG, {n: (log.source_id, *log.tuples) for n, log in state.logs.items()}),
        _stamps((n, log.until_us) for n, log in state.logs.items()),
        np.array([(n, *each[:-1]) for n, each in state.clocks.items()], _CLOCK).tobytes(),
        encode_records(_CLUSTER, {n: (each.cluster,) for n, each in state.clocks.items()}),
        encode_records(_SLICE, {n: _columns(each) for n, each in state.slices.items()}),
        _stamps((n, each.until_us) for n, each in state.slices.items()),
        json.dumps(large),
        np.array(latest, _LATEST).tobytes(),
        _stamps(state.known_us.items()),
        np.array(state.timeline, np.int64).tobytes(),
        state.seq,
    )


def decode_state(share: Share, data: Kept) -> State:
    """Return the state of a worker that :func:`encode_state` encoded."""
    logs = {n: Log(until_us=us) for n, us in _from_stamps(data.until)}
    for number, rows in _split(np.frombuffer(data.logs, _LOG)):
        tuples = Tuples(rows["ts"].copy(), rows["value"].copy())
        logs[number] = Log(tuples, rows["source_id"].copy(), logs[number].until_us)
    slices = {n: Slices(until_us=us) for n, us in _from_stamps(data.taken)}
    large = {int(number): texts for number, texts in json.loads(data.large).items()}
    for number, rows in _split(np.frombuffer(data.slices, _SLICE)):
        folded = _folded(rows, large.get(number), share.needs_squares(number))
        slices[number] = Slices(rows["start"].copy(), folded, slices[number].until_us)
    latest: dict[int, dict[int, float]] = {}
    for number, each, value in np.frombuffer(data.latest, _LATEST).tolist():
        latest.setdefault(number, {})[each] = value
    clocks = {n: Clock(*each) for n, *each in np.frombuffer(data.clocks, _CLOCK).tolist()}
    timeline = Timeline(*np.frombuffer(data.timeline, np.int64).tolist())
    for number, rows in _split(np.frombuffer(data.clusters, _CLUSTER)):
        clocks[number] = clocks[number]._replace(cluster=rows["ts"].copy())
    return State(logs, clocks, slices, latest, dict(_from_stamps(data.known)), timeline, data.seq)


def decode_arrivals(blocks: Iterable[bytes], is_timed: bool) -> dict[int, Arrivals]:
    """Return arrivals by sensor, each in their order; timed ones have the clock around them."""
    kind = TIMED_ARRIVAL if is_timed else ARRIVAL
    every = _records(blocks, kind)
    every = every[np.lexsort((every["seq"], every["node"]))]
    found = {}
    for number, rows in _split(every):
        seq, source_id, ts, values = (rows[name].copy() for name in _PLAIN)
        found[number] = Arrivals(seq, source_id, ts, values)
        if is_timed:
            moments = Moments(*(rows[name].copy() for name in Moments._fields))
            found[number] = found[number]._replace(moments=moments)
    return found


def decode_pieces(blocks: Iterable[bytes]) -> Pieces:
    """Return the clocks of pieces of the history, in their order."""
    every = _records(blocks, PIECE)
    every = every[np.argsort(every["first"])]
    return Pieces(*(every[name].copy() for name in Pieces._fields))


def encode_message(messages: Mapping[int, Message]) -> bytes:
    """Return results for another worker as bytes."""
    parts = {
        number: (np.append(each.tuples.ts, each.until_us), np.append(each.tuples.values, np.nan))
        for number, each in messages.items()
    }
    return encode_records(TUPLE, parts)


def decode_messages(blocks: Iterable[bytes]) -> dict[int, Message]:
    """Return the content of some :func:`encode_message` calls, combined for each stream."""
    every = _records(blocks, TUPLE)
    found = {}
    for number, rows in _split(every[np.argsort(every["node"], kind="stable")]):
        is_stamp = np.isnan(rows["value"])
        tuples = Tuples(rows["ts"][~is_stamp], rows["value"][~is_stamp])
        found[number] = Message(tuples, int(rows["ts"][is_stamp].max()))
    return found


def _records(blocks: Iterable[bytes], dtype: np.dtype[np.void]) -> Records:
    """Return the records of some blocks."""
    return np.concatenate([np.empty(0, dtype), *(np.frombuffer(b, dtype) for b in blocks)])


def encode_records(dtype: np.dtype[np.void], parts: Mapping[int, Sequence[Column]]) -> bytes:
    """Return records of nodes as bytes; the first field is the node, the others are its columns."""
    sizes = [len(columns[0]) for columns in parts.values()]
    out = np.empty(sum(sizes), dtype)
    if parts:
        first, *others = dtype.names or ()
        out[first] = np.repeat(np.fromiter(parts, np.int32, len(parts)), sizes)
        for name, columns in zip(others, zip(*parts.values(), strict=True), strict=True):
            out[name] = np.concatenate(columns)
    return out.tobytes()


def _split(rows: Records) -> Iterator[tuple[int, Records]]:
    """Yield the records of each node; they stand together."""
    if len(rows):
        bounds = [0, *(np.flatnonzero(np.diff(rows["node"])) + 1).tolist(), len(rows)]
        for low, high in pairwise(bounds):
            yield int(rows["node"][low]), rows[low:high]


def _stamps(pairs: Iterable[tuple[int, int]]) -> bytes:
    return np.array(list(pairs), _STAMP).tobytes()


def _from_stamps(data: bytes) -> Iterator[tuple[int, int]]:
    yield from np.frombuffer(data, _STAMP).tolist()


def _columns(slices: Slices) -> tuple[Column, ...]:
    folded, nothing = slices.folded, np.zeros(len(slices.starts), np.int64)
    total, squares = (
        nothing if part.integers.dtype == object or not len(part.integers) else part.integers
        for part in (folded.total, folded.squares)
    )
    unit = nothing + folded.total.unit
    return slices.starts, folded.n, folded.least, folded.greatest, total, squares, unit


def _folded(rows: Records, large: Sequence[Sequence[str]] | None, has_squares: bool) -> Folded:
    total, squares = (
        _integers(texts) if texts else rows[name].copy()
        for name, texts in zip(("total", "squares"), large or ((), ()), strict=True)
    )
    unit = int(rows["unit"][0])
    return Folded(
        rows["n"].copy(),
        Scaled(total, unit),
        Scaled(squares if has_squares else squares[:0], 2 * unit),
        rows["least"].copy(),
        rows["greatest"].copy(),
    )


def _texts(integers: Integers) -> list[str]:
    return [f"{each:x}" for each in integers] if integers.dtype == object else []


def _integers(texts: Sequence[str]) -> Integers:
    return np.array([int(text, 16) for text in texts], object)
