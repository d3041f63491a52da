"""Blocks: thousands of arrivals in one binary, on their way to a task.

If rows travel singly, Spark's hand-over to Python costs far more than all computation. Workers
therefore read the files of a history with Arrow and cut them by task, and the state operator gets a
handful of rows. Few tasks without grouping columns read the files themselves
(:class:`spark_impl.windows.arrival_files.FileShares`).

Spark sends rows to partitions by a hash of the grouping key. Of four tasks numbered 0 to 3, three
would land on the same one of two partitions, and one core would do most of the work. A task
therefore travels under another number, its *slot*. Spark sends it to partition ``task %
partitions`` for every number of partitions that divides 50,400: 1 to 10, 12, 14, 15, 16, 20, 24,
25, 32, 40, 48, 50, 100, Spark's default of 200, and more. (For others, such as 11 or 64, chance
decides.)
With grouping columns the hash also depends on their values, and slots make no difference.
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_impl.runtime.arrays import Ints
from spark_impl.runtime.storage import Location, locate
from spark_impl.windows.arrival_files import (
    merge_parts,
    number_values,
    open_file,
    owners,
    read_request,
    read_tables,
    replace_nulls,
    split,
    to_rows,
)
from spark_impl.windows.panes import compact
from spark_impl.windows.records import Rows
from spark_impl.windows.room import WindowSettings

SLOT = "task_slot"
"""Name of the column in which a task travels."""
_SEED = 42
_RESIDUES = 50_400
"""A multiple of every number of partitions that is balanced."""
_BALANCED = 2_000
"""Most tasks that get slots; more tasks spread evenly by chance, and a search would take long."""
_CANDIDATES = 1 << 14


def block_schema(groups: Sequence[pa.Field]) -> pa.Schema:
    """Return the schema of rows that carry blocks: grouping columns, slot and block.

    NULL for a block is a flush.
    """
    return pa.schema([*groups, pa.field(SLOT, pa.int32()), pa.field("block", pa.binary())])


def pack_files(
    batches: Iterable[pa.RecordBatch],
    control: Location,
    groups: Sequence[pa.Field],
    settings: WindowSettings,
    slots: Sequence[int],
) -> Iterator[pa.RecordBatch]:
    """Turn addresses of files into rows of :func:`block_schema`; a stage for ``mapInArrow``.

    A file in ``control`` is a request to flush and makes rows without a block.
    """
    schema = block_schema(groups)
    for batch in batches:
        for file in map(locate, batch.column("path").to_pylist()):
            if file.parent == control:
                yield _request(read_request(file), schema, slots)
                continue
            piece = open_file(file, groups, settings.value)
            for table in read_tables(piece, groups, value=settings.value):
                yield _packed(table, schema, settings, slots)


def _request(tasks: pa.Table, schema: pa.Schema, slots: Sequence[int]) -> pa.RecordBatch:
    columns = [
        *(tasks.column(name).combine_chunks() for name in schema.names[:-2]),
        pa.array([slots[task] for task in tasks.column("task").to_pylist()], pa.int32()),
        pa.nulls(len(tasks), pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _packed(
    table: pa.Table, schema: pa.Schema, settings: WindowSettings, slots: Sequence[int]
) -> pa.RecordBatch:
    groups = schema.names[:-2]
    if settings.upstreams:  # every task gets the arrivals of all
        whole = [(who, encode(settings, part, groups)) for who, part in split(table, groups)]
        parts = [((*who, task), block) for who, block in whole for task in range(settings.tasks)]
    else:
        codes, keys = number_values(table.column("key"))
        task = pa.array(owners(keys, settings.tasks)[codes].astype(np.int32))
        shares = split(table.append_column("task", task), [*groups, "task"])
        parts = [(who, encode(settings, part, groups)) for who, part in shares]
    columns = [
        *([values[i] for values, _ in parts] for i in range(len(groups))),
        [slots[values[-1]] for values, _ in parts],
        [block for _, block in parts],
    ]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def encode(settings: WindowSettings, table: pa.Table, by: Sequence[str] = ()) -> bytes:
    """Return a block of arrivals: an Arrow stream."""
    columns = replace_nulls(settings, table, by)
    block = pa.table({**columns, "key": _keys(table.column("key"))}).combine_chunks()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, block.schema) as out:
        out.write_table(block)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _keys(column: pa.ChunkedArray) -> pa.DictionaryArray:
    """Return the keys, numbered; NULL becomes the empty text."""
    codes, keys = number_values(column)
    used, codes = compact(codes)  # a slice of a column still has the whole column's dictionary
    texts = pa.array([keys[code] or "" for code in used.tolist()], pa.string())
    narrow = np.min_scalar_type(len(used))
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(narrow)), texts)


def decode(blocks: Iterable[bytes]) -> tuple[tuple[str, ...], Rows]:
    """Return keys and arrivals of some blocks, sorted by arrival number.

    ``Rows.key`` indexes the keys.
    """
    return merge_parts([_decoded(block) for block in blocks])


def _decoded(block: bytes) -> tuple[list[str], Rows]:
    table = pa.ipc.open_stream(block).read_all()
    codes, keys = number_values(table.column("key"))
    names = (name for name in table.column_names if name != "key")
    return keys, to_rows(codes, {name: table.column(name).to_numpy() for name in names})


def slots(tasks: int) -> tuple[int, ...]:
    """Return the slot of every task; :func:`task_of_slot` returns the task again."""
    if tasks > _BALANCED:
        return tuple(range(tasks))
    return tuple(_slot(task, tasks) for task in range(tasks))


def task_of_slot(slot: int, tasks: int) -> int:
    """Return the task that travels under a slot."""
    return slot % tasks


def _slot(task: int, tasks: int) -> int:
    step = tasks * _CANDIDATES
    for start in range(task, (1 << 31) - step, step):
        candidates = np.arange(start, start + step, tasks)
        fitting = candidates[_hash(candidates) % _RESIDUES == task % _RESIDUES]
        if len(fitting):
            return int(fitting[0])
    return task  # no slot fits below 2**31; this happens to at most one task in 10**9


def _hash(numbers: Ints) -> Ints:
    """Return Spark's hash of 32-bit integers: Murmur3 (x86, 32 bits), signed."""
    k = _rotated(numbers.astype(np.uint32) * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
    h = _rotated(np.uint32(_SEED) ^ k, 13) * np.uint32(5) + np.uint32(0xE6546B64)
    h ^= np.uint32(4)  # number of bytes hashed
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        h = (h ^ (h >> np.uint32(shift))) * np.uint32(factor)
    return (h ^ (h >> np.uint32(16))).view(np.int32).astype(np.int64)


def _rotated(numbers: NDArray[np.uint32], by: int) -> NDArray[np.uint32]:
    return (numbers << np.uint32(by)) | (numbers >> np.uint32(32 - by))
