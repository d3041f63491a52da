"""Stateful operator of windowed queries, from arrivals to the records of tasks.

In a query, the operator writes the records into the stream tables, and returns only the progress of
the tasks. The state of a task is bounded by the open windows, the memory of the room's rule and,
with ``dedup``, the tuples whose identities are known.
"""

from collections.abc import Iterator, Sequence
from typing import Generic, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Row

from spark_impl.runtime.arrays import PlainRow, Records, Values
from spark_impl.runtime.operators import Operator, Write, row_of
from spark_impl.runtime.sources import PATH
from spark_impl.runtime.stores import ATTEMPT
from spark_impl.windows.arrival_files import FLAWS, FileShares, TaskInput
from spark_impl.windows.arrivals import REASONS
from spark_impl.windows.blocks import decode, task_of_slot
from spark_impl.windows.kernel import process
from spark_impl.windows.records import NO_CLOCK, Output, TaskState
from spark_impl.windows.room import ConfigT, WindowRoom, WindowSettings
from spark_impl.windows.store import TaskId, WindowStore, record_types, written_column

_ALL_REASONS = np.array(["", *REASONS, *FLAWS], dtype=object)


class TaskOutput(NamedTuple):
    """The output of one task in one micro-batch."""

    who: TaskId
    output: Output
    flushed: bool

    def progress(self, by: Sequence[str]) -> PlainRow:
        """Return the task and its progress as a row; ``by`` are the columns of the task."""
        who = dict(zip(by, self.who, strict=True))
        return {**who, **self.output.progress, "flushed": self.flushed}


class WindowProcessor(Operator[TaskState, TaskOutput], Generic[ConfigT]):
    """Connects Spark's state store with :func:`spark_impl.windows.kernel.process`."""

    def __init__(
        self,
        room: WindowRoom[ConfigT],
        config: ConfigT,
        group_columns: tuple[str, ...] = (),
        shares: FileShares | None = None,
        write: Write | None = None,
    ) -> None:
        """Set up the operator of a query whose rows hold blocks or, with ``shares``, file names."""
        super().__init__(write)
        self._room = room
        self._config = config
        self._names = [*group_columns, "task"]
        self._shares = shares

    def handleInputRows(  # noqa: N802 (the name is Spark's)
        self,
        key: Values,
        rows: Iterator[Row],
        timerValues: object,  # noqa: N803 (the name is Spark's)
    ) -> Iterator[Row]:
        """Process the input of one task in one micro-batch."""
        who = (*key[:-1], task_of_slot(int(key[-1]), self._config.tasks))
        given = self._input(who[-1], rows)
        if not (given.flush or len(given.rows.seq)):
            return  # nothing in the file belongs to this task
        before = self.state(TaskState(self._room.memory))
        after, output = process(self._room, self._config, before, *given, task=who[-1])
        self.keep(after)
        done = TaskOutput(who, output, given.flush and output.active)
        self.outputs.append(done)
        written = {written_column(name): len(each) for name, each in output.records.items()}
        progress = {"active": output.active, **done.progress(self._names)}
        yield row_of({**progress, **written, **output.taken._asdict(), ATTEMPT: self.attempt})

    def _input(self, task: int, rows: Iterator[Row]) -> TaskInput:
        if self._shares is not None:
            return self._shares.read(task, [row[PATH] for row in rows])
        blocks = [row["block"] for row in rows]
        keys, arrivals = decode(block for block in blocks if block is not None)
        return TaskInput(keys, arrivals, flush=any(block is None for block in blocks))


def output_tables(
    store: WindowStore, settings: WindowSettings, outputs: Sequence[TaskOutput]
) -> dict[str, pa.Table]:
    """Return the stream tables of the output of some tasks, by name."""
    kinds = store.kinds
    tables = {
        name: _table(store, settings, outputs, name, kinds[name])
        for name in record_types(store.room)
    }
    moved = [each.progress(store.by) for each in outputs if each.output.active]
    return {**tables, "progress": pa.Table.from_pylist(moved, kinds["progress"])}


def _table(
    store: WindowStore,
    settings: WindowSettings,
    outputs: Sequence[TaskOutput],
    name: str,
    schema: pa.Schema,
) -> pa.Table:
    """Return one table from the records of all tasks."""
    arrays = [each.output.records[name] for each in outputs]
    owner = pa.array(np.repeat(np.arange(len(arrays)), [len(each) for each in arrays]))
    records: Records = np.concatenate(arrays)
    columns = {
        by: pa.array([each.who[place] for each in outputs], schema.field(by).type).take(owner)
        for place, by in enumerate(store.by)
    }
    if "key" in schema.names:
        columns["key"] = _keys([each.output.keys for each in outputs], arrays)
    for field in schema:
        if field.name in columns:
            continue
        if field.name == "start_us":
            column = records["first" if name == "late" else "j"] * settings.slide_us
        elif field.name == "reason":
            column = _ALL_REASONS[records["reason"]]
        else:
            column = records[field.name]
        columns[field.name] = pa.array(np.ascontiguousarray(column), field.type)
    if name == "rejected":
        unknown = pa.array(np.ascontiguousarray(records["event_time_us"] == NO_CLOCK))
        for each in ("key", "event_time_us"):
            columns[each] = pc.if_else(unknown, None, columns[each])
        flawed = pa.array(np.ascontiguousarray(records["reason"] > len(REASONS)))
        columns["value"] = pc.if_else(flawed, None, columns["value"])
    return pa.table([columns[name] for name in schema.names], schema=schema)


def _keys(texts: list[tuple[str, ...]], arrays: list[Records]) -> pa.ChunkedArray:
    chunks = [
        pa.array(keys, pa.string()).take(pa.array(np.ascontiguousarray(records["key"])))
        for keys, records in zip(texts, arrays, strict=True)
        if len(records)
    ]
    return pa.chunked_array(chunks, pa.string())
