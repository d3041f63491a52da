"""A workload through tasks, batches, corrections and a flush (docs/slack.md, as a whole).

Rules of this file:

* It only carries things from one part to the next: tasks decide about the stream, plans about
  corrections (``correction``).
* Time does not exist: a batch is processed and corrected before the next one starts.
* A task's state is a value and the same batch makes the same of it, so a ``restart`` needs
  nothing here. A ``kill`` in a batch takes away every plan of that batch after its first small
  step; it is made and carried out again.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Generic, Protocol, TypeVar

from model.vocabulary import Event, Step, Trace, Workload, task_of
from model.windows.correction import History, Plan, Scored, Store, advance, due, plan
from model.windows.query import Query
from model.windows.rules import Correcting

PRODUCER = "model"


class AnyTask(Protocol):
    """One task of the stream side."""

    number: int
    n_accepted: int
    """Arrivals accepted so far."""
    wm_us: int

    def arrive(self, event: Event, batch: int) -> list[Step]:
        """One arrival: the steps it causes, in order."""
        ...

    def flush(self, batch: int) -> list[Step]:
        """Close everything."""
        ...


TaskT = TypeVar("TaskT", bound=AnyTask)
Ended = Callable[[TaskT, int, bool], Iterable[Step]]
"""What a task records after a batch in which it accepted something, or after a flush (True)."""


class TaskPipeline(Generic[TaskT]):
    """One task with its history and its store: all that becomes of its tuples.

    ``scored`` is what corrections record beside revisions; without it late pairs stay pending for
    ever. Tasks may share a ``store``; each sees its own windows in it.
    """

    __slots__ = (
        "_accepted_before",
        "_config",
        "_ended",
        "_history",
        "_rules",
        "_scored",
        "store",
        "task",
    )

    def __init__(
        self,
        config: Query,
        task: TaskT,
        ended: "Ended[TaskT]",
        rules: Correcting,
        scored: Scored | None,
        store: Store | None = None,
    ) -> None:
        self.task = task
        self.store = Store((), ()) if store is None else store
        self._config = config
        self._history = History(config)
        self._ended = ended
        self._rules = rules
        self._scored = scored
        self._accepted_before = 0  # this batch

    def arrive(self, event: Event, batch: int) -> list[Step]:
        """Take one arrival; return the steps it causes, in order."""
        n_accepted = self.task.n_accepted
        steps = self.task.arrive(event, batch)
        if self.task.n_accepted > n_accepted and self._scored is not None:
            self._history.add(event)
        for step in steps:
            self.store.record(step)
        return steps

    def end_batch(self, batch: int, *, is_killed: bool = False) -> list[Step]:
        """End a micro-batch: record the clock, and correct if that is due."""
        steps: list[Step] = []
        if self.task.n_accepted > self._accepted_before:
            self._accepted_before = self.task.n_accepted
            steps += self._ended(self.task, batch, False)
        return steps + self._correct(batch, is_flush=False, is_killed=is_killed)

    def flush(self, batch: int, *, is_killed: bool = False) -> list[Step]:
        """Close and correct until nothing is open and nothing pending."""
        steps = self.task.flush(batch)
        for step in steps:
            self.store.record(step)
        if self.task.n_accepted:
            steps += self._ended(self.task, batch, True)
        return steps + self._correct(batch, is_flush=True, is_killed=is_killed)

    def _correct(self, batch: int, *, is_flush: bool, is_killed: bool) -> list[Step]:
        scored = self._scored
        if scored is None:
            return []
        killed = self._correct_once(batch, is_flush, scored, small_steps=1) if is_killed else []
        return killed + self._correct_once(batch, is_flush, scored)

    def _correct_once(
        self, batch: int, is_flush: bool, scored: Scored, small_steps: int | None = None
    ) -> list[Step]:
        config, number, rules = self._config, self.task.number, self._rules
        reason = due(config, self.store, number, self.task.wm_us, is_flush, rules)
        if reason is None:
            return []
        made: list[Step] = []
        under_way: Plan | None
        under_way = plan(config, self.store, self._history, number, batch, reason, scored)
        while under_way is not None and small_steps != 0:
            under_way, steps = advance(under_way, self.store, rules)
            made += steps
            small_steps = None if small_steps is None else small_steps - 1
        return made


class Pipeline(Generic[TaskT]):
    """All tasks of a query, with the store that they share."""

    def __init__(
        self,
        config: Query,
        tasks: Sequence[TaskT],
        ended: "Ended[TaskT]",
        rules: Correcting,
        scored: Scored | None,
    ) -> None:
        self.store = Store((), ())
        self.tasks = [
            TaskPipeline(config, task, ended, rules, scored, self.store) for task in tasks
        ]

    def run(self, workload: Workload) -> Trace:
        """Do everything that the workload asks for."""
        kills = {fault.at for fault in workload.faults if fault.kind == "kill"}
        task_number = _task_numbers(len(self.tasks))
        batches = tuple(workload.batches())
        steps: list[Step] = []
        for number, arrivals in enumerate(batches):
            for event in arrivals:
                steps += self.tasks[task_number(event.key)].arrive(event, number)
            for task in self.tasks:
                steps += task.end_batch(number, is_killed=number in kills)
        if workload.flush:
            number = len(batches)
            for task in self.tasks:
                steps += task.flush(number, is_killed=number in kills)
        return Trace(PRODUCER, distinct([*steps, *self.store.final()]))


def _task_numbers(tasks: int) -> Callable[[str], int]:
    """``task_of`` with the hash of a key computed once."""
    return lru_cache(maxsize=1 << 16)(lambda key: task_of(key, tasks))


def distinct(steps: Iterable[Step]) -> Iterable[Step]:
    """Return each step once: a pair late twice in a batch, a revision written again after a kill.

    The kind belongs to the step: tuples of different kinds may be equal.
    """
    return {(type(step), step): step for step in steps}.values()
