"""The machine of a task: what the simulation calls when a worker has served something.

Rules of this file:

* The machine decides everything about windows; the simulation decides when it is called.
* The model's pipeline is one machine, the state operator of the Spark side is another.
"""

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from model.vocabulary import Event, Step
from model.vocabulary.answers import Final
from model.windows.pipeline import AnyTask, TaskPipeline

TaskT = TypeVar("TaskT", bound=AnyTask)
QueryT = TypeVar("QueryT")


class Gauges(NamedTuple):
    """Where a task stands: what a dashboard shows."""

    wait_us: float
    """How long it waits for stragglers: K, or the wait of room ``watermark``."""
    watermark_us: float
    share: float
    """The share of the longest wait, from which ``wait_us`` follows."""


class Machine(Protocol):
    """One task of a windowed room."""

    def arrive(self, event: Event, batch: int) -> Sequence[Step]:
        """Take one arrival; return the steps that can be seen now."""
        ...

    def end_batch(self, batch: int) -> Sequence[Step]:
        """End a micro-batch; return the steps that can be seen now, corrections included."""
        ...

    def flush(self, batch: int) -> Sequence[Step]:
        """End the stream; return the steps that can be seen now."""
        ...

    def final(self) -> Sequence[Final]:
        """Return the answer of every window that has one."""
        ...

    def gauges(self) -> Gauges | None:
        """Return where the task stands; ``None`` before its first tuple, and where that is hidden.

        The answer may change only with ``arrive``, ``flush`` and ``restore``.
        """
        ...

    def saved(self) -> object:
        """Return what a checkpoint holds."""
        ...

    def restore(self, saved: object) -> None:
        """Forget everything and go on from a checkpoint."""
        ...


MachineOf: TypeAlias = Callable[[QueryT, int], Machine]
"""Makes the machine of a task, given the query and the number of the task."""


class ModelMachine(Generic[TaskT]):
    """The model's pipeline of one task as a :class:`Machine`."""

    __slots__ = ("_gauges", "_is_flushed", "_pipeline", "arrive", "end_batch")

    def __init__(self, pipeline: TaskPipeline[TaskT], gauges: Callable[[TaskT], Gauges]) -> None:
        self._gauges = gauges
        self._go_on_with(pipeline, is_flushed=False)

    def flush(self, batch: int) -> Sequence[Step]:
        """End the stream; return the steps that can be seen now."""
        self._is_flushed = True
        return self._pipeline.flush(batch)

    def final(self) -> Sequence[Final]:
        """Return the answer of every window that has one."""
        return self._pipeline.store.final()

    def gauges(self) -> Gauges | None:
        """Return where the task stands, from its first tuple until it is flushed."""
        task = self._pipeline.task
        return None if self._is_flushed or not task.n_accepted else self._gauges(task)

    def saved(self) -> object:
        """Return what a checkpoint holds."""
        return deepcopy(self._pipeline), self._is_flushed

    def restore(self, saved: object) -> None:
        """Forget everything and go on from a checkpoint."""
        assert isinstance(saved, tuple)
        pipeline, is_flushed = deepcopy(saved)
        self._go_on_with(pipeline, is_flushed=is_flushed)

    def _go_on_with(self, pipeline: TaskPipeline[TaskT], *, is_flushed: bool) -> None:
        self._pipeline, self._is_flushed = pipeline, is_flushed
        self.arrive, self.end_batch = pipeline.arrive, pipeline.end_batch
