"""Stateful operators whose tasks write the tables of a store, and return reports only.

The state of a key is one binary: with a column for each part, Spark would analyse their types and
compile code for them in every micro-batch and on every partition.
"""

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, StructField, StructType

from spark_impl.runtime.states import from_bytes, to_bytes
from spark_impl.runtime.stores import TableStore

STATE_NAME = "state"
"""Name of the one state variable, and of its one column."""
BATCH = "streaming.sql.batchId"
"""Local property in which Spark gives its tasks the number of their micro-batch."""
_STATE = StructType([StructField(STATE_NAME, BinaryType())])
StateT = TypeVar("StateT")
OutputT = TypeVar("OutputT")
Write: TypeAlias = Callable[[Sequence[Any], int, str], None]
"""Function that writes the output of a partition, given the micro-batch and a name for files."""


class Operator(StatefulProcessor, Generic[StateT, OutputT]):
    """An operator that keeps a state for each key, and writes its output by partitions."""

    def __init__(self, write: Write | None = None) -> None:
        """Let ``write`` take the output; without it, the output stays in :attr:`outputs`."""
        self._write = write
        self.outputs: list[OutputT] = []
        """Output of the keys of a partition in one micro-batch."""
        self.attempt = ""
        """Name of the files of this attempt at a task."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the one state variable."""
        self.attempt = uuid.uuid4().hex  # every attempt at a task writes files of its own
        self._state = handle.getValueState(STATE_NAME, _STATE)

    def state(self, new: StateT) -> StateT:
        """Return the state of the present key; ``new`` if it has none."""
        stored = self._state.get()
        if stored is None:
            return new
        found: StateT = from_bytes(stored[0])
        return found

    def keep(self, state: StateT) -> None:
        """Keep the state of the present key."""
        self._state.update((to_bytes(state),))

    def close(self) -> None:
        """Write the output of all keys of a partition."""
        if self._write is None or not self.outputs:
            return
        context = TaskContext.get()
        assert context is not None  # only tasks of Spark's write
        batch = context.getLocalProperty(BATCH)
        assert batch is not None  # Spark sets it
        self._write(self.outputs, int(batch), self.attempt)


def row_of(values: Mapping[str, object]) -> Row:
    """Return a row with columns of any names; ``Row(**values)`` refuses ``cls``."""
    made: Row = Row(*values)(*values.values())
    return made


def table_writer(
    store: TableStore, tables_of: Callable[[Sequence[Any]], Mapping[str, pa.Table]]
) -> Write:
    """Return a function that writes the tables of outputs to a store, on any machine."""

    def write(outputs: Sequence[Any], batch: int, name: str) -> None:
        for kind, table in tables_of(outputs).items():
            store.write(kind, batch, table, name)

    return write
