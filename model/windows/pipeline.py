"""Carry a workload through tasks, batches, corrections and a flush (docs/slack.md, as a whole).

Rules of this file:

* This file only connects the parts: tasks decide about the stream, plans about corrections.
* There is no time: a batch is processed and corrected before the next one starts.
* A ``restart`` needs nothing here, because a task's state is a value, which the same batch always
  changes in the same way. A ``kill`` in a batch takes away every plan of that batch after its first
  small step; the plan is then made and carried out again.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Generic, TypeVar

from model.vocabulary import Event, Step, System, Trace, Workload, task_of
from model.vocabulary.windows import Rejected, WindowQuery
from model.windows.correction import advance, due, plan
from model.windows.machine import Insertion, Upstream, WindowTask
from model.windows.rules import CorrectionRules
from model.windows.state import History, Plan, Store, Window

PRODUCER = "model"


QueryT = TypeVar("QueryT", bound=WindowQuery)
TaskT = TypeVar("TaskT", bound=WindowTask[Any])
RulesT = TypeVar("RulesT", bound=CorrectionRules)


class TaskPipeline(Generic[TaskT]):
    """One task with its history and its store, which follow its tuples to the final answers.

    Unless it ``corrects``, late pairs stay pending for ever. Tasks may share a ``store``; each task
    sees only its own windows there.
    """

    __slots__ = ("_accepted_before", "_config", "_corrects", "_history", "_rules", "store", "task")

    def __init__(
        self,
        config: WindowQuery,
        task: TaskT,
        rules: CorrectionRules,
        corrects: bool,
        store: Store | None = None,
    ) -> None:
        self.task = task
        self.store = Store() if store is None else store
        self._config = config
        self._history = History(config)
        self._rules = rules
        self._corrects = corrects
        self._accepted_before = 0  # number of arrivals accepted before this batch

    def arrive(self, event: Event, batch: int) -> list[Step]:
        """Take one arrival; return the steps it causes, in order."""
        n_accepted = self.task.n_accepted
        steps = self.task.arrive(event, batch)
        if self.task.n_accepted > n_accepted and self._corrects:
            self._history.add(event)
        for step in steps:
            self.store.record(step)
            if isinstance(step, Rejected):
                starts_us = self._rules.incomplete(self._config, event)
                key = event.key if self._config.keyed else ""
                self.store.incomplete |= {Window(step.task, each, key) for each in starts_us}
        return steps

    def insert(self, insertion: Insertion, batch: int) -> list[Step]:
        """Take a watermark from upstream; return the steps it causes, in order."""
        steps = self.task.insert(insertion, batch)
        for step in steps:
            self.store.record(step)
        return steps

    def end_batch(self, batch: int, *, is_killed: bool = False) -> list[Step]:
        """End a micro-batch: record the clock, and correct if a correction is due."""
        steps: list[Step] = []
        if self.task.n_accepted > self._accepted_before:
            self._accepted_before = self.task.n_accepted
            steps += self.task.end_batch(batch)
        return steps + self._correct(batch, is_flush=False, is_killed=is_killed)

    def flush(self, batch: int, *, is_killed: bool = False) -> list[Step]:
        """Close every window and correct until nothing is pending."""
        steps = self.task.flush(batch)
        for step in steps:
            self.store.record(step)
        if self.task.n_accepted:
            steps += self.task.end_batch(batch)
        return steps + self._correct(batch, is_flush=True, is_killed=is_killed)

    def _correct(self, batch: int, *, is_flush: bool, is_killed: bool) -> list[Step]:
        if not self._corrects:
            return []
        killed = self._correct_once(batch, is_flush, small_steps=1) if is_killed else []
        return killed + self._correct_once(batch, is_flush)

    def _correct_once(
        self, batch: int, is_flush: bool, small_steps: int | None = None
    ) -> list[Step]:
        config, number, rules = self._config, self.task.number, self._rules
        reason = due(config, self.store, number, self.task.wm_us, is_flush, rules)
        if reason is None:
            return []
        made: list[Step] = []
        under_way: Plan | None
        under_way = plan(config, self.store, self._history, number, batch, reason)
        while under_way is not None and small_steps != 0:
            under_way, steps = advance(under_way, self.store, rules)
            made += steps
            small_steps = None if small_steps is None else small_steps - 1
        return made


def no_upstream(_config: object, _rules: object) -> None:
    """Give a query no upstream operators: its tasks have watermarks of their own."""


@dataclass(frozen=True, slots=True)
class WindowModel(Generic[QueryT, TaskT, RulesT]):
    """The reference of a windowed room: its parts, and how a workload runs through them."""

    parse: Callable[[Mapping[str, object]], QueryT]
    make_task: Callable[[QueryT, int, RulesT], TaskT]
    rules: RulesT
    corrects: Callable[[QueryT], bool] = lambda _: True
    """Function from a query to whether late pairs are corrected."""
    upstream_of: Callable[[QueryT, RulesT], Upstream | None] = no_upstream
    """Function from a query to the operators before its windows, if it has any."""

    def task_pipeline(self, config: QueryT, number: int) -> TaskPipeline[TaskT]:
        """Return one task of a query, with a history and a store of its own."""
        task = self.make_task(config, number, self.rules)
        return TaskPipeline(config, task, self.rules, self.corrects(config))

    def run(self, workload: Workload, rules: RulesT | None = None) -> Trace:
        """Return the trace of a workload, by the rules of the room unless others are given.

        Raise ``ValueError`` with one sentence for an impossible configuration.
        """
        chosen = self.rules if rules is None else rules
        config = self.parse(workload.config)
        store, corrects = Store(), self.corrects(config)
        tasks = [
            TaskPipeline(config, self.make_task(config, number, chosen), chosen, corrects, store)
            for number in range(config.tasks)
        ]
        steps = _run(tasks, self.upstream_of(config, chosen), workload)
        return Trace(PRODUCER, distinct([*steps, *store.final()]))

    def system(self, rules: RulesT) -> System:
        """Return a System that follows ``rules``."""
        return partial(self.run, rules=rules)

    def make_system(self) -> System:
        """Return the reference as a System."""
        return self.system(self.rules)


def _run(
    tasks: Sequence[TaskPipeline[TaskT]], upstream: Upstream | None, workload: Workload
) -> list[Step]:
    kills = {fault.at for fault in workload.faults if fault.kind == "kill"}
    # The hash of a key is computed once.
    task_number = lru_cache(maxsize=1 << 16)(lambda key: task_of(key, len(tasks)))
    batches = tuple(workload.batches())
    steps: list[Step] = []
    for number, arrivals in enumerate(batches):
        for event in arrivals:
            if upstream is not None:
                passed = upstream(event, number)
                steps += passed.steps
                if passed.insertion is not None:
                    for task in tasks:
                        steps += task.insert(passed.insertion, number)
            steps += tasks[task_number(event.key)].arrive(event, number)
        for task in tasks:
            steps += task.end_batch(number, is_killed=number in kills)
    if workload.flush:
        number = len(batches)
        for task in tasks:
            steps += task.flush(number, is_killed=number in kills)
    return steps


def distinct(steps: Iterable[Step]) -> Iterable[Step]:
    """Return each step once: a pair late twice in a batch, a revision written again after a kill.

    Steps of different kinds may be equal as tuples, so the kind counts as well.
    """
    return {(type(step), step): step for step in steps}.values()
