"""The state operator of the Spark side as the machine of a simulated task."""

from collections.abc import Sequence
from typing import Any

from model.vocabulary import Event, Step
from model.vocabulary.windows import Final
from sim.windows.machine import WindowGauges
from spark_impl.windows.room import WindowRoom
from spark_impl.windows.system import TaskInProcess


class SparkMachine:
    """One task of the pipeline in process; it processes a micro-batch when that ends.

    Corrections need Spark, so its steps are those of the stream part, and it has no final answers.
    """

    def __init__(self, room: WindowRoom[Any], config: Any, number: int) -> None:
        self._task = TaskInProcess(room, config, number)
        self._events: list[Event] = []
        self._batch = 0  # number of the micro-batch of these events
        self._has_begun = False

    def arrive(self, event: Event, batch: int) -> Sequence[Step]:
        """Keep an arrival until its micro-batch is over."""
        self._events.append(event)
        self._batch = batch
        return ()

    def end_batch(self, batch: int) -> Sequence[Step]:
        """Process the micro-batch."""
        events, self._events = self._events, []
        self._has_begun |= bool(events)
        return self._task.batch(events, batch) if events else ()

    def flush(self, batch: int) -> Sequence[Step]:
        """End the stream; a task that never got a tuple does not exist."""
        return self._task.flush(batch) if self._has_begun else ()

    def final(self) -> Sequence[Final]:
        """Return no answers, because corrections make them."""
        return ()

    def gauges(self) -> WindowGauges | None:
        """Return no gauges, because the position of the task is hidden in its state."""
        return None

    def saved(self) -> object:
        """Return the operator's state, between two micro-batches."""
        assert not self._events
        return self._task.saved(), self._has_begun

    def restore(self, saved: object) -> None:
        """Restore a state; forget the attempt at the current micro-batch."""
        assert isinstance(saved, tuple)
        if self._events:
            self._task.batch(self._events, self._batch)
        state, self._has_begun = saved
        self._events = []
        self._task.restore(state)
