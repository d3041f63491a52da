"""Arrivals travel to the workers that own their sensors as blocks: one binary for thousands.

Rules of this file:

* A sensor that nobody asks for goes no further than this; one that several workers need goes to
  all of them.
"""

import numpy as np
import pyarrow as pa

from model.vocabulary.script import TIME_END_US
from spark_impl.script.encoding import ARRIVAL
from spark_impl.script.plan import Plan
from spark_impl.streams import InputProblem
from spark_impl.windows.blocks import coded

COLUMNS = {
    "seq": pa.int64(),
    "source_id": pa.int64(),
    "key": pa.string(),
    "event_time_us": pa.int64(),
    "value": pa.float64(),
}
"""Columns of a history that are read; there may be others."""


def blocks(plan: Plan, table: pa.Table) -> dict[int, bytes]:
    """By worker: the arrivals that it is sent, if there are any.

    Raises :class:`InputProblem` for an arrival that cannot be.
    """
    codes, keys = coded(table.column("key"))
    numbers = np.array([plan.numbers.get(key, -1) for key in keys], np.int32)
    node = numbers[codes]
    asked = np.flatnonzero(node >= 0)
    rows = np.empty(len(asked), ARRIVAL)
    rows["node"] = node[asked]
    chosen = table.take(pa.array(asked))
    for name, column in (
        ("seq", "seq"),
        ("source_id", "source_id"),
        ("ts", "event_time_us"),
        ("value", "value"),
    ):
        values = chosen.column(column)
        if values.null_count:
            msg = f"column {column!r} of the history is NULL for sensor {_key(chosen, values)!r}"
            raise InputProblem(msg)
        rows[name] = values.to_numpy()
    _require_times(rows, chosen)
    found = {}
    for worker, own in enumerate(plan.placement.hosts):
        hosted = np.zeros(len(plan.graph.nodes), np.bool_)
        hosted[list(own)] = True
        here = rows[hosted[rows["node"]]]
        if len(here):
            found[worker] = here.tobytes()
    return found


def _key(table: pa.Table, values: pa.ChunkedArray) -> str:
    """The sensor of the first row without a value."""
    row = int(np.argmax(values.is_null().to_numpy()))
    return str(table.column("key")[row].as_py())


def _require_times(rows: np.ndarray, table: pa.Table) -> None:
    bad = (rows["ts"] < 0) | (rows["ts"] >= TIME_END_US)
    if bad.any():
        row = int(np.argmax(bad))
        sensor, ts = table.column("key")[row].as_py(), int(rows["ts"][row])
        msg = f"event_time_us of sensor {sensor!r} is {ts}; it must be from 0 to less than 2^61"
        raise InputProblem(msg)
