"""A worker's inputs and outputs as arrays of records, on their way as bytes.

Nothing here computes. Decoding returns what was encoded.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from spark_impl.runtime.arrays import Column, Records
from spark_impl.runtime.histories import REFUSED
from spark_impl.script.admission import Arrivals
from spark_impl.script.arithmetic import Tuples
from spark_impl.script.kernel import Message
from spark_impl.script.silence import Moments, Pieces

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
    "rejected": REFUSED,
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
_PLAIN = ("seq", "source_id", "ts", "value")


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
    return records_of(TUPLE, parts).tobytes()


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


def records_of(dtype: np.dtype[np.void], parts: Mapping[int, Sequence[Column]]) -> Records:
    """Return the records of nodes: the first field is the node, the others are its columns."""
    sizes = [len(columns[0]) for columns in parts.values()]
    out = np.empty(sum(sizes), dtype)
    if parts:
        first, *others = dtype.names or ()
        out[first] = np.repeat(np.fromiter(parts, np.int32, len(parts)), sizes)
        for name, columns in zip(others, zip(*parts.values(), strict=True), strict=True):
            out[name] = np.concatenate(columns)
    return out


def _split(rows: Records) -> Iterator[tuple[int, Records]]:
    """Yield the records of each node; they stand together."""
    if len(rows):
        bounds = [0, *(np.flatnonzero(np.diff(rows["node"])) + 1).tolist(), len(rows)]
        for low, high in pairwise(bounds):
            yield int(rows["node"][low]), rows[low:high]
