"""Machine of a task of a windowed room, called when a worker has served an item.

Rules of this file:

* The machine decides everything about windows; the simulation decides when it is called.
* The model's pipeline is one machine, the state operator of the Spark side is another.
"""

from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from model.vocabulary import Event, Step
from model.vocabulary.windows import Final
from model.windows.machine import Insertion, WindowTask
from model.windows.pipeline import TaskPipeline
from model.windows.state import BEFORE_TIME_US
from sim.timed_room import Restorable

TaskT = TypeVar("TaskT", bound=WindowTask[Any])
QueryT = TypeVar("QueryT")


class WindowGauges(NamedTuple):
    """Gauges of a task, as a dashboard shows them."""

    wait_us: float
    """Wait for stragglers: K, or the wait of room ``watermark``."""
    watermark_us: float
    share: float
    """Share of the longest wait, from which ``wait_us`` follows."""


class WindowMachine(Restorable, Protocol):
    """One task of a windowed room."""

    def arrive(self, event: Event, batch: int) -> Sequence[Step]:
        """Take one arrival; return the steps that can be seen now."""

    def insert(self, insertion: Insertion, batch: int) -> Sequence[Step]:
        """Take a watermark from upstream; return the steps that can be seen now."""

    def end_batch(self, batch: int) -> Sequence[Step]:
        """End a micro-batch; return the steps that can be seen now, corrections included."""

    def flush(self, batch: int) -> Sequence[Step]:
        """End the stream; return the steps that can be seen now."""

    def final(self) -> Sequence[Final]:
        """Return the answer of every window that has one."""

    def gauges(self) -> WindowGauges | None:
        """Return the gauges; ``None`` before the first tuple, and if the machine hides them.

        The gauges may change only with ``arrive``, ``insert``, ``flush`` and ``restore``.
        """


MachineOf: TypeAlias = Callable[[QueryT, int], WindowMachine]
"""Function from a query and the number of a task to the machine of that task."""


class ModelWindowMachine(Generic[TaskT]):
    """The model's pipeline of one task as a :class:`WindowMachine`.

    ``make`` builds the pipeline as it is before its first tuple. A checkpoint holds the number of
    inputs so far: the machine restores it by taking these inputs again. A copy of everything at
    every checkpoint would take longer than the run. The first checkpoint precedes the first input.
    """

    __slots__ = ("_gauges", "_inputs", "_is_flushed", "_make", "_pipeline")

    def __init__(
        self, make: Callable[[], TaskPipeline[TaskT]], gauges: Callable[[TaskT], WindowGauges]
    ) -> None:
        self._make, self._gauges = make, gauges
        self._pipeline = make()
        self._is_flushed = False
        self._inputs: list[tuple[str, tuple[Any, ...]]] | None = None
        """Method and arguments of each input; ``None`` until the first checkpoint."""

    def arrive(self, event: Event, batch: int) -> Sequence[Step]:
        """Take one arrival; return the steps that can be seen now."""
        self._note("arrive", event, batch)
        return self._pipeline.arrive(event, batch)

    def insert(self, insertion: Insertion, batch: int) -> Sequence[Step]:
        """Take a watermark from upstream; return the steps that can be seen now."""
        self._note("insert", insertion, batch)
        return self._pipeline.insert(insertion, batch)

    def end_batch(self, batch: int) -> Sequence[Step]:
        """End a micro-batch; return the steps that can be seen now, corrections included."""
        self._note("end_batch", batch)
        return self._pipeline.end_batch(batch)

    def flush(self, batch: int) -> Sequence[Step]:
        """End the stream; return the steps that can be seen now."""
        self._note("flush", batch)
        self._is_flushed = True
        return self._pipeline.flush(batch)

    def _note(self, method: str, *given: Any) -> None:
        if self._inputs is not None:
            self._inputs.append((method, given))

    def final(self) -> Sequence[Final]:
        """Return the answer of every window that has one."""
        return self._pipeline.store.final()

    def gauges(self) -> WindowGauges | None:
        """Return the gauges from the task's first tuple and watermark on, until its flush."""
        task = self._pipeline.task
        is_waiting = not task.n_accepted or task.wm_us == BEFORE_TIME_US
        return None if self._is_flushed or is_waiting else self._gauges(task)

    def saved(self) -> object:
        """Return the content of a checkpoint."""
        if self._inputs is None:
            assert not self._pipeline.task.n_accepted, "a tuple came before the first checkpoint"
            self._inputs = []
        return len(self._inputs)

    def restore(self, saved: object) -> None:
        """Restore the state of a checkpoint; forget everything else."""
        assert isinstance(saved, int)
        assert self._inputs is not None
        inputs, self._inputs = self._inputs[:saved], []
        self._pipeline, self._is_flushed = self._make(), False
        for method, given in inputs:
            getattr(self, method)(*given)
