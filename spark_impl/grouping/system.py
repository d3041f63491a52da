"""The router as a System: workloads in, traces out."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from model.vocabulary import Event, GroupingConfig, Trace, Workload
from model.vocabulary.grouping import REASON_NOT_FINITE, Answer, Heavy, Partial, Rejected, Route
from model.vocabulary.trace import Step
from spark_impl.grouping.candidates import candidates
from spark_impl.grouping.partials import answers, partials
from spark_impl.grouping.router import Instances
from spark_impl.grouping.table import Table
from spark_impl.grouping.windows import advanced, route_all, start

PRODUCER = "spark"


def run_in_process(workload: Workload) -> Trace:
    """Run a workload without Spark: all senders and instances in this process."""
    return Trace(PRODUCER, _steps(workload))


def _steps(workload: Workload) -> Iterator[Step]:
    config = GroupingConfig.from_json(workload.config)
    progress = start(config)
    tables = []
    for events in workload.batches():
        if progress.tuples == 0:
            yield from heavy_steps(config, progress.table)
        own = [
            [event for event in events if event.seq % config.senders == sender]
            for sender in range(config.senders)
        ]
        keys = [pa.array([event.key for event in each], pa.string()) for each in own]
        found, states = route_all(config, progress, keys)
        for sender, (each, places) in enumerate(zip(own, found, strict=True)):
            for event, place in zip(each, places.tolist(), strict=True):
                yield Route(event.seq, sender, place)
            yield from _rejected(each)
            tables.append(_finite(progress.table.window, each, places))
        progress = advanced(config, progress, states, len(events))
    yield from _aggregates(tables, config.top)


def heavy_steps(config: GroupingConfig, table: Table) -> Iterator[Heavy]:
    """What a window knows of its heavy keys."""
    names = list(table.heavy)
    for name, places in zip(names, candidates(config, table, names), strict=True):
        key = table.heavy[name]
        where = tuple(sorted(places))
        yield Heavy(table.window, name, key.counted, key.error, table.tuples, where)


def _rejected(events: Sequence[Event]) -> Iterator[Rejected]:
    for event in events:
        if not math.isfinite(event.value):
            yield Rejected(event.seq, REASON_NOT_FINITE)


def _finite(window: int, events: Sequence[Event], places: Instances) -> pa.Table:
    columns = {
        "window": pa.array(np.full(len(events), window)),
        "instance": pa.array(places),
        "key": pa.array([event.key for event in events], pa.string()),
        "value": pa.array([event.value for event in events], pa.float64()),
    }
    table = pa.table(columns)
    return table.filter(pa.array([math.isfinite(event.value) for event in events], pa.bool_()))


def _aggregates(tables: Sequence[pa.Table], top: int) -> Iterator[Step]:
    if not tables:
        return
    parts = partials(pa.concat_tables(tables), top)
    for row in parts.drop_columns(["values", "top"]).to_pylist():
        yield Partial(**row)
    for row in answers(parts, top).to_pylist():
        yield Answer(**{**row, "top": tuple(row["top"])})
