"""Arrivals travel to their task as blocks: one row, one binary, thousands of tuples.

Row by row, Spark's hand-over to Python costs more than everything that the processor computes; a
stateless stage therefore packs the rows of a batch, and the state operator sees a handful of rows.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_impl.slack.records import Rows

COLUMNS = ("seq", "source_id", "key", "event_time_us", "value", "arrival_us")
"""Columns of a history, besides the grouping columns of the caller."""
NULL_REASONS = (
    *(f"{name} is NULL" for name in COLUMNS),
    "a grouping column is NULL",
)
_INTEGERS = ("seq", "source_id", "event_time_us", "arrival_us")
_ROWS_AT_ONCE = 1_000_000


def split(table: pa.Table, by: Sequence[str]) -> list[tuple[tuple[Any, ...], pa.Table]]:
    """The table cut into one table for each distinct combination of some columns, rows in order."""
    if not table.num_rows:
        return []
    code = np.zeros(table.num_rows, np.int64)
    for name in by:
        encoded = table.column(name).combine_chunks().dictionary_encode(null_encoding="encode")
        code = code * len(encoded.dictionary) + encoded.indices.to_numpy(zero_copy_only=False)
        code = np.unique(code, return_inverse=True)[1]  # stay small whatever the columns hold
    if code[0] == code[-1] and not code.any():
        return [(_values(table, by, 0), table)]
    order = np.argsort(code, kind="stable")
    table = table.take(pa.array(order))
    starts = np.flatnonzero(np.diff(code[order], prepend=-1))
    stops = [*starts[1:].tolist(), table.num_rows]
    return [
        (_values(table, by, start), table.slice(start, stop - start))
        for start, stop in zip(starts.tolist(), stops, strict=True)
    ]


def pack(
    batches: Iterable[pa.RecordBatch], by: Sequence[str], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Stage for ``mapInArrow``: rows (``by`` columns, :data:`COLUMNS`) to (``by``, block)."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(each.num_rows for each in waiting) >= _ROWS_AT_ONCE:
            yield _packed(waiting, by, schema)
            waiting = []
    if waiting:
        yield _packed(waiting, by, schema)


def _packed(batches: list[pa.RecordBatch], by: Sequence[str], schema: pa.Schema) -> pa.RecordBatch:
    parts = split(pa.Table.from_batches(batches), by)
    columns = [[values[i] for values, _ in parts] for i in range(len(by))]
    columns.append([encode(part, by) for _, part in parts])
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def encode(table: pa.Table, by: Sequence[str] = ()) -> bytes:
    """Arrivals as an Arrow stream; NULLs become zeros with a note in the column ``flaw``."""
    columns = {}
    flaw = np.zeros(table.num_rows, np.int8)
    for place, name in reversed(list(enumerate((*COLUMNS, *by), 1))):
        column = table.column(name)
        if column.null_count:  # the first column of the list that is NULL is the one named
            flaw[column.is_null().to_numpy()] = min(place, len(NULL_REASONS))
            if name in COLUMNS:
                column = pc.fill_null(column, "" if name == "key" else 0)
        if name in COLUMNS:
            columns[name] = column
    columns["key"] = columns["key"].combine_chunks().dictionary_encode()
    if flaw.any():
        columns["flaw"] = pa.array(flaw)
    block = pa.table(columns).combine_chunks()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, block.schema) as out:
        out.write_table(block)
    return sink.getvalue().to_pybytes()


def decode(blocks: Iterable[bytes]) -> tuple[tuple[str, ...], Rows]:
    """Keys and arrivals of some blocks, sorted by arrival number; ``Rows.key`` indexes the keys."""
    tables = [pa.ipc.open_stream(block).read_all() for block in blocks]
    number: dict[str, int] = {}
    codes = [np.empty(0, np.int64)]
    for table in tables:
        for chunk in table.column("key").chunks:
            known = [number.setdefault(key, len(number)) for key in chunk.dictionary.to_pylist()]
            codes.append(np.array(known, np.int64)[chunk.indices.to_numpy()])
    columns = {name: _joined(tables, name, np.int64) for name in _INTEGERS}
    rows = Rows(
        key=np.concatenate(codes),
        value=_joined(tables, "value", np.float64),
        flaw=np.concatenate([np.empty(0, np.int64), *map(_flaws, tables)]),
        **columns,
    )
    if np.any(rows.seq[1:] < rows.seq[:-1]):
        rows = rows.take(np.argsort(rows.seq, kind="stable"))
    return tuple(number), rows


def _joined(tables: list[pa.Table], name: str, dtype: type) -> np.ndarray[Any, Any]:
    parts = [table.column(name).to_numpy() for table in tables]
    return np.concatenate([np.empty(0, dtype), *parts])


def _flaws(table: pa.Table) -> np.ndarray[Any, Any]:
    if "flaw" not in table.column_names:
        return np.zeros(table.num_rows, np.int64)
    return np.asarray(table.column("flaw").to_numpy(), np.int64)


def _values(table: pa.Table, by: Sequence[str], row: int) -> tuple[Any, ...]:
    return tuple(table.column(name)[row].as_py() for name in by)


def keys_to_bytes(keys: tuple[str, ...]) -> bytes:
    """The list of keys that the numbers in records refer to."""
    return json.dumps(keys, ensure_ascii=False, separators=(",", ":")).encode()


def keys_from_bytes(data: bytes) -> tuple[str, ...]:
    """Read what :func:`keys_to_bytes` wrote."""
    return tuple(json.loads(data))
