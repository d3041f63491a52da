"""The stateful operator: arrivals in, records of what a task found in a micro-batch out.

A query has it write the records into the stream tables, all tasks of a partition together, and
gives only on where the tasks stand.

State of a task is one value in Spark's state store. It is bounded by the windows that are open, by
what the room's rule remembers and, with ``dedup``, by the tuples whose identities are known.
"""

from collections.abc import Iterator
from typing import Any, Generic

from pyspark import TaskContext
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, StructField, StructType

from spark_impl.windows.blocks import decode, keys_to_bytes
from spark_impl.windows.kernel import process
from spark_impl.windows.recompute import Who
from spark_impl.windows.records import Output, TaskState
from spark_impl.windows.remembered import from_bytes, to_bytes
from spark_impl.windows.room import ConfigT, Room
from spark_impl.windows.shares import PATH, Given, Shares
from spark_impl.windows.sink import Write
from spark_impl.windows.slots import task_of_slot

STATE_NAME = "task"
"""Name of the one state variable."""
BATCH = "streaming.sql.batchId"
"""Where Spark says to its tasks which micro-batch they belong to."""
STATE = StructType([StructField("state", BinaryType())])
"""The state of a task (:mod:`spark_impl.windows.remembered`), as Spark's state store holds it."""


class WindowProcessor(StatefulProcessor, Generic[ConfigT]):
    """Adapter between Spark's state store and :func:`spark_impl.windows.kernel.process`."""

    def __init__(
        self,
        room: Room[ConfigT],
        config: ConfigT,
        group_columns: tuple[str, ...] = (),
        shares: Shares | None = None,
        write: Write | None = None,
    ) -> None:
        """Rows hold blocks, or with ``shares`` names of files; ``write`` takes the records."""
        self._room = room
        self._config = config
        self._tasks = room.asked(config).tasks
        self._names = [*group_columns, "task"]
        self._shares = shares
        self._write = write
        self._found: list[dict[str, Any]] = []

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the one state variable."""
        self._state = handle.getValueState(STATE_NAME, STATE)

    def handleInputRows(  # noqa: N802 (the name is Spark's)
        self,
        key: Any,
        rows: Iterator[Row],
        timerValues: Any,  # noqa: N803
    ) -> Iterator[Row]:
        """Process what one micro-batch brought to one task."""
        who = (*key[:-1], task_of_slot(int(key[-1]), self._tasks))
        given = self._given(who[-1], rows)
        if not (given.flush or len(given.rows.seq)):
            return  # none of the file is for this task
        stored = self._state.get()
        memory = self._room.memory
        before = TaskState(memory) if stored is None else from_bytes(memory, stored[0])
        after, output = process(self._room, self._config, before, *given, task=who[-1])
        self._state.update((to_bytes(after),))
        row = self._row(who, output, given.flush)
        if self._write is None:
            yield Row(**row)
            return
        self._found.append(row)
        if output.active:
            yield Row(**{name: row[name] for name in (*self._names, *output.progress, "flushed")})

    def close(self) -> None:
        """Write what the tasks of a partition have found."""
        if self._write is None or not self._found:
            return
        context = TaskContext.get()
        batch = None if context is None else context.getLocalProperty(BATCH)
        if context is None or batch is None:
            msg = f"Spark does not say in {BATCH} which micro-batch it is at"
            raise RuntimeError(msg)
        self._write(self._found, int(batch), context.partitionId())

    def _given(self, task: int, rows: Iterator[Row]) -> Given:
        if self._shares is not None:
            return self._shares.of(task, [row[PATH] for row in rows])
        blocks = [row["block"] for row in rows]
        keys, arrivals = decode(block for block in blocks if block is not None)
        return Given(keys, arrivals, flush=any(block is None for block in blocks))

    def _row(self, who: Who, output: Output, flush: bool) -> dict[str, Any]:
        return {
            **dict(zip(self._names, who, strict=True)),
            "active": output.active,
            **output.progress,
            "flushed": flush and output.active,
            "keys": keys_to_bytes(output.keys),
            **{name: each.tobytes() for name, each in output.records.items()},
        }
