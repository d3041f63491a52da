"""What instances do with their tuples of a micro-batch: with a state that lasts, and timed.

Rules of this file:

* What an instance holds follows from what it held before and its tuples: whoever does the work
  again, after a crash or as a second attempt, begins with the state before the micro-batch.
* An instance is busy from the call of its work to the return, waiting for tuples not included.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from spark_impl.grouping.store import GroupingStore, Worked
from spark_impl.grouping.tasks import INSTANCE, partition_id
from spark_impl.runtime.arrays import Bools, Floats, Ints
from spark_impl.runtime.histories import InputProblem


class MicroBatch(NamedTuple):
    """Which rows these are."""

    number: int
    """Of the micro-batch, without those that had no rows: 0, 1, 2, ..."""
    window: int
    store: GroupingStore


Step: TypeAlias = Callable[[pa.Table, pa.Table | None], tuple[pa.Table, pa.Table | None]]
"""Work of one instance: its rows of a micro-batch and its state, to what is found and the state.

It is done once a micro-batch, without rows too; before the first one there is no state.
"""


def at_instances(rows: DataFrame, batch: MicroBatch, step: Step, found: pa.Schema) -> DataFrame:
    """Do ``step`` at every instance, once a micro-batch; give the columns ``found``.

    ``rows`` are those that the work of :meth:`spark_impl.grouping.Grouping.stream` is given. State
    and times go to the store of the stream when the result is read: the next micro-batch begins
    with the state, the next window is balanced by the times. ``step`` has to be deterministic, but
    for the time that it takes.
    """
    given = to_arrow_schema(rows.schema, timezone="UTC")
    task = partial(_run, batch=batch, step=step, given=given, expected=found)
    return rows.mapInArrow(task, from_arrow_schema(found))


def _run(
    batches: Iterable[pa.RecordBatch],
    batch: MicroBatch,
    step: Step,
    given: pa.Schema,
    expected: pa.Schema,
) -> Iterator[pa.RecordBatch]:
    held = list(batches)
    # The session's time zone and kinds of strings are those of the rows, not of the schema.
    table = pa.Table.from_batches(held).cast(given) if held else given.empty_table()
    instance = partition_id()
    state = batch.store.load_worked(batch.number - 1, instance).state
    begun_ns = time.perf_counter_ns()
    found, state = step(table, state)
    busy_us = (time.perf_counter_ns() - begun_ns) // 1000 if len(table) else 0
    if found.schema.names != expected.names:
        msg = f"the work at instance {instance} gives {found.schema.names}, not {expected.names}"
        raise InputProblem(msg)
    batch.store.write_worked(batch.number, instance, Worked(len(table), busy_us, state))
    yield from found.cast(expected).to_batches()


def carry_over(store: GroupingStore, batch: int, instances: int) -> None:
    """Instances that did nothing in a micro-batch keep their state.

    Raises :class:`InputProblem` when some worked and others did not, which would lose their tuples.
    """
    worked = sum(store.instance_path(batch, each).exists() for each in range(instances))
    if worked not in (0, instances):
        msg = (
            f"what the instances found was read of {worked} of {instances} alone;"
            " the work of a micro-batch has to read all of it"
        )
        raise InputProblem(msg)
    for instance in range(instances):
        before, after = (store.instance_path(each, instance) for each in (batch - 1, batch))
        if before.exists() and not after.exists():
            state = store.load_worked(batch - 1, instance).state
            store.write_worked(batch, instance, Worked(0, 0, state))


PARTIAL = pa.schema(
    [
        ("window", pa.int64()),
        ("instance", pa.int64()),
        ("key", pa.string()),
        ("n", pa.int64()),
        ("total", pa.float64()),
        ("least", pa.float64()),
        ("greatest", pa.float64()),
        ("values", pa.list_(pa.float64())),
        ("top", pa.list_(pa.float64())),
    ]
)
"""A row a window, instance and key; ``values`` are the different ones, largest first."""

ANSWER = pa.schema(
    [
        *[field for field in PARTIAL if field.name not in {"instance", "values", "top"}],
        ("distinct", pa.int64()),
        ("top", pa.list_(pa.float64())),
    ]
)
"""A row a window and key."""

_GROUP = ["window", "instance", "key"]
_INPUT = pa.schema([field for field in PARTIAL if field.name in _GROUP]).append(
    pa.field("value", pa.float64())
)


def partial_aggregates(
    rows: DataFrame, key: str, value: str, *, window: int = 0, top: int = 3
) -> DataFrame:
    """What every instance makes of the rows that it got; values that are not finite are left out.

    ``rows`` are spread (:class:`spark_impl.grouping.Grouping`): a partition is an instance. Columns
    are those of :data:`PARTIAL`.
    """
    chosen = {
        "window": F.lit(window).cast("bigint"),
        "instance": F.col(INSTANCE).cast("bigint"),
        "key": F.col(key),
        "value": F.col(value).cast("double"),
    }
    named = rows.select([column.alias(name) for name, column in chosen.items()])
    task = partial(_partials_of, top=top)
    return named.mapInArrow(task, from_arrow_schema(PARTIAL))


def merged_answers(parts: DataFrame, *, top: int = 3) -> DataFrame:
    """Partial aggregates of all instances and micro-batches together: columns of :data:`ANSWER`."""
    task = partial(_answers_of, top=top)
    return parts.repartition("window", "key").mapInArrow(task, from_arrow_schema(ANSWER))


def _partials_of(batches: Iterable[pa.RecordBatch], top: int) -> Iterator[pa.RecordBatch]:
    rows = _table(batches, _INPUT)
    yield from partials(rows.filter(pc.is_finite(rows.column("value"))), top).to_batches()


def _answers_of(batches: Iterable[pa.RecordBatch], top: int) -> Iterator[pa.RecordBatch]:
    yield from answers(_table(batches, PARTIAL), top).to_batches()


def _table(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """Everything that came; Spark says of some columns that nothing is missing in them."""
    given = list(batches)
    return pa.Table.from_batches(given).cast(schema) if given else schema.empty_table()


def partials(rows: pa.Table, top: int) -> pa.Table:
    """Partial aggregates of rows with ``window``, ``instance``, ``key``, ``value``, all finite."""
    grouped = rows.group_by(_GROUP).aggregate(
        [("value", name) for name in ("count", "sum", "min", "max")]
    )
    found = grouped.rename_columns([*_GROUP, "n", "total", "least", "greatest"])
    ordered = _in_order(found, rows, _GROUP)
    found = found.append_column("values", _different(ordered))
    return found.append_column("top", _largest(ordered, top)).select(PARTIAL.names).cast(PARTIAL)


def merged(parts: pa.Table, top: int) -> pa.Table:
    """Partial aggregates of the same window, instance and key in one row."""
    return _together(parts, _GROUP, top).select(PARTIAL.names).cast(PARTIAL)


def answers(parts: pa.Table, top: int) -> pa.Table:
    """All partial aggregates of a key in a window, together."""
    found = _together(parts, ["window", "key"], top)
    distinct = pc.list_value_length(found.column("values")).cast(pa.int64())
    return found.append_column("distinct", distinct).select(ANSWER.names).cast(ANSWER)


def _together(parts: pa.Table, group: list[str], top: int) -> pa.Table:
    summed = [("n", "sum"), ("total", "sum"), ("least", "min"), ("greatest", "max")]
    grouped = parts.group_by(group).aggregate(summed)
    found = grouped.rename_columns([*group, "n", "total", "least", "greatest"])
    values = _different(_in_order(found, _unfolded(parts, "values"), group))
    largest = _largest(_in_order(found, _unfolded(parts, "top"), group), top)
    return found.append_column("values", values).append_column("top", largest)


def _unfolded(parts: pa.Table, name: str) -> pa.Table:
    """A row for every value of a column of lists, with the group that it belongs to."""
    lists = parts.column(name).combine_chunks()
    rows = parts.select(_GROUP).take(pc.list_parent_indices(lists))
    return rows.append_column("value", pc.list_flatten(lists))


class _Ordered(NamedTuple):
    """The values of all groups, group by group, the largest first."""

    groups: int
    group: Ints
    """The group of each value."""
    value: Floats


def _in_order(grouped: pa.Table, rows: pa.Table, group: list[str]) -> _Ordered:
    numbered = grouped.select(group).append_column("group", pa.array(np.arange(len(grouped))))
    rows = rows.join(numbered, group).select(["group", "value"])
    rows = rows.sort_by([("group", "ascending"), ("value", "descending")])
    return _Ordered(len(grouped), *(column.to_numpy() for column in rows.columns))


def _different(ordered: _Ordered) -> pa.ListArray:
    """The different values of every group."""
    changes = np.diff(ordered.group, prepend=-1) != 0
    changes[1:] |= ordered.value[1:] != ordered.value[:-1]
    return _lists(ordered, changes)


def _largest(ordered: _Ordered, top: int) -> pa.ListArray:
    """The largest values of every group."""
    starts = np.flatnonzero(np.diff(ordered.group, prepend=-1))
    sizes = np.diff(np.append(starts, len(ordered.group)))
    return _lists(ordered, np.arange(len(ordered.group)) - np.repeat(starts, sizes) < top)


def _lists(ordered: _Ordered, chosen: Bools) -> pa.ListArray:
    """The values that were chosen, a list a group."""
    sizes = np.bincount(ordered.group[chosen], minlength=ordered.groups)
    ends = np.concatenate(([0], np.cumsum(sizes)))
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pa.array(ordered.value[chosen]))
