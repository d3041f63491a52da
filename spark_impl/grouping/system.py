"""The spreading of a stream as a System: workloads in, traces out."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from model.vocabulary import Event, GroupingConfig, Trace, Workload
from model.vocabulary.grouping import REASON_NOT_FINITE, Answer, Heavy, Partial, Rejected, Route
from model.vocabulary.trace import Step
from spark_impl.grouping.candidates import candidates
from spark_impl.grouping.instances import (
    PARTIAL,
    MicroBatch,
    aggregate,
    merge_answers,
    merge_partials,
    partial_aggregates,
)
from spark_impl.grouping.keys import Table
from spark_impl.grouping.query import Spreader
from spark_impl.grouping.router import SenderState, begin_window, route
from spark_impl.grouping.store import decode_standing, decode_state, encode_standing, encode_state
from spark_impl.grouping.tasks import Columns
from spark_impl.grouping.windows import advance, start
from spark_impl.runtime.arrays import Ints
from spark_impl.runtime.storage import Location, locate
from spark_impl.runtime.systems import OnKill, system_maker

PRODUCER = "spark"
_ROWS = pa.schema([("seq", pa.int64()), ("key", pa.string()), ("value", pa.float64())])
_COLUMNS = Columns("key", "seq")


def run_workloads(
    spark: SparkSession,
    cases: Mapping[str, Workload],
    workdir: Path,
    on_kill: OnKill = lambda _: None,
) -> dict[str, Trace]:
    """Run workloads one after the other, each with a store of its own below ``workdir``.

    After a fault ``restart`` the store is opened anew. After ``kill`` the micro-batch is also
    spread and worked on once more.
    """
    return {
        name: Trace(PRODUCER, _run(spark, workload, locate(workdir / str(number)), on_kill))
        for number, (name, workload) in enumerate(cases.items())
    }


make_system = system_maker("grouping", run_workloads)


def _run(
    spark: SparkSession, workload: Workload, store: Location, on_kill: OnKill
) -> Iterator[Step]:
    config = GroupingConfig.from_json(workload.config)
    faults = {(fault.kind, fault.at) for fault in workload.faults}
    spreader = Spreader(config, _COLUMNS, store)
    parts = []
    for number, events in enumerate(workload.batches()):
        standing = spreader.standing()
        if standing.tuples == 0:
            yield from _heavy(config, standing.table)
        observed: list[pa.Table] = []
        work = partial(_observe, config=config, observed=observed)
        rows = spark.createDataFrame(_table(events))
        spreader.advance(rows, work, number)
        if {("kill", number), ("restart", number)} & faults:
            spreader = Spreader(config, _COLUMNS, store)
        if ("kill", number) in faults:
            spreader.advance(rows, work, number)
            on_kill(number)
        routes, own = observed[-2:]
        parts.append(own)
        yield from _routes(config, routes)
        yield from rejected(events)
    yield from _aggregates(config.top, parts)


def _observe(
    rows: DataFrame, batch: MicroBatch, *, config: GroupingConfig, observed: list[pa.Table]
) -> None:
    """Append the instance of every row, and the partial aggregates of the instances."""
    spread = rows.persist()
    observed.append(spread.select("seq", "instance").toArrow())
    found = partial_aggregates(spread, "key", "value", window=batch.window, top=config.top)
    observed.append(found.toArrow())
    spread.unpersist()


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
        places, self.states[sender] = route(self._config, self.table, sender, before, keys)
        return places

    def saved(self) -> object:
        """Return the content of the store between two micro-batches."""
        standing = start(self._config)._replace(table=self.table)
        return encode_standing(standing), tuple(map(encode_state, self.states))

    def restore(self, saved: object) -> None:
        """Restore what :meth:`saved` returned."""
        assert isinstance(saved, tuple)
        standing, states = saved
        self.table = decode_standing(standing).table
        self.states = [decode_state(each) for each in states]


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
        rows = _table(events)
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


def _table(events: Sequence[Event]) -> pa.Table:
    columns = zip(*((event.seq, event.key, event.value) for event in events), strict=True)
    return pa.table([pa.array(column) for column in columns], schema=_ROWS)


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
