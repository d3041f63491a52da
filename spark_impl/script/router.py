"""Routing of arrivals to the workers that need their sensors.

Arrivals travel in blocks of thousands. A sensor that no computation reads is dropped here; a sensor
that several workers need goes to all of them.
"""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from model.vocabulary.script.config import MILLISECOND_US, TIME_END_US
from spark_impl.runtime.arrays import Ints
from spark_impl.runtime.storage import InputProblem
from spark_impl.script.encoding import ARRIVAL
from spark_impl.script.graph import WINDOW, Graph, readers
from spark_impl.script.plan import Plan
from spark_impl.windows.arrival_files import number_values


def needed_since_us(graph: Graph, since_us: int) -> Mapping[int, int]:
    """Return the time from which each sensor must be read (us), by sensor.

    No earlier tuple changes any result stamped from ``since_us`` on. A window needs the tuples
    within its length. An operation needs the latest values of its streams, which may be as old as
    the stream, so that all tuples are read for it.
    """
    reading = readers(graph)
    needed: dict[int, int] = {}
    for number in reversed(range(len(graph.nodes))):
        own = [since_us]
        for reader in reading.get(number, ()):
            node = graph.nodes[reader]
            reach_us = node.length_ms * MILLISECOND_US
            own.append(needed[reader] - reach_us if node.kind == WINDOW else 0)
        needed[number] = max(min(own), 0)
    return {number: needed[number] for number in graph.asked_for}


COLUMNS = {
    "seq": pa.int64(),
    "source_id": pa.int64(),
    "key": pa.string(),
    "event_time_us": pa.int64(),
    "value": pa.float64(),
}
"""Columns of a history that are read; there may be others."""


class Router:
    """Sends each tuple to the workers that need it."""

    def __init__(self, plan: Plan, since_us: int = 0) -> None:
        nodes = len(plan.graph.nodes)
        self._numbers = plan.numbers
        self._needed_us = np.zeros(nodes, np.int64)
        for number, needed_us in needed_since_us(plan.graph, since_us).items():
            self._needed_us[number] = needed_us
        self._hosted = np.zeros((plan.workers, nodes), np.bool_)
        for worker, own in enumerate(plan.placement.hosts):
            self._hosted[worker, sorted(own)] = True

    def blocks(self, table: pa.Table) -> dict[int, bytes]:
        """Return the arrivals for each worker that has any.

        Raise :class:`InputProblem` for an arrival with a missing value or a time out of range.
        """
        codes, keys = number_values(table.column("key"))
        numbers = np.array([self._numbers.get(key, -1) for key in keys], np.int32)
        chosen = np.flatnonzero(numbers[codes] >= 0)
        asked = table.take(pa.array(chosen))
        rows = np.empty(len(chosen), ARRIVAL)
        rows["node"] = numbers[codes][chosen]
        for name, column in _RECORDED.items():
            values = asked.column(column)
            if values.null_count:
                row = int(np.argmax(values.is_null().to_numpy()))
                msg = f"{column} of sensor {asked.column('key')[row].as_py()!r} is NULL in some row"
                raise InputProblem(msg)
            rows[name] = values.to_numpy()
        _require_times(rows["ts"], asked)
        rows = rows[rows["ts"] >= self._needed_us[rows["node"]]]
        found = {worker: rows[hosted[rows["node"]]] for worker, hosted in enumerate(self._hosted)}
        return {worker: here.tobytes() for worker, here in found.items() if len(here)}


def _require_times(ts: Ints, table: pa.Table) -> None:
    bad = (ts < 0) | (ts >= TIME_END_US)
    if bad.any():
        row = int(np.argmax(bad))
        sensor = table.column("key")[row].as_py()
        msg = f"event_time_us of sensor {sensor!r} is {ts[row]}; it must be from 0 to below 2^61"
        raise InputProblem(msg)


_RECORDED = {"seq": "seq", "source_id": "source_id", "ts": "event_time_us", "value": "value"}
"""Fields of a record, and the columns that they come from."""
