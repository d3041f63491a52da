"""Numbers the rows of a micro-batch and writes them: the work of one task of a landing."""

import json
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_impl.runtime.arrays import PlainRow
from spark_impl.runtime.columns import FAULT, FAULTS
from spark_impl.runtime.histories import RowFile
from spark_impl.runtime.landed_files import READ
from spark_impl.runtime.storage import Location

LANDED, REJECTED = "landed", "rejected"
"""Tables that a micro-batch is written to."""
WRITTEN = "`table` string, file string, `rows` long, gone long, read long"
"""Columns that the task yields, with a row for each file. ``gone`` is the number of rows that did
not land, ``read`` that of all rows that Spark has handed in so far."""
ROW_GROUP = 1 << 20
"""Most rows of a row group, which is in memory before it is written."""


def write_in_order(
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    scratch: Location,
    batch: int,
    first: int,
    since_us: int,
    nullable: Collection[str],
    read: int,
) -> Iterator[pa.RecordBatch]:
    """Write rows with their numbers to ``scratch``; yield :data:`WRITTEN`, for ``mapInArrow``.

    ``batches`` are all rows of a micro-batch in the order of arrival. The first arrival gets the
    number ``first``; no arrival gets a time before ``since_us``. ``schema`` is that of the history.
    ``read`` is the number of rows that Spark has handed in before micro-batch ``batch``. A row with
    a fault is an arrival only if all its faults are in ``nullable`` columns.
    """
    with ExitStack() as stack:
        landed = _Table(LANDED, scratch, schema, stack)
        rejected = _Table(REJECTED, scratch, FAULTS, stack)
        for given in batches:
            read += given.num_rows
            fault, good = given.column(FAULT), given
            if fault.null_count < given.num_rows:
                needed = [each for each in given.schema.names if each not in (FAULT, *nullable)]
                arrives = reduce(pc.and_, (given.column(each).is_valid() for each in needed))
                good = given.filter(arrives)
                rejected.add(_faults_of(fault, arrives, first + landed.rows, batch))
            landed.add(_numbered(good, first + landed.rows, since_us, schema))
        written = rejected.finish() + landed.finish({READ: str(read).encode()})
    if written:  # the files are complete, because the block has ended
        yield pa.RecordBatch.from_pylist([{**each, "read": read} for each in written])


def _faults_of(fault: pa.Array, arrives: pa.BooleanArray, first: int, batch: int) -> pa.RecordBatch:
    """Return a row of :data:`FAULTS` for each fault, with the arrival number of its row, if any."""
    landed = arrives.to_numpy(zero_copy_only=False)
    seq = pa.array(first + np.cumsum(landed) - 1, mask=~landed)
    bad = [
        {**json.loads(line), "seq": number, "batch": batch}
        for lines, number in zip(fault.to_pylist(), seq.to_pylist(), strict=True)
        if lines is not None
        for line in lines.split("\n")
    ]
    return pa.RecordBatch.from_pylist(bad, FAULTS)


class _Table:
    """A scratch file that a worker writes by row groups."""

    def __init__(self, name: str, folder: Location, schema: pa.Schema, stack: ExitStack) -> None:
        self.rows = self.gone = 0
        self._name = name
        self._held = schema.empty_table()
        file = RowFile(folder / f"{name}-{uuid.uuid4().hex}.parquet", schema)
        self._file = stack.enter_context(file)

    def add(self, rows: pa.RecordBatch) -> None:
        """Take some rows, and write the row groups that are full."""
        self.rows += rows.num_rows
        self.gone += rows.column("seq").null_count
        self._held = pa.concat_tables([self._held, pa.Table.from_batches([rows])])
        if self._held.num_rows >= ROW_GROUP:
            self._write(self._held.num_rows // ROW_GROUP * ROW_GROUP)

    def finish(self, note: Mapping[bytes, bytes] | None = None) -> list[PlainRow]:
        """Write the remaining rows, and ``note`` as metadata; return the file, if it has rows."""
        if not self.rows:
            return []
        # An empty row group has no statistics, which the next landing reads.
        if self._held.num_rows:
            self._write(self._held.num_rows)
        self._file.note(note or {})
        here = {"table": self._name, "file": str(self._file.file)}
        return [{**here, "rows": self.rows, "gone": self.gone}]

    def _write(self, size: int) -> None:
        self._file.write(self._held.slice(0, size), ROW_GROUP)
        self._held = self._held.slice(size)


def _numbered(rows: pa.RecordBatch, first: int, since_us: int, schema: pa.Schema) -> pa.RecordBatch:
    """Return rows as arrivals with the numbers from ``first`` on and times >= ``since_us``."""
    seq = pa.array(np.arange(first, first + rows.num_rows))
    columns = {
        "seq": seq,
        "source_id": seq,
        **dict(zip(rows.schema.names, rows.columns, strict=True)),
        # A clock may have been set back, and the times of a stream may be in any order.
        "arrival_us": pc.max_element_wise(rows.column("arrival_us"), since_us),
    }
    arrays = [columns[field.name].cast(field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
