"""Queries as Systems: workloads in, traces out.

A *pack* is many workloads of one configuration in one query, told apart by a grouping column.

Rules of this file:

* File j of a pack's history holds batch j of every workload that has one.
* Faults strike the query of a pack as a whole.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from itertools import chain
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.streaming.tws_tester import TwsTester

from model.vocabulary import Event, System, Trace, Workload
from model.vocabulary.settings import JsonObject
from spark_impl.runtime.arrays import Values
from spark_impl.runtime.histories import append, history_schema
from spark_impl.runtime.operators import STATE_NAME
from spark_impl.runtime.session import DEFAULT_MASTER, session
from spark_impl.runtime.stores import CHECKPOINT

CASE = "case_id"
"""Grouping column that tells the workloads of a pack apart."""
Runner: TypeAlias = Callable[[SparkSession, Mapping[str, Workload], Path], dict[str, Trace]]
"""Runs workloads in a session and a new folder; returns their traces by the same names."""
OnKill: TypeAlias = Callable[[int], object]
"""Called with the number of each micro-batch in which a query is killed."""
_Config = TypeVar("_Config")


class PackQuery(Protocol):
    """A query with a store, opened anew for every start."""

    def run_available(self) -> None:
        """Process everything that is in the history now."""

    def flush(self, wanted: Callable[[Values], bool] | None = None) -> None:
        """Process everything, then end the streams of the wanted grouping values."""


def system_maker(room: str, runner: Runner) -> Callable[..., System]:
    """Return a function ``make_system(master="local[2]")`` for a room.

    The System uses the running session, or else a session of its own for each call.
    """

    def make_system(master: str = DEFAULT_MASTER) -> System:
        def run(workload: Workload, /) -> Trace:
            running = SparkSession.getActiveSession()
            with (
                TemporaryDirectory(f"-{room}", "straggler-", ignore_cleanup_errors=True) as folder,
                session(master) if running is None else nullcontext(running) as spark,
            ):
                return runner(spark, {workload.name: workload}, Path(folder))[workload.name]

        return run

    return make_system


def run_pack(
    cases: Mapping[str, Workload],
    workdir: Path,
    read_config: Callable[[JsonObject], _Config],
    open_query: Callable[[_Config, Path, Path], PackQuery],
    on_kill: OnKill,
) -> tuple[_Config, Path | None]:
    """Run a pack with all faults; return its configuration and its store.

    ``open_query`` takes the configuration, the history and the store, which lie in ``workdir``. The
    store is None if nothing arrives. Raises ``ValueError`` if the configurations differ.
    """
    config = _common_config(read_config, cases)
    history, store = workdir / "history", workdir / "store"
    batches = {name: list(workload.batches()) for name, workload in cases.items()}
    count = max(map(len, batches.values()))
    if not count:
        return config, None
    done = 0
    faults = sorted({fault for workload in cases.values() for fault in workload.faults})
    for fault in [*(each for each in faults if each.at < count), None]:
        upto = count if fault is None else fault.at + 1
        for j in range(done, upto):
            append(history, _file(batches, j))
        done = max(done, upto)
        query = open_query(config, history, store)
        if fault is None and any(workload.flush for workload in cases.values()):
            query.flush(lambda group: cases[group[0]].flush)  # after everything in the history
        else:
            query.run_available()
        if fault is not None and fault.kind == "kill":
            lose_commit(store / CHECKPOINT)
            on_kill(fault.at)
    return config, store


def lose_commit(checkpoint: Path) -> None:
    """Make a checkpoint look as after a crash just before Spark committed the last micro-batch."""
    commits = checkpoint / "commits"
    last = max(int(path.name) for path in commits.glob("[0-9]*"))
    for path in (commits / str(last), commits / f".{last}.crc"):
        path.unlink(missing_ok=True)


def _common_config(read: Callable[[JsonObject], _Config], cases: Mapping[str, Workload]) -> _Config:
    configs = {name: read(case.config) for name, case in cases.items()}
    first = next(iter(configs))
    for name, config in configs.items():
        if config != configs[first]:
            msg = f"the cases {first!r} and {name!r} of a pack have different configurations"
            raise ValueError(msg)
    return configs[first]


def _file(batches: Mapping[str, list[tuple[Event, ...]]], j: int) -> pa.Table:
    """Return batch j of every case that has one, last arrivals first: a file has any order."""
    present = {name: own[j] for name, own in batches.items() if j < len(own)}
    table = arrivals_table(chain.from_iterable(map(reversed, present.values())))
    owner = np.repeat(np.arange(len(present)), [len(events) for events in present.values()])
    column = pa.array([*present], pa.string()).take(pa.array(owner))
    schema = history_schema(pa.field(CASE, pa.string()))
    return table.append_column(CASE, column).select(schema.names)


def arrivals_table(events: Iterable[Event]) -> pa.Table:
    """Return arrivals as the table of one file of a history."""
    schema = history_schema()
    rows = map(attrgetter(*schema.names), events)
    columns = [*zip(*rows, strict=True)] or [()] * len(schema)
    arrays = [pa.array(each, field.type) for each, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


class OperatorInProcess:
    """A stateful operator without Spark, with a single key.

    Spark's test driver holds its state, as the bytes that the state store would hold.
    """

    def __init__(self, processor: StatefulProcessor, key: int) -> None:
        self._key = key
        self._tester = TwsTester(processor)

    def saved(self) -> object:
        """Return the operator's state."""
        return self._tester.peekValueState(STATE_NAME, self._key)

    def restore(self, saved: object) -> None:
        """Restore a saved state; ``None`` is the state of a new operator."""
        if saved is None:
            self._tester.deleteState(STATE_NAME, self._key)
        else:
            assert isinstance(saved, tuple)
            self._tester.updateValueState(STATE_NAME, self._key, saved)
