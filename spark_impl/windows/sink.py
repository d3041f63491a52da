"""Writes what the stream part found in one micro-batch, where it was found: on the executors."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from spark_impl.runtime.arrays import Records
from spark_impl.windows.arrivals import REASONS
from spark_impl.windows.asked import Asked
from spark_impl.windows.blocks import FLAWS, keys_from_bytes
from spark_impl.windows.store import Store
from spark_impl.windows.tables import found, records_of

_ALL_REASONS = np.array(["", *REASONS, *FLAWS], dtype=object)


Write: TypeAlias = Callable[[Sequence[Mapping[str, Any]], int, int], None]
"""Writes what the tasks of one partition have found: their rows, the micro-batch, the partition."""


def writer(store: Store, asked: Asked) -> Write:
    """What writes the stream tables of a query, on any machine.

    A part of a table is named after the partition, so a task that Spark runs twice writes the same
    files.
    """

    def write(rows: Sequence[Mapping[str, Any]], batch: int, part: int) -> None:
        for name, table in tables(store, asked, rows).items():
            store.write(name, batch, table, part)

    return write


def tables(store: Store, asked: Asked, rows: Sequence[Mapping[str, Any]]) -> dict[str, pa.Table]:
    """The stream tables from what tasks have found, a row each."""
    given = pa.Table.from_pylist([*rows], schema=store.schema_of(found(store.room)))
    out = {name: _unpacked(store, asked, given, name) for name in records_of(store.room)}
    schema = store.schema("progress")
    out["progress"] = given.filter(given.column("active")).select(schema.names).cast(schema)
    return out


def _unpacked(store: Store, asked: Asked, given: pa.Table, name: str) -> pa.Table:
    """One table from the records of all rows."""
    dtype = records_of(store.room)[name]
    arrays = [np.frombuffer(data, dtype) for data in given.column(name).to_pylist()]
    owner = pa.array(np.repeat(np.arange(len(arrays)), [len(each) for each in arrays]))
    together: Records = np.concatenate(arrays)
    columns: dict[str, Any] = {by: given.column(by).take(owner) for by in store.by}
    names = store.schema(name).names
    if "key" in names:
        texts = [keys_from_bytes(data) for data in given.column("keys").to_pylist()]
        columns["key"] = _keys(texts, arrays)
    for column in names:
        if column == "start_us":
            index = together["first" if name == "late" else "j"]
            columns[column] = index * asked.slide_us
        elif column == "reason":
            columns[column] = _ALL_REASONS[together["reason"]]
        elif column not in columns:
            columns[column] = together[column]
    schema = store.schema(name)
    return pa.table([_array(columns[each.name], each.type) for each in schema], schema=schema)


def _keys(texts: list[tuple[str, ...]], arrays: list[Records]) -> pa.ChunkedArray:
    chunks = [
        pa.array(keys, pa.string()).take(pa.array(np.ascontiguousarray(records["key"])))
        for keys, records in zip(texts, arrays, strict=True)
        if len(records)
    ]
    return pa.chunked_array(chunks, pa.string())


def _array(column: Any, kind: pa.DataType) -> Any:
    if isinstance(column, pa.ChunkedArray):
        return column
    return pa.array(np.ascontiguousarray(column), kind)
