"""What instances make of their tuples, and what that makes together (docs/grouping.md, 6)."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)
from pyspark.sql.pandas.types import from_arrow_schema

from spark_impl.grouping.routing import INSTANCE
from spark_impl.runtime.arrays import Bools, Floats, Ints

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
