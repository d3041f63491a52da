"""The stateful operator: blocks of arrivals in, parts of the store's tables out.

State of a task is one value in Spark's state store: the clock in typed columns, everything else
as the bytes of record arrays. It is bounded by the windows that are open or not judged yet and,
with ``dedup``, by the tuples in them.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
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

from model.vocabulary import SlackConfig
from spark_impl.slack.blocks import decode, keys_from_bytes, keys_to_bytes
from spark_impl.slack.kernel import process
from spark_impl.slack.records import IDENTITY, PANE, WINDOW, Clock, TaskState
from spark_impl.slack.sink import Parts

_CLOCK_TYPES: dict[type, DataType] = {int: LongType(), float: DoubleType()}

STATE = StructType(
    [
        *(StructField(name, _CLOCK_TYPES[kind]) for name, kind in Clock.__annotations__.items()),
        StructField("keys", BinaryType()),
        StructField("panes", BinaryType()),
        StructField("windows", BinaryType()),
        StructField("identities", BinaryType()),
    ]
)


def input_schema(groups: StructType) -> StructType:
    """Rows that reach the processor: a block of arrivals, or NULL for a flush."""
    return StructType(
        [*groups, StructField("task", IntegerType()), StructField("block", BinaryType())]
    )


NOTHING = StructType([StructField("task", IntegerType())])
"""Rows that leave the processor: none, everything goes to the sink."""


class SlackProcessor(StatefulProcessor):
    """Adapter between Spark's state store and :func:`spark_impl.slack.kernel.process`."""

    def __init__(self, config: SlackConfig, sink: Parts) -> None:
        self._config = config
        self._sink = sink

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the one state variable."""
        self._state = handle.getValueState("task", STATE)

    def handleInputRows(  # noqa: N802 (the name is Spark's)
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: Any,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        """Process what one micro-batch brought to one task."""
        given = [block for frame in rows for block in frame["block"]]
        keys, arrivals = decode(block for block in given if block is not None)
        flush = any(block is None for block in given)
        stored = self._state.get()
        before = TaskState() if stored is None else _from_store(stored)
        after, output = process(self._config, before, keys, arrivals, flush)
        self._state.update(_to_store(after))
        self._sink.add(key, after.clock, output, flush)
        return iter(())

    def close(self) -> None:
        """Write what the tasks of this partition found."""
        self._sink.write()


def _to_store(state: TaskState) -> tuple[Any, ...]:
    return (
        *state.clock,
        keys_to_bytes(state.keys),
        state.panes.tobytes(),
        state.windows.tobytes(),
        state.identities.tobytes(),
    )


def _from_store(stored: tuple[Any, ...]) -> TaskState:
    size = len(Clock._fields)
    keys, panes, windows, identities = stored[size:]
    return TaskState(
        Clock(*stored[:size]),
        keys_from_bytes(keys),
        np.frombuffer(panes, PANE),
        np.frombuffer(windows, WINDOW),
        np.frombuffer(identities, IDENTITY),
    )
