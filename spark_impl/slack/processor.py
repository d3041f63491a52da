"""The stateful operator: blocks of arrivals in, one row of records a task and micro-batch out.

State of a task is one value in Spark's state store: the clock in typed columns, everything else
as the bytes of record arrays. It is bounded by the windows that are open or not judged yet and,
with ``dedup``, by the tuples in them.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StructField,
    StructType,
)

from model.vocabulary import SlackConfig
from spark_impl.slack import quality
from spark_impl.slack.blocks import decode, keys_from_bytes, keys_to_bytes
from spark_impl.slack.kernel import process
from spark_impl.slack.recompute import Who
from spark_impl.slack.records import HELD, IDENTITY, PANE, WINDOW, Clock, Output, TaskState
from spark_impl.slack.slots import SLOT, task_of_slot

if TYPE_CHECKING:
    import pandas as pd

_CLOCK_TYPES: dict[type, DataType] = {int: LongType(), float: DoubleType()}

STATE = StructType(
    [
        *(StructField(name, _CLOCK_TYPES[kind]) for name, kind in Clock.__annotations__.items()),
        StructField("keys", BinaryType()),
        StructField("panes", BinaryType()),
        StructField("windows", BinaryType()),
        StructField("identities", BinaryType()),
        StructField("held", BinaryType()),
        StructField("values", BinaryType()),
    ]
)

OUTPUT = (
    StructField("active", BooleanType()),
    StructField("flushed", BooleanType()),
    StructField("t_max_us", LongType()),
    StructField("max_delay_us", LongType()),
    StructField("slack_us", LongType()),
    StructField("wm_us", LongType()),
    StructField("alpha", DoubleType()),
    StructField("seq", LongType()),
    StructField("keys", BinaryType()),
    StructField("result", BinaryType()),
    StructField("late", BinaryType()),
    StructField("judged", BinaryType()),
    StructField("rejected", BinaryType()),
)
"""Columns of an output row behind the grouping columns and ``task``: where the task stands, then
its records of the micro-batch."""


def input_schema(groups: StructType) -> StructType:
    """Rows that reach the processor: a block of arrivals, or NULL for a flush.

    The task is there as its slot (:mod:`spark_impl.slack.slots`).
    """
    return StructType(
        [*groups, StructField(SLOT, IntegerType()), StructField("block", BinaryType())]
    )


def output_schema(groups: StructType) -> StructType:
    """Rows that leave the processor."""
    return StructType([*groups, StructField("task", IntegerType()), *OUTPUT])


class SlackProcessor(StatefulProcessor):
    """Adapter between Spark's state store and :func:`spark_impl.slack.kernel.process`."""

    def __init__(self, config: SlackConfig, group_columns: tuple[str, ...] = ()) -> None:
        self._config = config
        self._names = [*group_columns, "task"]

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the one state variable."""
        self._state = handle.getValueState("task", STATE)

    def handleInputRows(  # noqa: N802 (the name is Spark's)
        self,
        key: Any,
        rows: "Iterator[pd.DataFrame]",
        timerValues: Any,  # noqa: N803
    ) -> "Iterator[pd.DataFrame]":
        """Process what one micro-batch brought to one task."""
        # Imported here: the process that prepares a query on the driver would wait for it.
        import pandas as pd

        who = (*key[:-1], task_of_slot(int(key[-1]), self._config.tasks))
        given = [block for frame in rows for block in frame["block"]]
        keys, arrivals = decode(block for block in given if block is not None)
        flush = any(block is None for block in given)
        stored = self._state.get()
        before = TaskState() if stored is None else _from_store(stored)
        after, output = process(self._config, before, keys, arrivals, flush, who[-1])
        self._state.update(_to_store(after))
        yield pd.DataFrame([self._row(who, after.clock, output, flush)])

    def close(self) -> None:
        """Nothing to release."""

    def _row(self, who: Who, clock: Clock, output: Output, flush: bool) -> dict[str, Any]:
        slack = quality.slack_us(self._config, clock.alpha, np.array([clock.max_delay_us]))
        return {
            **dict(zip(self._names, who, strict=True)),
            "active": output.active,
            "flushed": flush and output.active,
            "t_max_us": clock.t_max_us,
            "max_delay_us": clock.max_delay_us,
            "slack_us": int(slack[0]),
            "wm_us": clock.wm_us,
            "alpha": clock.alpha,
            "seq": clock.seq,
            "keys": keys_to_bytes(output.keys),
            "result": output.result.tobytes(),
            "late": output.late.tobytes(),
            "judged": output.judged.tobytes(),
            "rejected": output.rejected.tobytes(),
        }


def _to_store(state: TaskState) -> tuple[Any, ...]:
    return (
        *state.clock,
        keys_to_bytes(state.keys),
        state.panes.tobytes(),
        state.windows.tobytes(),
        state.identities.tobytes(),
        state.held.tobytes(),
        state.values.tobytes(),
    )


def _from_store(stored: tuple[Any, ...]) -> TaskState:
    size = len(Clock._fields)
    keys, panes, windows, identities, held, values = stored[size:]
    return TaskState(
        Clock(*stored[:size]),
        keys_from_bytes(keys),
        np.frombuffer(panes, PANE),
        np.frombuffer(windows, WINDOW),
        np.frombuffer(identities, IDENTITY),
        np.frombuffer(held, HELD),
        np.frombuffer(values),
    )
