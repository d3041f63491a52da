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


class Pipeline(Generic[TaskT]):
    """The tasks with what they have in common: store and trace.

    ``ended`` says what a task records at the end of a batch in which it accepted something, or of
    a flush (True). ``scored`` is what corrections record beside revisions; without it late pairs
    stay pending for ever.
    """

    def __init__(
        self,
        config: Query,
        tasks: Sequence[TaskT],
        ended: Callable[[TaskT, int, bool], Iterable[Step]],
        rules: Correcting,
        scored: Scored | None,
    ) -> None:
        self.config = config
        self.tasks = tasks
        self.histories = [History(config) for _ in tasks]
        self.store = Store((), ())
        self.steps: list[Step] = []
        self._ended = ended
        self._rules = rules
        self._scored = scored

    def run(self, workload: Workload) -> Trace:
        """Everything that the workload asks for."""
        kills = {fault.at for fault in workload.faults if fault.kind == "kill"}
        batches = tuple(workload.batches())
        for number, arrivals in enumerate(batches):
            self.batch(arrivals, number, is_killed=number in kills)
        if workload.flush:
            self.flush(len(batches), is_killed=len(batches) in kills)
        return Trace(PRODUCER, _distinct([*self.steps, *self.store.final()]))

    def batch(self, arrivals: Sequence[Event], batch: int, is_killed: bool) -> None:
        """Stream a micro-batch, then correct whatever is due."""
        task_number = _task_numbers(self.config.tasks)
        before = [task.n_accepted for task in self.tasks]
        for event in arrivals:
            task = self.tasks[task_number(event.key)]
            n_accepted = task.n_accepted
            steps = task.arrive(event, batch)
            if task.n_accepted > n_accepted and self._scored is not None:
                self.histories[task.number].add(event)
            if steps:
                self._record(steps)
        for task in self.tasks:
            if task.n_accepted > before[task.number]:
                self.steps.extend(self._ended(task, batch, False))
        self._correct(batch, is_flush=False, is_killed=is_killed)

    def flush(self, batch: int, is_killed: bool) -> None:
        """Close and correct until nothing is open and nothing pending."""
        for task in self.tasks:
            self._record(task.flush(batch))
            if task.n_accepted:
                self.steps.extend(self._ended(task, batch, True))
        self._correct(batch, is_flush=True, is_killed=is_killed)

    def _record(self, steps: list[Step]) -> None:
        self.steps.extend(steps)
        for step in steps:
            self.store.record(step)

    def _correct(self, batch: int, is_flush: bool, is_killed: bool) -> None:
        if self._scored is None:
            return
        for task in self.tasks:
            if is_killed:
                self._correct_task(task, batch, is_flush, self._scored, small_steps=1)
            self._correct_task(task, batch, is_flush, self._scored)

    def _correct_task(
        self,
        task: TaskT,
        batch: int,
        is_flush: bool,
        scored: Scored,
        small_steps: int | None = None,
    ) -> None:
        reason = due(self.config, self.store, task.number, task.wm_us, is_flush, self._rules)
        if reason is None:
            return
        history = self.histories[task.number]
        under_way: Plan | None
        under_way = plan(self.config, self.store, history, task.number, batch, reason, scored)
        while under_way is not None and small_steps != 0:
            under_way, steps = advance(under_way, self.store, self._rules)
            self.steps.extend(steps)
            small_steps = None if small_steps is None else small_steps - 1


def _task_numbers(tasks: int) -> Callable[[str], int]:
    """``task_of`` with the hash of a key computed once."""
    return lru_cache(maxsize=1 << 16)(lambda key: task_of(key, tasks))


def _distinct(steps: Iterable[Step]) -> Iterable[Step]:
    """Each step once: a pair found late twice in a batch, a revision written again after a kill.

    The kind belongs to the step: tuples of different kinds may be equal.
    """
    return {(type(step), step): step for step in steps}.values()
