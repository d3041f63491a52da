"""What instances do with their tuples of a micro-batch: with a state that lasts, and timed.

Rules of this file:

* What an instance holds follows from what it held before and its tuples: whoever does the work
  again, after a crash or as a second attempt, begins with the state before the micro-batch.
* An instance is busy from the call of its work to the return, waiting for tuples not included.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from spark_impl.grouping.routing import partition_id
from spark_impl.grouping.store import Store, Worked
from spark_impl.runtime.histories import InputProblem


class MicroBatch(NamedTuple):
    """Which rows these are."""

    number: int
    """Of the micro-batch, without those that had no rows: 0, 1, 2, ..."""
    window: int
    store: Store


Step: TypeAlias = Callable[[pa.Table, pa.Table | None], tuple[pa.Table, pa.Table | None]]
"""Work of one instance: its rows of a micro-batch and its state, to what is found and the state.

It is done once a micro-batch, without rows too; before the first one there is no state.
"""


def at_instances(rows: DataFrame, batch: MicroBatch, step: Step, found: pa.Schema) -> DataFrame:
    """Do ``step`` at every instance, once a micro-batch; give the columns ``found``.

    ``rows`` are those that the work of :meth:`spark_impl.grouping.Grouping.stream` is given. State
    and times go to the store of the stream when the result is read: the next micro-batch begins
    with the state, the next window is balanced by the times. ``step`` has to be deterministic, but
    for the time that it takes.
    """
    given = to_arrow_schema(rows.schema, timezone="UTC")
    task = partial(_run, batch=batch, step=step, given=given, expected=found)
    return rows.mapInArrow(task, from_arrow_schema(found))


def _run(
    batches: Iterable[pa.RecordBatch],
    batch: MicroBatch,
    step: Step,
    given: pa.Schema,
    expected: pa.Schema,
) -> Iterator[pa.RecordBatch]:
    held = list(batches)
    # The session's time zone and kinds of strings are those of the rows, not of the schema.
    table = pa.Table.from_batches(held).cast(given) if held else given.empty_table()
    instance = partition_id()
    state = batch.store.load_worked(batch.number - 1, instance).state
    begun_ns = time.perf_counter_ns()
    found, state = step(table, state)
    busy_us = (time.perf_counter_ns() - begun_ns) // 1000 if len(table) else 0
    if found.schema.names != expected.names:
        msg = f"the work at instance {instance} gives {found.schema.names}, not {expected.names}"
        raise InputProblem(msg)
    batch.store.write_worked(batch.number, instance, Worked(len(table), busy_us, state))
    yield from found.cast(expected).to_batches()


def carry_over(store: Store, batch: int, instances: int) -> None:
    """Instances that did nothing in a micro-batch keep their state.

    Raises :class:`InputProblem` when some worked and others did not, which would lose their tuples.
    """
    worked = sum(store.instance_path(batch, each).exists() for each in range(instances))
    if worked not in (0, instances):
        msg = (
            f"what the instances found was read of {worked} of {instances} alone;"
            " the work of a micro-batch has to read all of it"
        )
        raise InputProblem(msg)
    for instance in range(instances):
        before, after = (store.instance_path(each, instance) for each in (batch - 1, batch))
        if before.exists() and not after.exists():
            state = store.load_worked(batch - 1, instance).state
            store.write_worked(batch, instance, Worked(0, 0, state))
