"""Reports of tasks to the driver: the files that they have written.

Spark brings a report to the driver when the task ends, however many attempts it took. So nobody has
to conclude from the absence of a file that there was nothing to write: a file that was reported and
that the driver does not find is in another folder.
"""

import threading
from typing import TypeAlias

from pyspark import SparkContext
from pyspark.accumulators import AccumulatorParam

from spark_impl.runtime.storage import Location

_Told: TypeAlias = dict[Location, int]
_MAKING = threading.Lock()
"""Locked while Spark numbers an accumulator: it might give two threads the same number."""


class _Union(AccumulatorParam[_Told]):
    """Puts dictionaries together."""

    def zero(self, value: _Told) -> _Told:
        """Return the value before the first report."""
        return {}

    def addInPlace(  # noqa: N802 (the name is Spark's)
        self, value1: _Told, value2: _Told
    ) -> _Told:
        """Return both together; a task that ran twice reports the same twice."""
        return {**value1, **value2}


class Reports:
    """The number of tuples that went into each file of a micro-batch.

    A task whose output is not read to its end reports nothing.
    """

    def __init__(self, context: SparkContext) -> None:
        with _MAKING:
            self._told = context.accumulator(_Told(), _Union())
        self.is_work_expected = False
        """Whether all instances have to report in this micro-batch."""

    def begin(self) -> None:
        """Forget the micro-batch before."""
        self._told.value = {}
        self.is_work_expected = False

    def tell(self, file: Location, tuples: int) -> None:
        """Report a file; called by tasks."""
        self._told.add({file: tuples})

    def tuples_of(self, file: Location) -> int | None:
        """Return the number of tuples of a file, ``None`` without a report; called by the driver.

        Files are told apart by their addresses, which are the same for the driver and tasks.
        """
        return self._told.value.get(file)
