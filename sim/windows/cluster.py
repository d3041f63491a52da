"""Windowed rooms in time: tasks on workers, corrections on a worker of their own.

Source: the hybrid processing model, a stream module and a batch module side by side.

Rules of this file:

* The router at the log sends a tuple to the task of its key. Everything for a task travels and is
  served in order: one link, one queue, one server.
* The end of a batch travels as a mark behind the tuples of the batch, so that a slow task ends its
  batch later than a fast one and still ends the same batch. A mark is a checkpoint.
"""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, Generic, NamedTuple

import simpy

from model.vocabulary import Event, Fault, Trace, task_of
from model.vocabulary.settings import require
from model.windows.pipeline import distinct
from model.windows.query import Query
from sim.kernel.distributions import Constant, endless
from sim.kernel.faults import Fail
from sim.kernel.link import Link
from sim.kernel.plan import Plan, Worker
from sim.kernel.seeds import Seeds
from sim.kernel.source import Tuple
from sim.kernel.station import Offer, Station, connect
from sim.windows.corrector import Corrector, WindowTuning
from sim.windows.machine import Machine, QueryT
from sim.windows.record import TaskRecord

PRODUCER = "sim"
CORRECTOR = "corrector"


class _Item(NamedTuple):
    """What travels to a task: a tuple, or the mark at the end of a batch or of the stream."""

    event: Event | None
    batch: int
    work_us: float
    is_flush: bool = False


class WindowCluster(Generic[QueryT]):
    """Router, tasks and corrector of a query, behind the log of a run."""

    def __init__(
        self,
        env: simpy.Environment,
        seeds: Seeds,
        plan: Plan,
        query: Query,
        machines: Sequence[Machine],
    ) -> None:
        self.query = query
        self.start_us = plan.epoch_us
        self.batches = 0
        self.corrector = Corrector(env, plan.tuned(WindowTuning()))
        self.workers: dict[str, Station[Any]] = {}
        self.links: dict[str, Link[_Item]] = {}
        self._env, self._plan = env, plan
        service = plan.cluster.service
        rng = None if isinstance(service, Constant) else seeds.stream("service")
        self._work_us = endless(service, rng)
        self._tasks: dict[str, int] = {}
        self.tasks = [self._task(number, machine, seeds) for number, machine in enumerate(machines)]
        self.workers[CORRECTOR] = self.corrector.station
        self._sheds = any(worker.when_full == "drop" for worker in plan.cluster.workers)

    # ------------------------------------------------------------------------ what the run calls

    def admits(self, item: Tuple) -> bool:
        """Say whether the task of a tuple takes it in, where full tasks shed."""
        return not self._sheds or self.tasks[self._task_of(item.key)].admits()

    def arrive(self, event: Event) -> None:
        """Send an arrival to its task."""
        task = self.tasks[self._task_of(event.key)]
        task.send(_Item(event, self.batches, next(self._work_us)))

    def end_batch(self) -> None:
        """Send every task the mark of the batch."""
        for task in self.tasks:
            task.send(_Item(None, self.batches, 0.0))
        self.batches += 1

    def flush(self) -> None:
        """Send every task the mark of the end of the stream."""
        for task in self.tasks:
            task.send(_Item(None, self.batches, 0.0, is_flush=True))

    def check(self) -> None:
        """Assert conservation and Little's law at every worker and link."""
        for station in self.workers.values():
            station.check()
        for link in self.links.values():
            link.check()

    @property
    def end_us(self) -> float:
        """When the last tuple or mark had been served and the last correction could be seen."""
        served_us = [task.station.inside.changed_us for task in self.tasks]
        return max(*served_us, self.corrector.station.inside.changed_us)

    def trace(self) -> Trace:
        """Return what was observed, without the times."""
        steps = chain.from_iterable(task.record.steps() for task in self.tasks)
        finals = chain.from_iterable(task.machine.final() for task in self.tasks)
        return Trace(PRODUCER, distinct(chain(steps, finals)))

    def kills(self) -> tuple[Fault, ...]:
        """Return a kill of each micro-batch that the failure of a worker interrupted."""
        last = self.batches if self._plan.flush else self.batches - 1
        batches = self.corrector.interrupted.union(*(task.interrupted for task in self.tasks))
        return tuple([Fault("kill", batch) for batch in sorted(batches) if batch <= last])

    # --------------------------------------------------------------------------------- its parts

    def _task_of(self, key: str) -> int:
        task = self._tasks.get(key)
        if task is None:
            task = self._tasks[key] = task_of(key, len(self.tasks))
        return task

    def _task(self, number: int, machine: Machine, seeds: Seeds) -> "Task":
        plan, name = self._plan, f"worker-{number}"
        worker = plan.cluster.worker(number)
        fails = any(isinstance(each, Fail) and each.worker == name for each in plan.faults)
        task = Task(self._env, number, worker, machine, self.corrector, fails)
        self.workers[name] = task.station
        tier = plan.way(plan.log_place, worker.place)
        if tier is not None:
            noise = plan.cluster.noise
            rng = seeds.stream(f"log>{name}/link") if noise.is_random else None
            link = Link[_Item](self._env, tier, task.put, noise, rng, once=True)
            task.travel(link, 8.0 * plan.cluster.tuple_bytes)
            self.links[f"log>{name}"] = link
        return task


class Task:
    """One task: its machine on its worker, and what was seen of it."""

    def __init__(
        self,
        env: simpy.Environment,
        number: int,
        worker: Worker,
        machine: Machine,
        corrector: Corrector,
        fails: bool,
    ) -> None:
        # Two servers would let a tuple overtake the one before it.
        require(worker.servers == 1, "servers of a worker", worker.servers, "1")
        self.machine = machine
        self.record = TaskRecord()
        self.batch = 0
        """The micro-batch, or the flush, that the task is at."""
        self.interrupted: set[int] = set()
        """Micro-batches in which the worker failed."""
        self.station = Station[_Item](
            env, worker, self._serve, restart=self._restart if fails else None
        )
        self._env, self._number, self._corrector = env, number, corrector
        self._link: Link[_Item] | None = None
        self._bits = 0.0
        self._expected = 0  # tuples on their way to here
        self._saved = machine.saved() if fails else None
        self._saves = fails
        self._is_over = False

    def travel(self, link: Link[_Item], bits: float) -> None:
        """Let everything for the task come over a link; a tuple has this size, a mark has none."""
        self._link, self._bits = link, bits
        connect(link, self._enter)

    def send(self, item: _Item) -> None:
        """Send the task a tuple or a mark; what the log has taken in is not dropped."""
        if self._link is None:
            self.put(item)
        elif item.event is None:
            self._link.send(item, 0.0)
        else:
            self._expected += 1
            self._link.send(item, self._bits)

    def put(self, item: _Item) -> None:
        """Put something into the queue, even a full one that drops."""
        self.station.offer(item, item.work_us, must=True)

    def admits(self) -> bool:
        """Say whether there is room, for a tuple that may be shed."""
        worker, station = self.station.worker, self.station
        if worker.when_full == "block" or worker.queue_limit is None:
            return True
        # Marks on their way take no room: what comes behind them is served at once.
        waiting = station.waiting + self._expected
        return waiting < worker.queue_limit or station.inside.value + self._expected == 0

    def _enter(self, item: _Item, entered: Callable[[], object]) -> Offer:
        if item.event is not None:
            self._expected -= 1
        return self.station.offer(item, item.work_us, entered, must=True)

    def _serve(self, item: _Item, _arrived_us: float, _started_us: float) -> None:
        now, record, machine = self._env.now, self.record, self.machine
        if item.event is not None:
            record.served(item.event, machine.arrive(item.event, item.batch), now)
            record.gauge(machine.gauges(), now)
        else:
            self._end_batch(item, now)

    def _end_batch(self, mark: _Item, now: float) -> None:
        machine, batch = self.machine, mark.batch
        steps = machine.flush(batch) if mark.is_flush else machine.end_batch(batch)
        self.record.saw(steps, now)
        self.record.gauge(machine.gauges(), now)
        self.station.checkpoint()
        if self._saves:
            self._saved = machine.saved()
            self.record.save()
        self._corrector.begin(self._number, batch, steps)
        self.batch, self._is_over = batch + 1, mark.is_flush

    def _restart(self) -> None:
        """Go on from the last mark, after a failure."""
        if not self._is_over:
            self.interrupted.add(self.batch)
        self.machine.restore(self._saved)
        self.record.go_back()
        self.record.gauge(self.machine.gauges(), self._env.now)
