"""Writes what the stream part found in one micro-batch, where it was found: on the executors."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import TaskContext

from spark_impl.windows.arrivals import REASONS
from spark_impl.windows.asked import Asked
from spark_impl.windows.blocks import FLAWS, keys_from_bytes
from spark_impl.windows.records import Records
from spark_impl.windows.store import Store
from spark_impl.windows.tables import records_of

_ALL_REASONS = np.array(["", *REASONS, *FLAWS], dtype=object)


def stage(
    store: Store, asked: Asked, batch: int
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Stage for ``mapInArrow``: output rows of the processor to the rows of ``progress``.

    On the way every partition writes its part of the stream tables. A part is named after the
    partition, so a task that Spark runs twice writes the same files.
    """

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        given = [row for each in batches for row in pa.Table.from_batches([each]).to_batches()]
        if not given:
            return
        found = tables(store, asked, pa.Table.from_batches(given))
        context = TaskContext.get()
        part = 0 if context is None else context.partitionId()
        for name, rows in found.items():
            store.write(name, batch, rows, part)
        yield from found["progress"].combine_chunks().to_batches()

    return run


def tables(store: Store, asked: Asked, given: pa.Table) -> dict[str, pa.Table]:
    """The stream tables from output rows of the processor."""
    found = {name: _unpacked(store, asked, given, name) for name in records_of(store.room)}
    schema = store.schema("progress")
    found["progress"] = given.filter(given.column("active")).select(schema.names).cast(schema)
    return found


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
