"""Work at instances, timed and with a lasting state, and aggregation (docs/grouping.md, 6).

An instance is busy from the call of its work to the return; waiting for tuples does not count.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from spark_impl.grouping.reports import MicroBatch, Report
from spark_impl.grouping.store import INSTANCE as OWN
from spark_impl.grouping.store import decode_table, encode_table
from spark_impl.grouping.tasks import INSTANCE, partition_id
from spark_impl.runtime.storage import InputProblem, Location

Step: TypeAlias = Callable[[pa.Table, pa.Table | None], tuple[pa.Table, pa.Table | None]]
"""Work of one instance: from its rows of a micro-batch and its state to output and next state.

It runs once in every micro-batch, even without rows. There is no state before the first one.
"""


def at_instances(rows: DataFrame, batch: MicroBatch, step: Step, found: pa.Schema) -> DataFrame:
    """Run ``step`` at every instance, once in a micro-batch; return its output.

    ``rows`` are the rows that the work of :meth:`spark_impl.grouping.Grouping.stream` gets;
    ``found`` are the columns of the output. When the result is read, state and times go to the
    store of the stream: the next micro-batch begins with the state, and the next window is balanced
    by the times. The result must be read to its end. ``step`` must be deterministic, except for the
    time that it takes.
    """
    batch.reports.is_work_expected = True
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
    # The rows have the session's time zone and kinds of strings, the schema has others.
    table = pa.Table.from_batches(held).cast(given) if held else given.empty_table()
    instance = partition_id()
    store = batch.store
    state = decode_table(store.load(OWN, batch.before[instance])) if batch.before else None
    begun_ns = time.perf_counter_ns()
    found, state = step(table, state)
    busy_us = (time.perf_counter_ns() - begun_ns) // 1000 if len(table) else 0
    if found.schema.names != expected.names:
        msg = f"the work at instance {instance} returns {found.schema.names}, not {expected.names}"
        raise InputProblem(msg)
    file = store.save(OWN, batch.number, instance, encode_table(state))
    batch.reports.add(Report(file, OWN, instance, len(table), busy_us))
    yield from found.cast(expected).to_batches()


def finish_work(
    batch: MicroBatch, instances: int, tuples: int
) -> tuple[list[tuple[int, int]], list[Location]]:
    """Return the tuples of every instance in a micro-batch and their time (us), and their files.

    If there was no work at instances, their states are kept; without tuples, work may leave its
    output unread. Raise :class:`InputProblem` unless the work got ``tuples`` tuples, and its output
    was read to its end and is in the store.
    """
    store, number = batch.store, batch.number
    reported = batch.reports.of(OWN)
    if not batch.reports.is_work_expected or not (tuples or reported):
        kept = [
            store.save(OWN, number, instance, store.load(OWN, file))
            for instance, file in batch.before.items()
        ]
        return [(0, 0)] * instances, kept
    if len(reported) < instances:
        msg = (
            f"the output of only {len(reported)} of {instances} instances was read to its end;"
            " the work of a micro-batch has to read the output of all"
        )
        raise InputProblem(msg)
    files = [reported[instance].file for instance in range(instances)]
    spent = [reported[instance][3:] for instance in range(instances)]
    worked = sum(tuples for tuples, _ in spent)
    if worked != tuples:
        msg = (
            f"the instances got {worked} of the {tuples} tuples of micro-batch {number};"
            " give at_instances all rows that the work gets, and the stream a column seq if its"
            " input may come in another order"
        )
        raise InputProblem(msg)
    return spent, files


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
"""Columns with one row per window, instance and key; ``values`` are distinct."""

ANSWER = pa.schema(
    [
        *[field for field in PARTIAL if field.name not in {"instance", "values", "top"}],
        ("distinct", pa.int64()),
        ("top", pa.list_(pa.float64())),
    ]
)
"""Columns with one row per window and key."""

_GROUP = ["window", "instance", "key"]
_INPUT = pa.schema([field for field in PARTIAL if field.name in _GROUP]).append(
    pa.field("value", pa.float64())
)


def partial_aggregates(
    rows: DataFrame, key: str, value: str, *, window: int | str = 0, top: int = 3
) -> DataFrame:
    """Return the aggregates of every instance over its rows, without values that are not finite.

    ``rows`` are spread (:class:`spark_impl.grouping.Grouping`): a partition is an instance.
    ``window`` is the number of their window, or the column that has it. The columns are those of
    :data:`PARTIAL`.
    """
    number = F.col(window) if isinstance(window, str) else F.lit(window)
    chosen = {
        "window": number.cast("bigint"),
        "instance": F.col(INSTANCE).cast("bigint"),
        "key": F.col(key),
        "value": F.col(value).cast("double"),
    }
    named = rows.select([column.alias(name) for name, column in chosen.items()])
    task = partial(_partials_of, top=top)
    return named.mapInArrow(task, from_arrow_schema(PARTIAL))


def merged_answers(parts: DataFrame, *, top: int = 3) -> DataFrame:
    """Merge the partial aggregates of a stream into answers: columns of :data:`ANSWER`."""
    task = partial(_answers_of, top=top)
    return parts.repartition("window", "key").mapInArrow(task, from_arrow_schema(ANSWER))


def _partials_of(batches: Iterable[pa.RecordBatch], top: int) -> Iterator[pa.RecordBatch]:
    rows = _table(batches, _INPUT)
    yield from aggregate(rows.filter(pc.is_finite(rows.column("value"))), top).to_batches()


def _answers_of(batches: Iterable[pa.RecordBatch], top: int) -> Iterator[pa.RecordBatch]:
    yield from merge_answers(_table(batches, PARTIAL), top).to_batches()


def _table(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """Return batches as a table; Spark marks some columns as never null, the schema does not."""
    given = list(batches)
    return pa.Table.from_batches(given).cast(schema) if given else schema.empty_table()


def aggregate(rows: pa.Table, top: int) -> pa.Table:
    """Aggregate rows with ``window``, ``instance``, ``key`` and ``value``, all finite."""
    values = pc.add(rows.column("value"), 0.0)  # both zeros are equal
    ordered = rows.select(_GROUP).append_column("value", values)
    ordered = ordered.sort_by([("value", "descending")])
    measures = ("count", "sum", "min", "max", "distinct", "list")
    grouped = ordered.group_by(_GROUP, use_threads=False)
    found = grouped.aggregate([("value", name) for name in measures])
    found = found.rename_columns(PARTIAL.names)
    return found.set_column(len(PARTIAL) - 1, "top", _first(found.column("top"), top)).cast(PARTIAL)


def merge_partials(parts: pa.Table, top: int) -> pa.Table:
    """Merge partial aggregates of the same window, instance and key."""
    return _combine(parts, _GROUP, top).select(PARTIAL.names).cast(PARTIAL)


def merge_answers(parts: pa.Table, top: int) -> pa.Table:
    """Merge all partial aggregates of a key in a window."""
    found = _combine(parts, ["window", "key"], top)
    distinct = pc.list_value_length(found.column("values")).cast(pa.int64())
    return found.append_column("distinct", distinct).select(ANSWER.names).cast(ANSWER)


def _combine(parts: pa.Table, group: list[str], top: int) -> pa.Table:
    by = [(name, "ascending") for name in group]
    summed = {"n": "sum", "total": "sum", "least": "min", "greatest": "max"}
    found = parts.group_by(group).aggregate([*summed.items()])
    found = found.rename_columns([*group, *summed]).sort_by(by)
    values, largest = _unfold(parts, "values"), _unfold(parts, "top")
    # Each group has values, so all tables have the same groups; it has no largest ones if none were
    # asked for, and then an empty list of them is the begin of any list.
    most = top if len(largest) else 0
    largest = (largest if len(largest) else values).sort_by([("value", "descending")])
    for name, rows, how in (("values", values, "distinct"), ("top", largest, "list")):
        lists = rows.group_by(group, use_threads=False).aggregate([("value", how)]).sort_by(by)
        found = found.append_column(name, lists.column(f"value_{how}"))
    return found.set_column(len(found.schema) - 1, "top", _first(found.column("top"), most))


def _unfold(parts: pa.Table, name: str) -> pa.Table:
    """Return a row for every value of a column of lists, with its group."""
    lists = parts.column(name).combine_chunks()
    rows = parts.select(_GROUP).take(pc.list_parent_indices(lists))
    return rows.append_column("value", pc.list_flatten(lists))


def _first(lists: pa.ChunkedArray, most: int) -> pa.Array:
    """Return the first values of every list."""
    return pc.list_slice(lists.combine_chunks(), 0, most, return_fixed_size_list=False)
