"""What instances make of their tuples, and what that makes together (docs/grouping.md, 6)."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

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


def partials(rows: pa.Table, top: int) -> pa.Table:
    """Partial aggregates of rows with ``window``, ``instance``, ``key``, ``value``, all finite."""
    grouped = rows.group_by(_GROUP).aggregate(
        [("value", name) for name in ("count", "sum", "min", "max")]
    )
    grouped = grouped.rename_columns([*_GROUP, "n", "total", "least", "greatest"])
    return _with_lists(grouped, rows, _GROUP, top).select(PARTIAL.names).cast(PARTIAL)


def answers(parts: pa.Table, top: int) -> pa.Table:
    """All partial aggregates of a key in a window, together."""
    group = ["window", "key"]
    summed = [("n", "sum"), ("total", "sum"), ("least", "min"), ("greatest", "max")]
    grouped = parts.group_by(group).aggregate(summed)
    grouped = grouped.rename_columns([*group, "n", "total", "least", "greatest"])
    values = _with_lists(grouped, _unfolded(parts, "values"), group, top).column("values")
    grouped = _with_lists(grouped, _unfolded(parts, "top"), group, top)
    distinct = pc.list_value_length(values).cast(pa.int64())
    return grouped.append_column("distinct", distinct).select(ANSWER.names).cast(ANSWER)


def _unfolded(parts: pa.Table, name: str) -> pa.Table:
    """A row for every value of a column of lists, with the group that it belongs to."""
    lists = parts.column(name).combine_chunks()
    rows = parts.select(["window", "key"]).take(pc.list_parent_indices(lists))
    return rows.append_column("value", pc.list_flatten(lists))


def _with_lists(grouped: pa.Table, rows: pa.Table, group: list[str], top: int) -> pa.Table:
    """Add the different values of every group, and the largest ones."""
    table = grouped.append_column("row", pa.array(np.arange(grouped.num_rows)))
    rows = rows.join(table.select([*group, "row"]), group)
    rows = rows.sort_by([("row", "ascending"), ("value", "descending")])
    row, value = rows.column("row").to_numpy(), rows.column("value").to_numpy()
    starts = np.flatnonzero(np.diff(row, prepend=-1))
    sizes = np.diff(np.append(starts, len(row)))
    is_top = np.arange(len(row)) - np.repeat(starts, sizes) < top
    is_new = np.append(True, (row[1:] != row[:-1]) | (value[1:] != value[:-1]))[: len(row)]
    for name, chosen in (("top", is_top), ("values", is_new)):
        ends = np.concatenate(([0], np.cumsum(np.bincount(row[chosen], minlength=len(table)))))
        lists = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pa.array(value[chosen]))
        table = table.append_column(name, lists)
    return table
