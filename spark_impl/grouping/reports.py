"""Reports of tasks to the driver: the files that they have written.

Spark brings a report to the driver when the task ends, however many attempts the task took. A
missing file therefore never passes for a task that had nothing to write: if the driver does not
find a file that was reported, the file is in another folder.
"""

import threading
from typing import TypeAlias

from pyspark import SparkContext
from pyspark.accumulators import AccumulatorParam

from spark_impl.runtime.storage import Location

_Tuples: TypeAlias = dict[Location, int]
"""Number of tuples, by file."""
_NUMBERING = threading.Lock()
"""Locked while Spark numbers an accumulator, because Spark might give two threads one number."""


class _Union(AccumulatorParam[_Tuples]):
    """Union of the reports of several tasks."""

    def zero(self, value: _Tuples) -> _Tuples:
        """Return the value before the first report."""
        return {}

    def addInPlace(  # noqa: N802 (the name is Spark's)
        self, value1: _Tuples, value2: _Tuples
    ) -> _Tuples:
        """Return the reports of both; a task that ran twice reports the same files twice."""
        return {**value1, **value2}


class Reports:
    """The number of tuples that went into each file of a micro-batch.

    A task whose output is not read to its end reports nothing.
    """

    def __init__(self, context: SparkContext) -> None:
        with _NUMBERING:
            self._reported = context.accumulator(_Tuples(), _Union())
        self.is_work_expected = False
        """Whether all instances have to report in this micro-batch."""

    def begin(self) -> None:
        """Forget the reports of the previous micro-batch."""
        self._reported.value = {}
        self.is_work_expected = False

    def tell(self, file: Location, tuples: int) -> None:
        """Report a file; called by tasks."""
        self._reported.add({file: tuples})

    def tuples_of(self, file: Location) -> int | None:
        """Return the number of tuples of a file, ``None`` without a report; called by the driver.

        Files are told apart by their addresses, which are the same for the driver and tasks.
        """
        return self._reported.value.get(file)
