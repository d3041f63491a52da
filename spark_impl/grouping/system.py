"""The spreading of a stream as a System: workloads in, traces out."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from model.vocabulary import Event, GroupingConfig, Trace, Workload
from model.vocabulary.grouping import REASON_NOT_FINITE, Answer, Heavy, Partial, Rejected, Route
from model.vocabulary.trace import Step
from spark_impl.grouping.candidates import candidates
from spark_impl.grouping.instances import (
    PARTIAL,
    aggregate,
    merge_answers,
    merge_partials,
    partial_aggregates,
)
from spark_impl.grouping.keys import Table
from spark_impl.grouping.query import Spreader
from spark_impl.grouping.router import SenderState, begin_window, route
from spark_impl.grouping.tasks import INSTANCE, Columns, Part, route_pack
from spark_impl.grouping.windows import advance, start
from spark_impl.runtime.arrays import Ints, Values
from spark_impl.runtime.failures import wait_for
from spark_impl.runtime.histories import history_schema
from spark_impl.runtime.queries import read_files, session_of_query, start_batches
from spark_impl.runtime.sources import PATH, paths
from spark_impl.runtime.states import from_bytes, to_bytes
from spark_impl.runtime.storage import Location, locate
from spark_impl.runtime.systems import CASE, OnKill, arrivals_table, run_pack, system_maker

PRODUCER = "spark"
_COLUMNS = Columns("key", "seq")
_POSITION = "position"
"""Column with the position of a row's workload in its pack."""
_HISTORY = history_schema(pa.field(CASE, pa.string()))


class _Observed(NamedTuple):
    """Observations of a micro-batch of a pack."""

    parts: tuple[Part, ...]
    """Part of every stream of the pack, by position."""
    routes: pa.Table
    aggregates: pa.Table
    """Partial aggregates, with the position of a stream in the column ``window``."""


class _PackedRouters:
    """The routers of many workloads behind one streaming query, opened anew for every start."""

    def __init__(
        self,
        spark: SparkSession,
        configs: Mapping[str, GroupingConfig],
        history: Path,
        store: Path,
        observed: dict[int, _Observed],
    ) -> None:
        self._history, self._root, self._observed = locate(history), locate(store), observed
        self._positions = {name: position for position, name in enumerate(configs)}
        self._spreaders = [
            Spreader(config, _COLUMNS, self._root / f"stream-{position}")
            for position, config in enumerate(configs.values())
        ]
        self._session = session_of_query(spark, self._checkpoint, None)

    @property
    def _checkpoint(self) -> Location:
        return self._root / "_checkpoint"

    def run_available(self) -> None:
        """Spread everything that is in the history now."""
        files = paths(self._session, self._history, self._root / "requests")
        wait_for(start_batches(files, self._checkpoint, self._spread), self._root)

    def flush(self, wanted: Callable[[Values], bool] | None = None) -> None:
        """Spread everything; the end of a stream ends no window."""
        self.run_available()

    def _spread(self, files: DataFrame, number: int) -> None:
        """Spread a micro-batch of all streams; keep what it shows."""
        found = [locate(row[PATH]) for row in files.collect()]
        rows = read_files(files.sparkSession, found, _HISTORY)
        positions = chain.from_iterable(self._positions.items())
        position = F.create_map(*map(F.lit, positions))[F.col(CASE)]
        rows = rows.select("seq", "key", "value", position.alias(_POSITION))
        context = files.sparkSession.sparkContext
        parts = [each.begin(number, context) for each in self._spreaders]
        routed = route_pack(rows, parts, "seq", _POSITION)
        # Instance i of every stream is partition i: partial aggregates keep the streams apart.
        most = max(part.config.instances for part in parts)
        spread = routed.repartitionById(most, INSTANCE).persist()
        routes = spread.select("seq", _POSITION, INSTANCE).toArrow()
        top = max(part.config.top for part in parts)
        aggregates = partial_aggregates(spread, "key", "value", window=_POSITION, top=top).toArrow()
        spread.unpersist()
        for spreader, part in zip(self._spreaders, parts, strict=True):
            spreader.finish(part, routed)
        self._observed[number] = _Observed(tuple(parts), routes, aggregates)


def run_workloads(
    spark: SparkSession,
    cases: Mapping[str, Workload],
    workdir: Path,
    on_kill: OnKill = lambda _: None,
) -> dict[str, Trace]:
    """Run many workloads in one streaming query, told apart by a column; configurations may differ.

    ``workdir`` is a folder that is empty or does not exist. Faults strike the query as a whole.
    """
    configs = {name: GroupingConfig.from_json(case.config) for name, case in cases.items()}
    observed: dict[int, _Observed] = {}

    def open_query(_: None, history: Path, store: Path) -> _PackedRouters:
        return _PackedRouters(spark, configs, history, store, observed)

    run_pack(cases, workdir, lambda _: None, open_query, on_kill)
    return {
        name: Trace(PRODUCER, _steps(cases[name], config, position, observed))
        for position, (name, config) in enumerate(configs.items())
    }


make_system = system_maker("grouping", run_workloads)


def _steps(
    workload: Workload, config: GroupingConfig, position: int, observed: Mapping[int, _Observed]
) -> Iterator[Step]:
    """Yield the steps of one workload of a pack."""
    aggregates = []
    for number, events in enumerate(workload.batches()):
        parts, routes, found = observed[number]
        standing = parts[position].standing
        if standing.tuples == 0:
            yield from _heavy(config, standing.table)
        yield from _routes(config, routes.filter(pc.equal(routes.column(_POSITION), position)))
        yield from rejected(events)
        own = found.filter(pc.equal(found.column("window"), position))
        window = pa.repeat(standing.table.window, len(own)).cast(pa.int64())
        aggregates.append(own.set_column(0, "window", window))
    yield from _aggregates(config.top, aggregates)


class SendersInProcess:
    """All senders of a stream without Spark: micro-batches in, instances of their tuples out."""

    def __init__(self, config: GroupingConfig) -> None:
        self._config = config
        self.table = start(config).table
        self.states = [begin_window(config, SenderState())] * config.senders
        """State of each sender after its last micro-batch."""

    def begin_window(self, table: Table) -> list[Heavy]:
        """Begin a window that uses this table; return its heavy keys."""
        self.table = table
        self.states = [begin_window(self._config, state) for state in self.states]
        return [*_heavy(self._config, table)]

    def route(self, sender: int, keys: pa.StringArray) -> Ints:
        """Route a sender's part of a micro-batch; return the instance of each tuple."""
        before = self.states[sender]
        places, self.states[sender] = route(self._config, self.table, before, keys)
        return places

    def saved(self) -> object:
        """Return the content of the store between two micro-batches."""
        standing = start(self._config)._replace(table=self.table)
        return to_bytes((standing, self.states))

    def restore(self, saved: object) -> None:
        """Restore what :meth:`saved` returned."""
        assert isinstance(saved, bytes)
        standing, self.states = from_bytes(saved)
        self.table = standing.table


class InstancesInProcess:
    """All instances of a stream without Spark: rows in, partial aggregates and answers out."""

    def __init__(self, top: int) -> None:
        self._top = top
        self._parts = [PARTIAL.empty_table()]

    def take(self, rows: pa.Table) -> None:
        """Aggregate rows with ``window``, ``instance``, ``key`` and ``value``."""
        finite = rows.filter(pc.is_finite(rows.column("value")))
        self._parts.append(aggregate(finite, self._top))

    def results(self) -> Iterator[Step]:
        """Yield the partial aggregates of all rows, and the answers."""
        return _aggregates(self._top, self._parts)


def run_in_process(workload: Workload) -> Trace:
    """Run a workload without Spark: all senders and instances in this process."""
    return Trace(PRODUCER, _in_process(workload))


def _in_process(workload: Workload) -> Iterator[Step]:
    config = GroupingConfig.from_json(workload.config)
    standing = start(config)
    senders, instances = SendersInProcess(config), InstancesInProcess(config.top)
    for events in workload.batches():
        if standing.tuples == 0:
            yield from senders.begin_window(standing.table)
        rows = arrivals_table(events)
        for sender in range(config.senders):
            own = rows.filter(pa.array([event.seq % config.senders == sender for event in events]))
            places = senders.route(sender, own.column("key").combine_chunks())
            own = own.append_column("instance", pa.array(places))
            yield from _routes(config, own)
            window = pa.repeat(standing.table.window, own.num_rows).cast(pa.int64())
            instances.take(own.append_column("window", window))
        yield from rejected(events)
        standing = advance(config, standing, senders.states, len(events))
    yield from instances.results()


def _heavy(config: GroupingConfig, table: Table) -> Iterator[Heavy]:
    """Yield the heavy keys of a window."""
    places = candidates(config, table, list(table.heavy))
    for row, (name, key) in enumerate(table.heavy.items()):
        where = tuple(sorted(places.of(row)))
        yield Heavy(table.window, name, key.counted, key.error, table.tuples, where)


def _routes(config: GroupingConfig, rows: pa.Table) -> Iterator[Route]:
    for seq, instance in zip(*rows.select(["seq", "instance"]).to_pydict().values(), strict=True):
        yield Route(seq, seq % config.senders, instance)


def rejected(events: Sequence[Event]) -> Iterator[Rejected]:
    """Yield the arrivals that no aggregate counts."""
    for event in events:
        if not math.isfinite(event.value):
            yield Rejected(event.seq, REASON_NOT_FINITE)


def _aggregates(top: int, parts: Sequence[pa.Table]) -> Iterator[Step]:
    """Yield the partial aggregates of all micro-batches of a window, and the answers."""
    table = pa.concat_tables([PARTIAL.empty_table(), *parts])
    for row in merge_partials(table, top).drop_columns(["values", "top"]).to_pylist():
        yield Partial(**row)
    for row in merge_answers(table, top).to_pylist():
        yield Answer(**{**row, "top": tuple(row["top"])})
