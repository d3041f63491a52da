"""The stateful operator: blocks of arrivals in, one row of records a task and micro-batch out.

State of a task is one value in Spark's state store: the clock and the numbers of the room's memory
in typed columns, everything else as the bytes of arrays. It is bounded by the windows that are
open, by what the room's rule remembers and, with ``dedup``, by the tuples whose identities are
known.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Generic

import numpy as np
import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import (
    BinaryType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StructField,
    StructType,
)

from spark_impl.windows.blocks import decode, keys_from_bytes, keys_to_bytes
from spark_impl.windows.kernel import process
from spark_impl.windows.recompute import Who
from spark_impl.windows.records import IDENTITY, PANE, Clock, Output, TaskState
from spark_impl.windows.room import ConfigT, Room
from spark_impl.windows.slots import SLOT, task_of_slot
from spark_impl.windows.tables import records_of, stream_tables

if TYPE_CHECKING:
    import pandas as pd

_NUMBERS: dict[type, DataType] = {int: LongType(), float: DoubleType()}
_ARRAYS = ("keys", "panes", "identities")


def state_schema(room: Room[Any]) -> StructType:
    """The state of a task, as Spark's state store holds it: the clock, then the rest."""
    memory = room.memory._asdict().items()
    return StructType(
        [
            *(StructField(name, LongType()) for name in Clock._fields),
            *(StructField(name, BinaryType()) for name in _ARRAYS),
            *(StructField(name, _NUMBERS.get(type(each), BinaryType())) for name, each in memory),
        ]
    )


def input_schema(groups: StructType) -> StructType:
    """Rows that reach the processor: a block of arrivals, or NULL for a flush.

    The task is there as its slot (:mod:`spark_impl.windows.slots`).
    """
    return StructType(
        [*groups, StructField(SLOT, IntegerType()), StructField("block", BinaryType())]
    )


def output_schema(room: Room[Any], groups: StructType) -> StructType:
    """Rows that leave the processor: where the task stands, then its records."""
    progress = {"active": pa.bool_(), **stream_tables(room)["progress"]}
    records = dict.fromkeys(("keys", *records_of(room)), pa.binary())
    ours = from_arrow_schema(pa.schema([*progress.items(), *records.items()]))
    return StructType([*groups, StructField("task", IntegerType()), *ours])


class WindowProcessor(StatefulProcessor, Generic[ConfigT]):
    """Adapter between Spark's state store and :func:`spark_impl.windows.kernel.process`."""

    def __init__(
        self, room: Room[ConfigT], config: ConfigT, group_columns: tuple[str, ...] = ()
    ) -> None:
        self._room = room
        self._config = config
        self._tasks = room.asked(config).tasks
        self._names = [*group_columns, "task"]

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the one state variable."""
        self._state = handle.getValueState("task", state_schema(self._room))

    def handleInputRows(  # noqa: N802 (the name is Spark's)
        self,
        key: Any,
        rows: "Iterator[pd.DataFrame]",
        timerValues: Any,  # noqa: N803
    ) -> "Iterator[pd.DataFrame]":
        """Process what one micro-batch brought to one task."""
        # Imported here: the process that prepares a query on the driver would wait for it.
        import pandas as pd

        who = (*key[:-1], task_of_slot(int(key[-1]), self._tasks))
        given = [block for frame in rows for block in frame["block"]]
        keys, arrivals = decode(block for block in given if block is not None)
        flush = any(block is None for block in given)
        stored = self._state.get()
        memory = self._room.memory
        before = TaskState(memory) if stored is None else _from_store(memory, stored)
        after, output = process(
            self._room, self._config, before, keys, arrivals, flush, task=who[-1]
        )
        self._state.update(_to_store(after))
        yield pd.DataFrame([self._row(who, output, flush)])

    def close(self) -> None:
        """Nothing to release."""

    def _row(self, who: Who, output: Output, flush: bool) -> dict[str, Any]:
        return {
            **dict(zip(self._names, who, strict=True)),
            "active": output.active,
            **output.progress,
            "flushed": flush and output.active,
            "keys": keys_to_bytes(output.keys),
            **{name: each.tobytes() for name, each in output.records.items()},
        }


def _to_store(state: TaskState) -> tuple[Any, ...]:
    return (
        *state.clock,
        keys_to_bytes(state.keys),
        state.panes.tobytes(),
        state.identities.tobytes(),
        *(each.tobytes() if isinstance(each, np.ndarray) else each for each in state.memory),
    )


def _from_store(empty: Any, stored: tuple[Any, ...]) -> TaskState:
    """The state from the store; ``empty`` is a memory with the dtypes of all arrays."""
    size = len(Clock._fields)
    keys, panes, identities, *memory = stored[size:]
    parts = (
        np.frombuffer(part, like.dtype) if isinstance(like, np.ndarray) else part
        for part, like in zip(memory, empty, strict=True)
    )
    return TaskState(
        empty._make(parts),
        Clock(*stored[:size]),
        keys_from_bytes(keys),
        np.frombuffer(panes, PANE),
        np.frombuffer(identities, IDENTITY),
    )
