"""A workload through tasks, batches, corrections and a flush (docs/slack.md, as a whole).

Rules of this file:

* It only carries things from one part to the next: tasks decide about the stream
  (``machine``), plans about corrections (``correction``).
* Time does not exist: a batch is processed and corrected before the next one starts.
* A task's state is a value and the same batch makes the same of it, so a ``restart`` needs
  nothing here. A ``kill`` in a batch takes away every plan of that batch after its first small
  step; it is made and carried out again.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from model.slack.correction import History, Plan, Store, advance, due, plan
from model.slack.machine import Task
from model.slack.rules import RULES, Rules
from model.vocabulary import Event, SlackConfig, Step, System, Trace, Workload, task_of

PRODUCER = "model"


class Pipeline:
    """The tasks with what they have in common: store and trace."""

    def __init__(self, config: SlackConfig, rules: Rules) -> None:
        self.config = config
        self.rules = rules
        self.tasks = [Task(config, number, rules) for number in range(config.tasks)]
        self.histories = [History(config) for _ in self.tasks]
        self.store = Store((), ())
        self.steps: list[Step] = []

    def batch(self, arrivals: Sequence[Event], batch: int, is_killed: bool) -> None:
        """Stream a micro-batch, then correct whatever is due."""
        task_number = _task_numbers(self.config.tasks)
        before = [task.n_accepted for task in self.tasks]
        for event in arrivals:
            task = self.tasks[task_number(event.key)]
            n_accepted = task.n_accepted
            steps = task.arrive(event, batch)
            if task.n_accepted > n_accepted:
                self.histories[task.number].add(event)
            if steps:
                self._record(steps)
        active = [task for task in self.tasks if task.n_accepted > before[task.number]]
        self.steps.extend(task.progress(batch) for task in active)
        self._correct(batch, is_flush=False, is_killed=is_killed)

    def flush(self, batch: int, is_killed: bool) -> None:
        """Close, judge and correct until nothing is open and nothing pending."""
        for task in self.tasks:
            self._record(task.flush(batch))
            if task.n_accepted:
                self.steps.append(task.progress(batch))
        self._correct(batch, is_flush=True, is_killed=is_killed)

    def _record(self, steps: list[Step]) -> None:
        self.steps.extend(steps)
        for step in steps:
            self.store.record(step)

    def _correct(self, batch: int, is_flush: bool, is_killed: bool) -> None:
        for task in self.tasks:
            if is_killed:
                self._correct_task(task, batch, is_flush, small_steps=1)
            self._correct_task(task, batch, is_flush)

    def _correct_task(
        self, task: Task, batch: int, is_flush: bool, small_steps: int | None = None
    ) -> None:
        reason = due(self.config, self.store, task.number, task.wm_us, is_flush, self.rules)
        if reason is None:
            return
        history = self.histories[task.number]
        under_way: Plan | None
        under_way = plan(self.config, self.store, history, task.number, batch, reason)
        while under_way is not None and small_steps != 0:
            under_way, steps = advance(under_way, self.store, self.rules)
            self.steps.extend(steps)
            small_steps = None if small_steps is None else small_steps - 1


def run(workload: Workload, rules: Rules = RULES) -> Trace:
    """The reference trace of a workload.

    Raises ``ValueError`` with one sentence for a configuration that cannot be.
    """
    pipeline = Pipeline(SlackConfig.from_json(workload.config), rules)
    kills = {fault.at for fault in workload.faults if fault.kind == "kill"}
    batches = tuple(workload.batches())
    for number, arrivals in enumerate(batches):
        pipeline.batch(arrivals, number, is_killed=number in kills)
    if workload.flush:
        pipeline.flush(len(batches), is_killed=len(batches) in kills)
    return Trace(PRODUCER, _distinct([*pipeline.steps, *pipeline.store.final()]))


def system(rules: Rules) -> System:
    """A System that follows these rules."""

    def run_with_rules(workload: Workload, /) -> Trace:
        return run(workload, rules)

    return run_with_rules


def make_system() -> System:
    """The reference as a System."""
    return system(RULES)


def _task_numbers(tasks: int) -> Callable[[str], int]:
    """``task_of`` with the hash of a key computed once."""
    return lru_cache(maxsize=1 << 16)(lambda key: task_of(key, tasks))


def _distinct(steps: Iterable[Step]) -> Iterable[Step]:
    """Each step once: a pair found late twice in a batch, a revision written again after a kill.

    The kind belongs to the step: tuples of different kinds may be equal.
    """
    return {(type(step), step): step for step in steps}.values()
