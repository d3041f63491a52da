"""Windowed rooms in time: tasks on workers, corrections on a batch worker (docs/slack.md).

Source: the hybrid processing model, a stream module and a batch module side by side.

Rules of this file:

* The model's machines decide everything; here is only when they are called and how long it takes.
* A task sees its tuples in the order of the workload: one server, one queue without a limit. Tasks
  do nothing to each other, so that each goes through all of its tuples before the next one does.
* The end of a batch travels as a mark through each task's queue, behind the batch's tuples, so
  that a slow task ends its batch later than a fast one and still ends the same batch.
* A correction is due, planned and carried out on the state of the task at its mark, as in the
  model. What takes time is reading the history: until the batch worker has done that, nobody sees
  the revisions, and the pairs count as pending for the onlooker.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from math import inf
from typing import Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np

from model.vocabulary import Event, Step, Trace, Workload, task_of
from model.windows.correction import History, Plan, Scored, Store, advance, due, plan
from model.windows.pipeline import AnyTask
from model.windows.query import Query
from sim.cluster import Worker
from sim.distributions import Constant, endless, require
from sim.seeds import Seeds
from sim.windows.line import Line, line_of

PRODUCER = "sim"
ORDINARY = Worker()

# --------------------------------------------------------------------------------- the cluster


@dataclass(frozen=True, slots=True)
class Cluster:
    """What the room runs on; ``ValueError`` with one sentence that names the offending value."""

    workers: tuple[Worker, ...] = (ORDINARY,)
    """Of the tasks, in turn: with two of them, task 2 has a worker like task 0."""
    batch_worker: Worker = ORDINARY
    """Makes one correction after the other, at its speed; its service time is not used."""
    correction_us: float = 100_000.0
    """Work of any correction, before it reads the first row."""
    row_us: float = 1.0
    """Work of a row that a correction reads; a row is read once for each window it is in."""

    def __post_init__(self) -> None:
        require(len(self.workers) > 0, "workers", self.workers, "at least one worker")
        for worker in (*self.workers, self.batch_worker):
            # Two servers would let a tuple overtake the one before it.
            require(worker.servers == 1, "servers of a worker", worker.servers, "1")
            # The stream's source is durable: what has arrived waits, it is never thrown away.
            limit = worker.queue_limit
            require(limit is None, "queue_limit of a worker", limit, "None, which is no limit")
        for name in ("correction_us", "row_us"):
            value = getattr(self, name)
            require(0 <= value < inf, name, value, "finite and at least 0")

    def worker(self, task: int) -> Worker:
        """The worker of a task."""
        return self.workers[task % len(self.workers)]


# ------------------------------------------------------------------------------------ one task


class Mark(NamedTuple):
    """The end of a batch."""

    batch: int
    is_flush: bool


Item: TypeAlias = Event | Mark
"""What stands in a task's queue."""


class Seen(NamedTuple):
    """A step with the time at which it was taken, in kernel microseconds."""

    at_us: float
    row: int
    """Which accepted tuple of the task caused it (or, at the end of a batch, came last)."""
    step: Step


class State(NamedTuple):
    """A task's machine as it was at one moment."""

    is_streaming: bool
    """Whether it has accepted something and has not been flushed."""
    wait_us: int
    wm_us: int
    share: float


class Sample(NamedTuple):
    """A task as it was at one moment, before anything happened then."""

    is_streaming: bool
    wait_us: int
    wm_us: int
    share: float
    queue: float
    """Tuples and marks waiting or in service."""
    busy_us: float
    """Time so far in which the worker worked."""


TaskT = TypeVar("TaskT", bound=AnyTask)


@dataclass(frozen=True, slots=True)
class Rule(Generic[TaskT]):
    """A room: its query, its tasks, and what is to be seen of them."""

    config: Query
    task: Callable[[int], TaskT]
    """The task of that number."""
    ended: Callable[[TaskT, int, bool], Iterable[Step]]
    """What it records at the end of a batch in which it accepted something, or of a flush."""
    scored: Scored | None
    """What corrections record beside revisions; without it nothing is corrected."""
    wait_us: Callable[[TaskT], int]
    """How long it waits."""
    share: Callable[[TaskT], float]
    """Of the longest wait: what the wait follows from."""


class TimedTask(Generic[TaskT]):
    """A task of the model on a worker."""

    __slots__ = (
        "_accepted_before",
        "_batch",
        "_is_flushed",
        "_rule",
        "accepted",
        "history",
        "line",
        "planned",
        "seen",
        "served_us",
        "states",
        "store",
        "task",
        "waits_us",
    )

    def __init__(self, rule: Rule[TaskT], number: int) -> None:
        self.task = rule.task(number)
        self.history = History(rule.config)
        self.store = Store((), ())
        self.accepted: list[Event] = []
        self.served_us: list[float] = []
        """When each accepted tuple was served."""
        self.waits_us: list[int] = []
        """How long it waited after each accepted tuple."""
        self.seen: list[Seen] = []
        self.planned: list[tuple[float, Plan]] = []
        """Corrections, with the time at which they were due."""
        self.states: list[State] = []
        """At each moment that was asked for, and at the end."""
        self.line: Line = line_of((), (), 1.0)
        self._rule = rule
        self._batch = 0
        self._accepted_before = 0  # this batch
        self._is_flushed = False

    def run(self, items: Sequence[Item], line: Line, sample_at_us: Sequence[float]) -> None:
        """Go through everything, each item when its service ends."""
        self.line = line
        task, rule = self.task, self._rule
        moments = chain(sample_at_us, (inf,))
        moment_us = next(moments)
        for item, now_us in zip(items, line.ended_us.tolist(), strict=True):
            while moment_us <= now_us:
                self.states.append(self._state())
                moment_us = next(moments)
            if isinstance(item, Mark):
                self._end_batch(item, now_us)
                continue
            n_accepted = task.n_accepted
            steps = task.arrive(item, self._batch)
            if task.n_accepted > n_accepted:
                self.history.add(item)
                self.accepted.append(item)
                self.served_us.append(now_us)
                self.waits_us.append(rule.wait_us(task))
            if steps:
                self._record(steps, now_us)
        left = len(sample_at_us) + 1 - len(self.states)
        self.states += [self._state()] * left

    def _state(self) -> State:
        task, rule = self.task, self._rule
        is_streaming = task.n_accepted > 0 and not self._is_flushed
        return State(is_streaming, rule.wait_us(task), task.wm_us, rule.share(task))

    def _record(self, steps: Iterable[Step], now_us: float) -> None:
        row = len(self.accepted) - 1
        for step in steps:
            self.seen.append(Seen(now_us, row, step))
            self.store.record(step)

    def _end_batch(self, mark: Mark, now_us: float) -> None:
        task, batch = self.task, mark.batch
        if mark.is_flush:
            self._is_flushed = True
            self._record(task.flush(batch), now_us)
        is_active = task.n_accepted > (0 if mark.is_flush else self._accepted_before)
        if is_active:
            self._record(self._rule.ended(task, batch, mark.is_flush), now_us)
        config, scored = self._rule.config, self._rule.scored
        reason = due(config, self.store, task.number, task.wm_us, mark.is_flush)
        if reason is not None and scored is not None:
            under_way: Plan | None
            under_way = plan(config, self.store, self.history, task.number, batch, reason, scored)
            self.planned.append((now_us, under_way))
            while under_way is not None:
                under_way, steps = advance(under_way, self.store)
                self._record(steps, now_us)
        self._batch = batch + 1
        self._accepted_before = task.n_accepted


# ------------------------------------------------------------------------------------ the room


class Room(Generic[TaskT]):
    """Router, tasks and batch worker for one workload.

    ``start_us`` is the moment, since the epoch, at which kernel time is 0. ``ends_us`` are the
    kernel times at which the router ends the batches; without them, each batch ends with its last
    arrival. ``sample_at_us`` are increasing kernel times at which to look at the tasks.

    Faults of the workload take no time here and, as promised, change no step.
    """

    def __init__(
        self,
        workload: Workload,
        rule: Rule[TaskT],
        cluster: Cluster,
        start_us: int,
        ends_us: Sequence[float] | None = None,
        sample_at_us: Sequence[float] = (),
    ) -> None:
        self.workload = workload
        self.config = rule.config
        self.cluster = cluster
        self.start_us = start_us
        self.batches = tuple(workload.batches())
        self.tasks = [TimedTask(rule, number) for number in range(rule.config.tasks)]
        self.corrected: list[tuple[float, Plan]] = []
        """Corrections, with the time at which their revisions could be seen."""
        self.samples: list[tuple[float, tuple[Sample, ...]]] = []
        self.batch_line: Line = line_of((), (), 1.0)
        """Corrections at the batch worker."""
        self.end_us = 0.0
        """When everything was over."""
        self._ends_us = ends_us
        self._sample_at_us = sample_at_us

    def run(self) -> None:
        """Until everything has been served and corrected, and sampled once more."""
        seeds = Seeds(self.workload.seed)
        routed, end_us = self._routed()
        for number, (task, (came_us, items)) in enumerate(zip(self.tasks, routed, strict=True)):
            worker = self.cluster.worker(number)
            constant = isinstance(worker.service, Constant)
            rng = None if constant else seeds.stream(f"task-{number}/service")
            draws = endless(worker.service, rng)
            work_us = [0.0 if isinstance(item, Mark) else next(draws) for item in items]
            task.run(items, line_of(came_us, work_us, worker.speed), self._sample_at_us)
        self._correct()
        lines = (*[task.line for task in self.tasks], self.batch_line)
        self.end_us = max(end_us, *self._sample_at_us[-1:], *[line.end_us for line in lines])
        self._sample()

    def trace(self) -> Trace:
        """What was observed, without the times."""
        steps = [seen.step for task in self.tasks for seen in task.seen]
        steps += [final for task in self.tasks for final in task.store.final()]
        # A pair is named once a batch, even if it was found late twice. The kind belongs to the
        # step: tuples of different kinds may be equal.
        distinct = {(type(step), step): step for step in steps}
        return Trace(PRODUCER, distinct.values())

    def _routed(self) -> tuple[list[tuple[list[float], list[Item]]], float]:
        """What comes to each task and when, and when the router has passed on everything."""
        routed: list[tuple[list[float], list[Item]]] = [([], []) for _ in self.tasks]
        place_of: dict[str, tuple[list[float], list[Item]]] = {}
        now_us = 0.0

        def pass_on(mark: Mark) -> None:
            for came_us, items in routed:
                came_us.append(now_us)
                items.append(mark)

        for batch, arrivals in enumerate(self.batches):
            for event in arrivals:
                place = place_of.get(event.key)
                if place is None:
                    place = place_of[event.key] = routed[task_of(event.key, len(routed))]
                # Arrivals before the start wait for it.
                now_us = max(now_us, float(event.arrival_us - self.start_us))
                place[0].append(now_us)
                place[1].append(event)
            if self._ends_us is not None:
                now_us = max(now_us, self._ends_us[batch])
            pass_on(Mark(batch, is_flush=False))
        if self.workload.flush:
            pass_on(Mark(len(self.batches), is_flush=True))
        return routed, now_us

    def _correct(self) -> None:
        """One correction after the other, as they were due; at once, in the order of tasks."""
        planned = sorted(
            (each for task in self.tasks for each in task.planned), key=lambda each: each[0]
        )
        cluster = self.cluster
        rows = [sum(n for _window, _value, n in plan.answers) for _, plan in planned]
        self.batch_line = line_of(
            [due_us for due_us, _ in planned],
            [cluster.correction_us + cluster.row_us * n for n in rows],
            cluster.batch_worker.speed,
        )
        plans = [plan for _, plan in planned]
        self.corrected = list(zip(self.batch_line.ended_us.tolist(), plans, strict=True))

    def _sample(self) -> None:
        # The last one is taken when everything is over, and nothing happens after it.
        at_us = np.array([*self._sample_at_us, np.nextafter(self.end_us, inf)])
        columns = []
        for task in self.tasks:
            looked = (task.line.inside(at_us).tolist(), task.line.busy_us(at_us).tolist())
            rows = zip(task.states, *looked, strict=True)
            columns.append([Sample(*state, queue, busy_us) for state, queue, busy_us in rows])
        times_us = [*self._sample_at_us, self.end_us]
        self.samples = list(zip(times_us, zip(*columns, strict=True), strict=True))
