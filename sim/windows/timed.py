"""Windowed rooms in time: tasks on workers, corrections on a batch worker (docs/slack.md).

Source: the hybrid processing model, a stream module and a batch module side by side.

Rules of this file:

* The model's machines decide everything; here is only when they are called and how long it takes.
* A task sees its tuples in the order of the workload: one server, one queue without a limit.
* The end of a batch travels as a mark through each task's queue, behind the batch's tuples, so
  that a slow task ends its batch later than a fast one and still ends the same batch.
* A correction is due, planned and carried out on the state of the task at its mark, as in the
  model. What takes time is reading the history: until the batch worker has done that, nobody sees
  the revisions, and the pairs count as pending for the onlooker.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from math import inf
from typing import Generic, NamedTuple, TypeAlias, TypeVar

import simpy

from model.vocabulary import Event, Step, Trace, Workload, task_of
from model.windows.correction import History, Plan, Scored, Store, advance, due, plan
from model.windows.pipeline import AnyTask
from model.windows.query import Query
from sim.cluster import Station, Worker
from sim.distributions import Constant, require
from sim.seeds import Seeds

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


class Sample(NamedTuple):
    """A task as it was at one moment."""

    is_streaming: bool
    """Whether it has accepted something and has not been flushed."""
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
        "_correct",
        "_env",
        "_is_flushed",
        "_rule",
        "accepted",
        "history",
        "seen",
        "served_us",
        "station",
        "store",
        "task",
        "waits_us",
    )

    def __init__(
        self,
        env: simpy.Environment,
        rule: Rule[TaskT],
        number: int,
        worker: Worker,
        seeds: Seeds,
        correct: Callable[[Plan], object],
    ) -> None:
        self.task = task = rule.task(number)
        self.history = History(rule.config)
        self.store = Store((), ())
        self.accepted: list[Event] = []
        self.served_us: list[float] = []
        """When each accepted tuple was served."""
        self.waits_us: list[int] = []
        """How long it waited after each accepted tuple."""
        self.seen: list[Seen] = []
        self._env = env
        self._rule = rule
        self._correct = correct
        self._batch = 0
        self._accepted_before = 0  # this batch
        self._is_flushed = False
        name = f"task-{task.number}/service"
        rng = None if isinstance(worker.service, Constant) else seeds.stream(name)
        self.station = Station[Item](env, worker, self._serve, rng)

    def sample(self) -> Sample:
        """How things stand now."""
        task, station = self.task, self.station
        busy_us = station.utilisation() * self._env.now
        return Sample(
            is_streaming=task.n_accepted > 0 and not self._is_flushed,
            wait_us=self._rule.wait_us(task),
            wm_us=task.wm_us,
            share=self._rule.share(task),
            queue=station.inside.value,
            busy_us=busy_us,
        )

    def _serve(self, item: Item, _arrived_us: float, _started_us: float) -> None:
        if isinstance(item, Mark):
            self._end_batch(item)
            return
        task = self.task
        n_accepted = task.n_accepted
        steps = task.arrive(item, self._batch)
        if task.n_accepted > n_accepted:
            self.history.add(item)
            self.accepted.append(item)
            self.served_us.append(self._env.now)
            self.waits_us.append(self._rule.wait_us(task))
        if steps:
            self._record(steps)

    def _record(self, steps: Iterable[Step]) -> None:
        now, row = self._env.now, len(self.accepted) - 1
        for step in steps:
            self.seen.append(Seen(now, row, step))
            self.store.record(step)

    def _end_batch(self, mark: Mark) -> None:
        task, batch = self.task, mark.batch
        if mark.is_flush:
            self._is_flushed = True
            self._record(task.flush(batch))
        is_active = task.n_accepted > (0 if mark.is_flush else self._accepted_before)
        if is_active:
            self._record(self._rule.ended(task, batch, mark.is_flush))
        config, scored = self._rule.config, self._rule.scored
        reason = due(config, self.store, task.number, task.wm_us, mark.is_flush)
        if reason is not None and scored is not None:
            under_way: Plan | None
            under_way = plan(config, self.store, self.history, task.number, batch, reason, scored)
            self._correct(under_way)
            while under_way is not None:
                under_way, steps = advance(under_way, self.store)
                self._record(steps)
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
        self.config = config = rule.config
        self.cluster = cluster
        self.start_us = start_us
        self.env = env = simpy.Environment()
        self.batches = tuple(workload.batches())
        self.corrected: list[tuple[float, Plan]] = []
        """Corrections, with the time at which their revisions could be seen."""
        self.samples: list[tuple[float, tuple[Sample, ...]]] = []
        self.batch_station = Station[Plan](env, cluster.batch_worker, self._show)
        seeds = Seeds(workload.seed)
        self.tasks = [
            TimedTask(env, rule, n, cluster.worker(n), seeds, self._start_correction)
            for n in range(config.tasks)
        ]
        self._task_of = cache(lambda key: self.tasks[task_of(key, config.tasks)])
        self._sample_at_us = iter(sample_at_us)
        self._next_sample()
        self._schedule = self._items(ends_us)
        self._item: Item
        self._wait()

    def run(self) -> None:
        """Until everything has been served and corrected, and sampled once more."""
        self.env.run()
        self.batch_station.check()
        for task in self.tasks:
            task.station.check()
        self._sample()

    def trace(self) -> Trace:
        """What was observed, without the times."""
        steps = [seen.step for task in self.tasks for seen in task.seen]
        steps += [final for task in self.tasks for final in task.store.final()]
        # A pair is named once a batch, even if it was found late twice. The kind belongs to the
        # step: tuples of different kinds may be equal.
        distinct = {(type(step), step): step for step in steps}
        return Trace(PRODUCER, distinct.values())

    def _items(self, ends_us: Sequence[float] | None) -> Iterator[tuple[float, Item]]:
        """What the router has to pass on, and when."""
        start_us, end_us = self.start_us, 0.0
        for batch, arrivals in enumerate(self.batches):
            for event in arrivals:
                yield event.arrival_us - start_us, event
            end_us = arrivals[-1].arrival_us - start_us if ends_us is None else ends_us[batch]
            yield end_us, Mark(batch, is_flush=False)
        if self.workload.flush:
            yield end_us, Mark(len(self.batches), is_flush=True)

    def _wait(self) -> None:
        """Set the clock for the next item, if there is one."""
        following = next(self._schedule, None)
        if following is not None:
            at_us, self._item = following
            delay_us = at_us - self.env.now
            wake = simpy.Timeout(self.env, delay_us if delay_us > 0.0 else 0.0)
            wake.callbacks.append(self._route)

    def _route(self, _: simpy.Event) -> None:
        item = self._item
        if isinstance(item, Mark):
            for task in self.tasks:
                task.station.offer(item, 0.0)
        else:
            self._task_of(item.key).station.offer(item)
        self._wait()

    def _start_correction(self, under_way: Plan) -> None:
        rows = sum(n for _window, _value, n in under_way.answers)
        cluster = self.cluster
        self.batch_station.offer(under_way, cluster.correction_us + cluster.row_us * rows)

    def _show(self, done: Plan, _arrived_us: float, _started_us: float) -> None:
        self.corrected.append((self.env.now, done))

    def _next_sample(self) -> None:
        at_us = next(self._sample_at_us, None)
        if at_us is not None:
            wake = simpy.Timeout(self.env, max(0.0, at_us - self.env.now))
            wake.callbacks.append(self._sample_and_go_on)

    def _sample_and_go_on(self, _: simpy.Event) -> None:
        self._sample()
        self._next_sample()

    def _sample(self) -> None:
        self.samples.append((self.env.now, tuple(task.sample() for task in self.tasks)))
