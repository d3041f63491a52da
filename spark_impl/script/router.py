"""Routing of arrivals to the workers that need their sensors.

Arrivals travel in blocks of thousands. A sensor that no computation reads is dropped here; a sensor
that several workers need goes to all of them.
"""

import math
from collections.abc import Collection

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from model.vocabulary.script.config import TIME_END_US
from model.vocabulary.script.plan import ScriptPlan
from spark_impl.runtime.arrays import Bools, Column, Ints, Records
from spark_impl.runtime.histories import COLUMNS
from spark_impl.runtime.storage import InputProblem
from spark_impl.script.encoding import ARRIVAL, PIECE, TIMED_ARRIVAL
from spark_impl.script.silence import LIMIT_US, moments_within
from spark_impl.windows.arrival_files import number_values


class Router:
    """Sends each tuple to the workers that need it.

    If sensors may be idle, each arrival carries the clock of all sensors at its arrival.
    """

    def __init__(self, plan: ScriptPlan) -> None:
        self._is_timed = plan.is_timed
        self.workers = plan.workers
        nodes = len(plan.graph.nodes)
        self._numbers = plan.numbers
        self._hosted = np.zeros((plan.workers, nodes), np.bool_)
        for worker, own in enumerate(plan.placement.hosts):
            self._hosted[worker, sorted(own)] = True

    @property
    def columns(self) -> Collection[str]:
        """The columns of a history that are read."""
        return [name for name in COLUMNS if self._is_timed or name != "arrival_us"]

    def asked(self, table: pa.Table) -> Records:
        """Return the arrivals that some worker needs; a missing value is NaN.

        Raise :class:`InputProblem` for an arrival whose number, identity or time is missing, or
        with a time out of range.
        """
        if self._is_timed:
            table = _in_order(table)
        codes, keys = number_values(table.column("key"))
        numbers = np.array([self._numbers.get(key, -1) for key in keys], np.int32)
        chosen = np.flatnonzero(numbers[codes] >= 0)
        asked = table.take(pa.array(chosen))
        rows = np.empty(len(chosen), TIMED_ARRIVAL if self._is_timed else ARRIVAL)
        rows["node"] = numbers[codes][chosen]
        for name, column in _RECORDED.items():
            rows[name] = _values(asked, column)
        _require_times(rows["ts"], asked)
        if self._is_timed:
            for name, values in moments_within(*_times(table))._asdict().items():
                rows[name] = values[chosen]
        return rows

    def blocks(self, asked: Records) -> dict[int, bytes]:
        """Return the arrivals of :meth:`asked` for each worker, without workers that get none."""
        found = {worker: asked[hosted[asked["node"]]] for worker, hosted in enumerate(self._hosted)}
        return {worker: here.tobytes() for worker, here in found.items() if len(here)}

    def clock(self, table: pa.Table) -> bytes | None:
        """Return the clock of the arrivals of all sensors, for every worker.

        Return None if no arrival counts, or if sensors are never idle. Raise :class:`InputProblem`
        for an arrival with a time that is missing or out of range.
        """
        if not self._is_timed:
            return None
        table = _in_order(table)
        arrival_us, ts, counted = _times(table)
        if not counted.any():
            return None
        seq = _values(table, "seq")
        arrived = arrival_us[counted]
        piece = (seq[0], seq[-1], arrived.max(), ts[counted].max(), arrived[0])
        return np.array([piece], PIECE).tobytes()


def _in_order(table: pa.Table) -> pa.Table:
    """Return arrivals in the order of their numbers."""
    seq = _values(table, "seq")
    return table if (np.diff(seq) > 0).all() else table.sort_by("seq")


def _times(table: pa.Table) -> tuple[Ints, Ints, Bools]:
    """Return arrival times and event times, and which arrivals move the clock."""
    counted = np.isfinite(_values(table, "value"))
    arrival_us, ts = _values(table, "arrival_us"), _values(table, "event_time_us")
    _require_times(ts, table)
    beyond = np.abs(arrival_us) >= LIMIT_US
    if beyond.any():
        row = int(np.argmax(beyond))
        msg = (
            f"arrival_us of sensor {table.column('key')[row].as_py()!r} is {arrival_us[row]};"
            " it must lie between -2^61 and 2^61"
        )
        raise InputProblem(msg)
    return arrival_us, ts, counted


def _values(table: pa.Table, column: str) -> Column:
    """Return the values of a column; raise :class:`InputProblem` for a NULL that is no value."""
    values = table.column(column)
    if values.null_count and column == "value":
        values = pc.fill_null(values, math.nan)
    elif values.null_count:
        row = int(np.argmax(values.is_null().to_numpy()))
        msg = f"{column} of sensor {table.column('key')[row].as_py()!r} is NULL in some row"
        raise InputProblem(msg)
    return np.asarray(values.to_numpy())


def _require_times(ts: Ints, table: pa.Table) -> None:
    bad = (ts < 0) | (ts >= TIME_END_US)
    if bad.any():
        row = int(np.argmax(bad))
        sensor = table.column("key")[row].as_py()
        msg = f"event_time_us of sensor {sensor!r} is {ts[row]}; it must be from 0 to below 2^61"
        raise InputProblem(msg)


_RECORDED = {"seq": "seq", "source_id": "source_id", "ts": "event_time_us", "value": "value"}
"""Fields of a record, and the columns that they come from."""
