"""Tasks on workers, and a worker of its own for corrections: the cluster of a windowed room.

Source: the hybrid processing model, a stream module and a batch module side by side.

Rules of this file:

* The router at the log sends a tuple to the task of its key. Everything for a task travels and is
  served in order: one link, one queue, one server.
* Upstream operators stand at the log. A watermark that they insert travels to every task behind the
  tuples before it, as a mark does, and takes no time to serve.
* The end of a batch travels as a mark behind the tuples of the batch, so that a slow task ends its
  batch later than a fast one and still ends the same batch. A mark is a checkpoint.
* A correction is due, planned and carried out on the state of the task at its mark. Only reading
  the history takes time: until the corrector has read it, nobody sees the revisions, and an
  observer counts the pairs as pending.
* A correction is one transaction: a corrector that fails repeats the one under way.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Annotated, Generic, NamedTuple, TypeAlias

import simpy

from model.vocabulary import Event, Fault, Step, Trace, task_of
from model.vocabulary.settings import Setting, Settings
from model.vocabulary.windows import Cleared, Correction, Revision, WindowQuery
from model.windows.machine import Insertion, Passed, Upstream
from model.windows.pipeline import distinct
from sim.kernel.link import HERE, Link
from sim.kernel.plan import ORDINARY, Plan
from sim.kernel.seeds import Seeds
from sim.kernel.source import Tuple
from sim.kernel.station import AnyStation, Station, connect
from sim.timed_room import (
    PRODUCER,
    Checkpoint,
    admits,
    check_all,
    kills_of,
    link_of,
    tuple_work_us,
)
from sim.windows.machine import QueryT, WindowMachine
from sim.windows.record import TaskRecord

CORRECTOR = "corrector"


@dataclass(frozen=True, slots=True)
class WindowTuning(Settings):
    """Costs of corrections; ``ValueError`` with one sentence for a bad value.

    A row is read once for each of its windows.
    """

    correction_us: Annotated[
        float, Setting("fixed work of a correction before its first row", at_least=0)
    ] = 100_000.0
    row_us: Annotated[float, Setting("work of a row that a correction reads", at_least=0)] = 1.0


# ----------------------------------------------------------------------------------- corrections


class VisibleCorrection(NamedTuple):
    """A correction that can be seen."""

    at_us: float
    task: int
    revisions: Sequence[Revision]
    cleared: Sequence[Cleared]


_Correcting: TypeAlias = tuple[int, Sequence[Revision], Sequence[Cleared]]


class Corrector:
    """The worker that makes the corrections of all tasks, one after the other."""

    def __init__(self, env: simpy.Environment, tuning: WindowTuning) -> None:
        self.corrections: list[VisibleCorrection] = []
        """Corrections, in the order in which they could be seen."""
        self.interrupted: set[int] = set()
        """Micro-batches in whose correction the corrector failed."""
        self.station = Station[_Correcting](env, ORDINARY, self._finish, restart=self._restart)
        self._env, self._tuning = env, tuning
        self._batches: list[int] = []  # of the corrections that began

    def begin(self, task: int, batch: int, steps: Sequence[Step]) -> None:
        """Make the correction that a task recorded at the end of a batch, if there is one."""
        if any(isinstance(step, Correction) for step in steps):
            revisions = [step for step in steps if isinstance(step, Revision)]
            cleared = [step for step in steps if isinstance(step, Cleared)]
            rows = sum(step.n for step in revisions)
            work_us = self._tuning.correction_us + self._tuning.row_us * rows
            self._batches.append(batch)
            self.station.offer((task, revisions, cleared), work_us)

    def _finish(self, correction: _Correcting, _arrived_us: float, _started_us: float) -> None:
        self.station.checkpoint()
        self.corrections.append(VisibleCorrection(self._env.now, *correction))

    def _restart(self) -> None:
        """Note the batch whose correction was broken off."""
        self.interrupted.update(self._batches[len(self.corrections) :][:1])


# ----------------------------------------------------------------------------------------- tasks


class _Item(NamedTuple):
    """A tuple on its way to a task, a watermark, or the mark at the end of a batch or stream."""

    event: Event | None
    batch: int
    work_us: float
    is_flush: bool = False
    insertion: Insertion | None = None


class WindowCluster(Generic[QueryT]):
    """Router, tasks and corrector of a query, behind the log of a run."""

    def __init__(
        self,
        env: simpy.Environment,
        seeds: Seeds,
        plan: Plan,
        query: WindowQuery,
        machines: Sequence[WindowMachine],
        upstream: Upstream | None = None,
    ) -> None:
        self.query = query
        self._upstream, self._passed = upstream, list[Step]()
        self.start_us = plan.epoch_us
        self.batches = 0
        self.corrector = Corrector(env, plan.tuned(WindowTuning()))
        self.workers: dict[str, AnyStation] = {}
        self.links: dict[str, Link[_Item]] = {}
        self._env, self._plan = env, plan
        self._work_us = tuple_work_us(plan, seeds)
        self._tasks: dict[str, int] = {}
        self.tasks = [self._task(number, machine, seeds) for number, machine in enumerate(machines)]
        self.workers[CORRECTOR] = self.corrector.station

    # ------------------------------------------------------------------------ called by the run

    def admits(self, item: Tuple) -> bool:
        """Return whether the task of a tuple takes it in; a full task may shed it."""
        task = self.tasks[self._task_of(item.key)]
        return admits(task.station, task.expected)

    def arrive(self, event: Event) -> None:
        """Send an arrival to its task, and before it all tasks the watermark that is due."""
        if self._upstream is not None:
            self._pass(self._upstream(event, self.batches))
        task = self.tasks[self._task_of(event.key)]
        task.send(_Item(event, self.batches, next(self._work_us)))

    def _pass(self, passed: Passed) -> None:
        self._passed += passed.steps
        if passed.insertion is not None:
            for task in self.tasks:
                task.send(_Item(None, self.batches, 0.0, insertion=passed.insertion))

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
        check_all(self.workers.values(), self.links.values())

    # -------------------------------------------------------------------------- after the run

    @property
    def end_us(self) -> float:
        """Time at which everything had been served and the last correction could be seen."""
        served_us = [task.station.inside.changed_us for task in self.tasks]
        return max(*served_us, self.corrector.station.inside.changed_us)

    def trace(self) -> Trace:
        """Return the observed trace, without times."""
        steps = chain.from_iterable(task.record.steps for task in self.tasks)
        finals = chain.from_iterable(task.machine.final() for task in self.tasks)
        return Trace(PRODUCER, distinct(chain(self._passed, steps, finals)))

    def kills(self) -> tuple[Fault, ...]:
        """Return a kill of each micro-batch that the failure of a worker interrupted."""
        interrupted = (task.checkpoint.interrupted for task in self.tasks)
        batches = self.corrector.interrupted.union(*interrupted)
        return kills_of(batches, self.batches + self._plan.flush)

    # ---------------------------------------------------------------------------------- its parts

    def _task_of(self, key: str) -> int:
        task = self._tasks.get(key)
        if task is None:
            task = self._tasks[key] = task_of(key, len(self.tasks))
        return task

    def _task(self, number: int, machine: WindowMachine, seeds: Seeds) -> "WindowTask":
        plan = self._plan
        task = WindowTask(self._env, plan, number, machine, self.corrector)
        self.workers[task.name] = task.station
        tier = plan.way(HERE, task.worker.place)
        if tier is not None:
            name = f"log>{task.name}"
            link = self.links[name] = link_of(self._env, seeds, plan, name, tier, task.put)
            task.connect(link, 8.0 * plan.cluster.tuple_bytes)
        return task


class WindowTask:
    """One task: its machine on its worker, and its record."""

    def __init__(
        self,
        env: simpy.Environment,
        plan: Plan,
        number: int,
        machine: WindowMachine,
        corrector: Corrector,
    ) -> None:
        self.name = f"worker-{number}"
        self.worker = plan.cluster.worker(number)
        self.machine = machine
        self.record = TaskRecord()
        self.checkpoint = Checkpoint(plan, self.name, machine, self.record)
        restart = self._restart if self.checkpoint.is_kept else None
        self.station = Station[_Item](env, self.worker, self._serve, restart=restart)
        self._env, self._number, self._corrector = env, number, corrector
        self._link: Link[_Item] | None = None
        self._bits = 0.0
        self.expected = 0
        """Number of tuples on their way to this task."""

    def connect(self, link: Link[_Item], bits: float) -> None:
        """Let all tuples and marks come over a link; a tuple has this size, a mark has none."""
        self._link, self._bits = link, bits
        connect(link, self._enter)

    def send(self, item: _Item) -> None:
        """Send the task a tuple or a mark; a tuple that the log has taken in is not dropped."""
        if self._link is None:
            self.put(item)
        elif item.event is None:
            self._link.send(item, 0.0)
        else:
            self.expected += 1
            self._link.send(item, self._bits)

    def put(self, item: _Item) -> None:
        """Put a tuple or a mark into the queue, even into a full one that drops."""
        self.station.offer(item, item.work_us)

    def _enter(self, item: _Item, entered: Callable[[], object]) -> bool:
        if item.event is not None:
            self.expected -= 1
        return self.station.offer(item, item.work_us, entered)

    def _serve(self, item: _Item, _arrived_us: float, _started_us: float) -> None:
        now, record, machine = self._env.now, self.record, self.machine
        if item.event is not None:
            record.add_tuple(item.event, machine.arrive(item.event, item.batch), now)
            record.gauge(machine.gauges(), now)
        elif item.insertion is not None:
            record.add_steps(machine.insert(item.insertion, item.batch), now)
            record.gauge(machine.gauges(), now)
        else:
            self._end_batch(item, now)

    def _end_batch(self, mark: _Item, now: float) -> None:
        machine, batch = self.machine, mark.batch
        steps = machine.flush(batch) if mark.is_flush else machine.end_batch(batch)
        self.record.add_steps(steps, now)
        self.record.gauge(machine.gauges(), now)
        self.station.checkpoint()
        self.checkpoint.save(batch, is_flush=mark.is_flush)
        self._corrector.begin(self._number, batch, steps)

    def _restart(self) -> None:
        """Restart from the last mark after a failure."""
        self.checkpoint.restore()
        self.record.gauge(self.machine.gauges(), self._env.now)
