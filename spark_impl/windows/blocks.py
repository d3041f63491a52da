"""Arrivals travel to their task as blocks: one row, one binary, thousands of tuples.

Row by row, Spark's hand-over to Python costs far more than everything that the processor computes.
So the workers read the files of a history with Arrow, cut them by task, and the state operator sees
a handful of rows. That is the way of arrivals with grouping columns; without, nothing has to travel
(:mod:`spark_impl.windows.shares`).
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from model.vocabulary import task_of
from spark_impl.runtime.arrays import Column, Ints
from spark_impl.runtime.histories import InputProblem, on_disk, reading
from spark_impl.windows.asked import Asked
from spark_impl.windows.panes import compact, stable_order
from spark_impl.windows.records import Rows
from spark_impl.windows.slots import SLOT

COLUMNS = {
    "seq": pa.int64(),
    "source_id": pa.int64(),
    "key": pa.string(),
    "event_time_us": pa.int64(),
    "value": pa.float64(),
    "arrival_us": pa.int64(),
}
"""Columns of a history, besides the grouping columns of the caller."""
FLAWS = (
    *(f"{name} is NULL" for name in COLUMNS),
    "a grouping column is NULL",
    "event_time_us lies beyond all calendars",
)
"""Why an arrival cannot even be looked at; ``Rows.flaw`` holds 1 + the position of the first."""
_ALL_TIMES_US = 1 << 61
"""Event times below this, either side of the epoch, leave room for the arithmetic of windows."""
ROWS_AT_ONCE = 1_000_000
"""Of a file so many are in memory at a time."""


def check_columns(source: str | Path, schema: pa.Schema) -> None:
    """Raise :class:`InputProblem` with one sentence when a column is missing or of a wrong type."""
    for name in COLUMNS:
        kind = _column(source, schema, name)
        if name == "key":
            _require(_is_text(kind), source, name, kind, "text")
        elif name == "value":
            number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
            _require(number, source, name, kind, "numbers")
        else:
            _require(pa.types.is_integer(kind), source, name, kind, "integers")


def group_type(source: str | Path, schema: pa.Schema, name: str) -> pa.DataType:
    """The type that a grouping column is read as.

    Raises :class:`InputProblem` with one sentence when it is missing or of a wrong type.
    """
    kind = _column(source, schema, name)
    _require(_is_text(kind) or pa.types.is_integer(kind), source, name, kind, "text or integers")
    return pa.string() if _is_text(kind) else pa.int64()


def _column(source: str | Path, schema: pa.Schema, name: str) -> pa.DataType:
    if name not in schema.names:
        msg = f"{source} has no column {name!r}; its columns are {', '.join(schema.names)}"
        raise InputProblem(msg)
    return schema.field(name).type


def _is_text(kind: pa.DataType) -> bool:
    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(inner) or pa.types.is_large_string(inner))


def _require(good: bool, source: str | Path, name: str, kind: pa.DataType, wanted: str) -> None:
    if not good:
        msg = f"column {name!r} of {source} holds {kind}; it must hold {wanted}"
        raise InputProblem(msg)


def block_schema(groups: Sequence[pa.Field]) -> pa.Schema:
    """Rows that bring arrivals to a task: its slot (:mod:`spark_impl.windows.slots`), and a block.

    NULL for a block is a flush.
    """
    return pa.schema([*groups, pa.field(SLOT, pa.int32()), pa.field("block", pa.binary())])


def pack_files(
    batches: Iterable[pa.RecordBatch],
    control: Path,
    groups: Sequence[pa.Field],
    asked: Asked,
    slots: Sequence[int],
) -> Iterator[pa.RecordBatch]:
    """Stage for ``mapInArrow``: paths of files to rows (grouping columns, slot, block).

    A request to flush, which lies in ``control``, makes rows without a block.
    """
    schema = block_schema(groups)
    for batch in batches:
        for path in batch.column("path").to_pylist():
            place = on_disk(path)
            if Path(place).parent == control:
                yield _request(pq.read_table(place), schema, slots)
                continue
            for table in tables_of(place, groups):
                yield _packed(table, schema, asked, slots)


def opened(path: str, groups: Sequence[pa.Field] = ()) -> pq.ParquetFile:
    """A file of a history; :class:`InputProblem` with one sentence when it cannot be read."""
    with reading(path):
        file = pq.ParquetFile(path, read_dictionary=["key"])
    _check_file(path, file.schema_arrow, groups)
    return file


def tables_of(
    path: str, groups: Sequence[pa.Field], columns: Collection[str] = tuple(COLUMNS)
) -> Iterator[pa.Table]:
    """A file of a history as :func:`parts_of` gives it.

    Raises :class:`InputProblem` with one sentence when it cannot be read.
    """
    return parts_of(opened(path, groups), groups, columns)


def parts_of(
    file: pq.ParquetFile, groups: Sequence[pa.Field], columns: Collection[str]
) -> Iterator[pa.Table]:
    """A file of a history, a million rows at a time: grouping columns, then others."""
    names = [*(field.name for field in groups), *columns]
    for rows in file.iter_batches(ROWS_AT_ONCE, columns=names):
        yield typed(pa.Table.from_batches([rows]), groups)


def _check_file(path: str, schema: pa.Schema, groups: Sequence[pa.Field]) -> None:
    """What the first file of a history had to pass, and grouping columns of the same type."""
    check_columns(path, schema)
    for field in groups:
        if group_type(path, schema, field.name) != field.type:
            wanted = "text" if field.type == pa.string() else "integers"
            _require(False, path, field.name, schema.field(field.name).type, wanted)


def _request(tasks: pa.Table, schema: pa.Schema, slots: Sequence[int]) -> pa.RecordBatch:
    columns = [
        *(tasks.column(name).combine_chunks() for name in schema.names[:-2]),
        pa.array([slots[task] for task in tasks.column("task").to_pylist()], pa.int32()),
        pa.nulls(len(tasks), pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _packed(
    table: pa.Table, schema: pa.Schema, asked: Asked, slots: Sequence[int]
) -> pa.RecordBatch:
    groups = schema.names[:-2]
    table = table.append_column("task", tasks_of(table.column("key"), asked.tasks))
    parts = split(table, [*groups, "task"])
    columns: list[list[Any]] = [[values[i] for values, _ in parts] for i in range(len(groups))]
    columns.append([slots[values[-1]] for values, _ in parts])
    columns.append([encode(asked, part, groups) for _, part in parts])
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def typed(table: pa.Table, groups: Sequence[pa.Field]) -> pa.Table:
    """The table with the types that the rest relies on; keys as they are, perhaps numbered."""
    wanted = {**COLUMNS, **{field.name: field.type for field in groups}}
    for place, field in enumerate(table.schema):
        if field.name != "key" and field.type != wanted[field.name]:
            column = table.column(place).cast(wanted[field.name])
            table = table.set_column(place, field.name, column)
    return table


def tasks_of(key: pa.ChunkedArray, tasks: int) -> pa.Array:
    """The task of every row; rows without a key go to task 0."""
    codes, keys = coded(key)
    owner = np.array([0 if key is None else task_of(key, tasks) for key in keys], np.int32)
    return pa.array(owner[codes])


def coded(column: pa.ChunkedArray) -> tuple[Ints, list[Any]]:
    """For every row a number, and the value that each number stands for."""
    array = column.unify_dictionaries().combine_chunks()
    if isinstance(array, pa.ChunkedArray):  # what combine_chunks makes of no chunks at all
        return np.empty(0, np.int64), []
    if not pa.types.is_dictionary(array.type):
        array = array.dictionary_encode()
    values = array.dictionary.to_pylist()
    codes = array.indices
    if array.null_count:
        codes = pc.fill_null(codes, len(values))
        values = [*values, None]
    return codes.to_numpy().astype(np.int64), values


def split(table: pa.Table, by: Sequence[str]) -> list[tuple[tuple[Any, ...], pa.Table]]:
    """The table cut into one table for each distinct combination of some columns, rows in order."""
    if not table.num_rows:
        return []
    codes, values = combined(table, by)
    if len(values) == 1:
        return [(values[0], table)]
    table = table.take(pa.array(stable_order(codes, len(values))))
    sizes = np.bincount(codes, minlength=len(values))
    starts = np.cumsum(sizes) - sizes
    return [
        (value, table.slice(start, size))
        for value, start, size in zip(values, starts.tolist(), sizes.tolist(), strict=True)
    ]


def combined(table: pa.Table, by: Sequence[str]) -> tuple[Ints, list[tuple[Any, ...]]]:
    """For every row the number of its combination of some columns, and the combinations."""
    codes = np.zeros(table.num_rows, np.int64)
    combinations: list[tuple[Any, ...]] = [()]
    for name in by:
        more, values = coded(table.column(name))
        used, codes = compact(codes * len(values) + more)
        combinations = [
            (*combinations[code // len(values)], values[code % len(values)])
            for code in used.tolist()
        ]
    return codes, combinations


def encode(asked: Asked, table: pa.Table, by: Sequence[str] = ()) -> bytes:
    """Arrivals as an Arrow stream."""
    columns = without_nulls(asked, table, by)
    block = _narrowed({**columns, "key": _keys(table.column("key"))})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, block.schema) as out:
        out.write_table(block)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def without_nulls(asked: Asked, table: pa.Table, by: Sequence[str] = ()) -> dict[str, Any]:
    """Columns of arrivals: NULLs become zeros with a note in the column ``flaw``, if there are any.

    The key and columns that the query does not look at stay behind. Of the latter one without NULLs
    may be missing.
    """
    columns: dict[str, Any] = {}
    unseen = {"key"} if asked.max_future_us is not None else {"key", "arrival_us"}
    flaw = np.zeros(table.num_rows, np.int64)
    times = pc.min_max(table.column("event_time_us")).as_py()
    if not -_ALL_TIMES_US < (times["min"] or 0) <= (times["max"] or 0) < _ALL_TIMES_US:
        ts = pc.fill_null(table.column("event_time_us"), 0).to_numpy()
        flaw[(ts <= -_ALL_TIMES_US) | (ts >= _ALL_TIMES_US)] = len(FLAWS)
    for place, name in reversed(list(enumerate((*COLUMNS, *by), 1))):
        if name not in table.column_names:
            continue
        column = table.column(name)
        if column.null_count:  # the first column of the list that is NULL is the one named
            flaw[column.is_null().to_numpy()] = min(place, len(COLUMNS) + 1)
        if name in COLUMNS and name not in unseen:
            columns[name] = pc.fill_null(column, 0) if column.null_count else column
    if flaw.any():
        columns["flaw"] = pa.array(flaw)
    return columns


def _narrowed(columns: dict[str, Any]) -> pa.Table:
    """The columns in half the bits where nothing is lost, which halves what travels.

    Integers count from the least one on, which the table's metadata hold.
    """
    least = {}
    for name, column in columns.items():
        if name == "key" or not len(column):
            continue
        numbers = column.to_numpy()
        if numbers.dtype == np.float64:
            with np.errstate(over="ignore"):
                halves = numbers.astype(np.float32)
            if np.array_equal(halves, numbers):
                columns[name] = pa.array(halves)
        elif int(numbers.max()) - int(numbers.min()) < 1 << 32:
            least[name] = str(numbers.min())
            columns[name] = pa.array((numbers - numbers.min()).astype(np.uint32))
    return pa.table(columns).combine_chunks().replace_schema_metadata(least)


def _keys(column: pa.ChunkedArray) -> pa.DictionaryArray:
    """Keys numbered; NULL becomes the empty text."""
    codes, keys = coded(column)
    used, codes = compact(codes)  # a slice of a column still has the whole column's dictionary
    texts = pa.array([keys[code] or "" for code in used.tolist()], pa.string())
    narrow = np.min_scalar_type(-len(used) - 1)  # signed: that is what Arrow expects
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(narrow)), texts)


def decode(blocks: Iterable[bytes]) -> tuple[tuple[str, ...], Rows]:
    """Keys and arrivals of some blocks, sorted by arrival number; ``Rows.key`` indexes the keys."""
    return together([_decoded(block) for block in blocks])


def _decoded(block: bytes) -> tuple[list[str], Rows]:
    table = pa.ipc.open_stream(block).read_all()
    codes, keys = coded(table.column("key"))
    columns = {name: _widened(table, name) for name in table.column_names if name != "key"}
    return keys, as_rows(codes, columns)


def as_rows(key: Ints, columns: Mapping[str, Column]) -> Rows:
    """Arrivals from what :func:`without_nulls` has left of their columns."""
    zeros = np.zeros(len(key), np.int64)
    return Rows(
        key=key, **{name: columns.get(name, zeros) for name in Rows._fields if name != "key"}
    )


def together(parts: Sequence[tuple[Sequence[str], Rows]]) -> tuple[tuple[str, ...], Rows]:
    """Keys and arrivals of some parts, each with keys of its own, sorted by arrival number."""
    number: dict[str, int] = {}
    every = [as_rows(np.empty(0, np.int64), {"value": np.empty(0)})]
    for keys, rows in parts:
        known = [number.setdefault(key, len(number)) for key in keys]
        every.append(rows._replace(key=np.array(known, np.int64)[rows.key]))
    if len(parts) == 1:
        rows = every[1]
    else:
        rows = Rows._make(np.concatenate(columns) for columns in zip(*every, strict=True))
    if np.any(rows.seq[1:] < rows.seq[:-1]):
        rows = rows.take(np.argsort(rows.seq, kind="stable"))
    return tuple(number), rows


def _widened(table: pa.Table, name: str) -> Column:
    """A column as it was before it was narrowed."""
    dtype = np.float64 if name == "value" else np.int64
    numbers: Column = table.column(name).to_numpy().astype(dtype)
    least = (table.schema.metadata or {}).get(name.encode())
    if least is not None:
        numbers += int(least)
    return numbers


def keys_to_bytes(keys: tuple[str, ...]) -> bytes:
    """The list of keys that the numbers in records refer to."""
    return json.dumps(keys, ensure_ascii=False, separators=(",", ":")).encode()


def keys_from_bytes(data: bytes) -> tuple[str, ...]:
    """Read what :func:`keys_to_bytes` wrote."""
    return tuple(json.loads(data))
