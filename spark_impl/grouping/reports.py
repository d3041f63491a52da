"""Micro-batches as tasks know them, and reports of tasks to the driver: files that they wrote.

Spark brings a report to the driver when the task ends, however many attempts the task took. A
missing file therefore never passes for a task that had nothing to write: if the driver does not
find a file that was reported, the file is in another folder.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from pyspark import SparkContext
from pyspark.accumulators import AddingAccumulatorParam
from pyspark.sql import DataFrame

from spark_impl.grouping.store import GroupingStore
from spark_impl.runtime.storage import Location


class Report(NamedTuple):
    """The report of a task about a file."""

    file: Location
    kind: str
    number: int
    """The sender or the instance."""
    tuples: int
    """Number of tuples that went into the file."""
    busy_us: int = 0
    """Time of the work, if it was timed."""


_NUMBERING = threading.Lock()
"""Locked while Spark numbers an accumulator, because Spark might give two threads one number."""


class Reports:
    """The files of a micro-batch, and the number of tuples that went into each.

    A task whose output is not read to its end reports nothing.
    """

    def __init__(self, context: SparkContext) -> None:
        nothing: Any = ()  # Spark's types allow numbers only
        with _NUMBERING:
            self._told = context.accumulator(nothing, AddingAccumulatorParam(nothing))

    def begin(self) -> None:
        """Begin a micro-batch: forget the reports of the previous one."""
        self._told.value = ()
        self.is_work_expected = False
        """True if all instances have to report in this micro-batch."""

    def add(self, report: Report) -> None:
        """Add the report of a file; called by tasks."""
        self._told.add((report,))

    def of(self, kind: str) -> dict[int, Report]:
        """Return the reports of a kind, by number; called by the driver.

        If a task ran twice, one of its two files is chosen; both hold the same.
        """
        return {each.number: each for each in sorted(self._told.value) if each.kind == kind}


class MicroBatch(NamedTuple):
    """The place of some rows in a stream."""

    number: int
    """Spark's number of the micro-batch: 0, 1, 2, ..."""
    window: int
    store: GroupingStore
    before: Mapping[int, Location]
    """Files of the instances' states after the micro-batch before, if they have any."""
    reports: Reports


Work: TypeAlias = Callable[[DataFrame, MicroBatch], Sequence[int] | None]
"""Work on the rows of a micro-batch: partition i is that of instance i.

It may return the time of a tuple at each instance, in microseconds; these times balance the next
window. Otherwise the times of :func:`spark_impl.grouping.instances.at_instances` do, if it is used.

Work is the sink of a stream, and both have a part in exactly-once: the stream puts every row into
one numbered micro-batch, and work replaces whatever it wrote under :attr:`MicroBatch.number`.

* After a crash or an error, work is called again with the same number, window and rows, even if it
  had returned. Smaller numbers never come back.
* States of instances follow the same rule: a micro-batch begins with the states that the previous
  number left.

One folder per number, overwritten as a whole, meets these rules, as does a transaction that deletes
the rows of the number and inserts the new ones.
"""
