"""Windowed rooms in time: tasks on workers, corrections on a worker of their own.

Source: the hybrid processing model, a stream module and a batch module side by side.

Rules of this file:

* The router at the log sends a tuple to the task of its key. Everything for a task travels and is
  served in order: one link, one queue, one server.
* The end of a batch travels as a mark behind the tuples of the batch, so that a slow task ends its
  batch later than a fast one and still ends the same batch. A mark is a checkpoint.
* A correction is due, planned and carried out on the state of the task at its mark. What takes time
  is reading the history: until the corrector has done that, nobody sees the revisions, and the
  pairs count as pending for the onlooker.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from math import inf
from typing import Generic, NamedTuple, TypeAlias

import simpy

from model.vocabulary import Event, Step, Trace, task_of
from model.vocabulary.answers import Cleared, Correction, Revision
from model.vocabulary.settings import require
from model.windows.pipeline import distinct
from model.windows.query import Query
from sim.kernel.distributions import Constant, endless
from sim.kernel.faults import Fail
from sim.kernel.link import Link
from sim.kernel.plain import plain
from sim.kernel.plan import ORDINARY, Plan
from sim.kernel.seeds import Seeds
from sim.kernel.source import Tuple
from sim.kernel.station import Offer, Station, Worker, connect
from sim.windows.machine import Machine, QueryT
from sim.windows.record import TaskRecord

PRODUCER = "sim"
CORRECTOR = "corrector"


@plain
@dataclass(frozen=True, slots=True)
class WindowTuning:
    """What corrections cost. Raises ``ValueError`` with one sentence that names a bad value."""

    corrector: Worker = ORDINARY
    """The worker that makes corrections, one after the other."""
    correction_us: float = 100_000.0
    """Work of any correction, before it reads the first row."""
    row_us: float = 1.0
    """Work of a row that a correction reads; a row is read once for each window it is in."""

    def __post_init__(self) -> None:
        limit = self.corrector.queue_limit
        require(limit is None, "queue_limit of the corrector", limit, "None, which is no limit")
        for name in ("correction_us", "row_us"):
            value = getattr(self, name)
            require(0 <= value < inf, name, value, "finite and at least 0")


class Corrected(NamedTuple):
    """A correction that can be seen."""

    at_us: float
    task: int
    revisions: Sequence[Revision]
    cleared: Sequence[Cleared]


class _Item(NamedTuple):
    """What travels to a task: a tuple, or the mark at the end of a batch or of the stream."""

    event: Event | None
    batch: int
    work_us: float
    is_flush: bool = False


_Correcting: TypeAlias = tuple[int, Sequence[Revision], Sequence[Cleared]]


class Room(Generic[QueryT]):
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
        self.corrected: list[Corrected] = []
        """Corrections, in the order in which they could be seen."""
        self.tuning = plan.tuned(WindowTuning())
        self.workers: dict[str, Station[_Item] | Station[_Correcting]] = {}
        self.links: dict[str, Link[_Item]] = {}
        self._env, self._plan = env, plan
        service = plan.cluster.service
        rng = None if isinstance(service, Constant) else seeds.stream("service")
        self._work_us = endless(service, rng)
        self._tasks: dict[str, int] = {}
        self.tasks = [self._task(number, machine, seeds) for number, machine in enumerate(machines)]
        self._sheds = any(worker.when_full == "drop" for worker in plan.cluster.workers)
        self.corrector = Station[_Correcting](
            env, self.tuning.corrector, self._correct, restart=_keep_on
        )
        self.workers[CORRECTOR] = self.corrector

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
        return max(*served_us, self.corrector.inside.changed_us)

    def trace(self) -> Trace:
        """Return what was observed, without the times."""
        steps = chain.from_iterable(task.record.steps() for task in self.tasks)
        finals = chain.from_iterable(task.machine.final() for task in self.tasks)
        return Trace(PRODUCER, distinct(chain(steps, finals)))

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
        task = Task(self._env, worker, machine, fails, partial(self._plan_correction, number))
        self.workers[name] = task.station
        tier = plan.way(plan.log_place, worker.place)
        if tier is not None:
            noise = plan.cluster.noise
            rng = seeds.stream(f"log>{name}/link") if noise.is_random else None
            link = Link[_Item](self._env, tier, task.offer, noise, rng, once=True)
            task.travel(link, 8.0 * plan.cluster.tuple_bytes)
            self.links[f"log>{name}"] = link
        return task

    def _plan_correction(self, number: int, steps: Sequence[Step]) -> None:
        """Have the corrector make the correction that a task recorded, if it did."""
        if any(isinstance(step, Correction) for step in steps):
            revisions = [step for step in steps if isinstance(step, Revision)]
            cleared = [step for step in steps if isinstance(step, Cleared)]
            rows = sum(step.n for step in revisions)
            work_us = self.tuning.correction_us + self.tuning.row_us * rows
            self.corrector.offer((number, revisions, cleared), work_us)

    def _correct(self, correction: _Correcting, _arrived_us: float, _started_us: float) -> None:
        self.corrector.checkpoint()
        self.corrected.append(Corrected(self._env.now, *correction))


class Task:
    """One task: its machine on its worker, and what was seen of it."""

    def __init__(
        self,
        env: simpy.Environment,
        worker: Worker,
        machine: Machine,
        fails: bool,
        ended: Callable[[Sequence[Step]], object],
    ) -> None:
        # Two servers would let a tuple overtake the one before it.
        require(worker.servers == 1, "servers of a worker", worker.servers, "1")
        self.machine = machine
        self.record = TaskRecord()
        self.station = Station[_Item](
            env, worker, self._serve, restart=self._restart if fails else None
        )
        self.send: Callable[[_Item], object] = self.offer
        self._env = env
        self._ended = ended
        self._link: Link[_Item] | None = None
        self._saved = machine.saved() if fails else None
        self._saves = fails

    def travel(self, link: Link[_Item], bits: float) -> None:
        """Let everything for the task come over a link; a mark has no size."""
        self._link = link
        connect(link, self._enter)
        self.send = lambda item: link.send(item, 0.0 if item.event is None else bits)

    def admits(self) -> bool:
        """Say whether there is room, for a tuple that may be shed."""
        worker, station = self.station.worker, self.station
        if worker.when_full == "block" or worker.queue_limit is None:
            return True
        on_the_way = 0 if self._link is None else self._link.inside
        return station.waiting + on_the_way < worker.queue_limit or station.inside.value == 0

    def offer(self, item: _Item) -> Offer:
        """Put something into the queue; what the log has taken in is not dropped."""
        return self.station.offer(item, item.work_us, must=True)

    def _enter(self, item: _Item, entered: Callable[[], object]) -> Offer:
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
        self._ended(steps)

    def _restart(self) -> None:
        """Go on from the last mark, after a failure."""
        self.machine.restore(self._saved)
        self.record.go_back()
        self.record.gauge(self.machine.gauges(), self._env.now)


def _keep_on() -> None:
    """Keep what was corrected: a correction is one transaction."""
