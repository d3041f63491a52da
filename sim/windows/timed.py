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

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, islice
from math import inf
from typing import Generic, NamedTuple

import numpy as np

from model.vocabulary import Trace, Workload, task_of
from model.vocabulary.answers import Late
from model.windows.correction import Plan
from sim.cluster import Worker
from sim.disorder import IntArray
from sim.distributions import Constant, FloatArray, endless, require
from sim.seeds import Seeds
from sim.windows.line import Line, line_of
from sim.windows.task import Rule, TaskT, TimedTask

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


# ------------------------------------------------------------------------------------ the room


class Columns(NamedTuple):
    """What arrives, a row a tuple."""

    key: IntArray
    """Numbers of the keys."""
    event_us: IntArray
    came_us: IntArray
    """Arrivals, since the start of the run."""
    numbers: dict[str, int]
    """Of the keys, by first appearance."""


class Passed(NamedTuple):
    """What the router passed on: tuples to their tasks, and behind those of a batch its mark."""

    owners: IntArray
    """Task of each tuple."""
    tuples_us: FloatArray
    """When each tuple was passed on."""
    cuts: IntArray
    """How many tuples were passed on before each mark."""
    marks_us: FloatArray
    """When each mark was passed on, that of the flush included."""
    end_us: float
    """When the router had passed on everything."""


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
        self.columns = _columns_of(workload, start_us)
        self.tasks = [TimedTask(rule, number) for number in range(rule.config.tasks)]
        self.corrected: list[tuple[float, Plan]] = []
        """Corrections, with the time at which their revisions could be seen."""
        self.batch_line: Line = line_of((), (), 1.0)
        """Corrections at the batch worker."""
        self.end_us = 0.0
        """When everything was over."""
        self._ends_us = ends_us
        self.sample_at_us = sample_at_us

    def run(self) -> None:
        """Until everything has been served and corrected."""
        seeds = Seeds(self.workload.seed)
        passed = self._passed_on()
        for number, task in enumerate(self.tasks):
            worker = self.cluster.worker(number)
            constant = isinstance(worker.service, Constant)
            rng = None if constant else seeds.stream(f"task-{number}/service")
            rows = np.flatnonzero(passed.owners == number)
            ends = np.searchsorted(rows, passed.cuts)
            # A mark comes behind the tuples of its batch and is no work.
            work_us = np.fromiter(islice(endless(worker.service, rng), len(rows)), np.float64)
            came_us = np.insert(passed.tuples_us[rows], ends, passed.marks_us)
            line = line_of(came_us, np.insert(work_us, ends, 0.0), worker.speed)
            task.run(self.workload, rows, ends, line, self.sample_at_us)
        self._correct()
        lines = (*[task.line for task in self.tasks], self.batch_line)
        end_us = max(passed.end_us, *self.sample_at_us[-1:], *[line.end_us for line in lines])
        self.end_us = end_us

    def trace(self) -> Trace:
        """What was observed, without the times."""
        # A pair is named once a batch, even if it was found late twice.
        late = dict.fromkeys(step for task in self.tasks for step in task.of(Late).steps)
        others = (
            seen.steps
            for task in self.tasks
            for kind, seen in task.seen.items()
            if kind is not Late
        )
        clocks = (task.clocks for task in self.tasks)
        finals = (task.finals() for task in self.tasks)
        return Trace(PRODUCER, chain(late, *others, *clocks, *finals))

    def _passed_on(self) -> Passed:
        """What the router does: it waits for nobody, but arrivals before the start wait for it."""
        columns, tasks = self.columns, len(self.tasks)
        owner_of = np.array([task_of(key, tasks) for key in columns.numbers], dtype=np.int64)
        cuts = np.cumsum([len(batch) for batch in self.batches], dtype=np.int64)
        # Without an end of its own a batch ends with its last arrival.
        ends_us = [0.0] * len(cuts) if self._ends_us is None else self._ends_us
        came_us = np.insert(columns.came_us.astype(np.float64), cuts, ends_us)
        now_us = np.maximum.accumulate(came_us.clip(min=0.0))
        is_mark = np.zeros(len(now_us), dtype=np.bool_)
        is_mark[cuts + np.arange(len(cuts))] = True
        end_us = float(now_us[-1]) if len(now_us) else 0.0
        marks_us = now_us[is_mark]
        if self.workload.flush:
            cuts, marks_us = np.append(cuts, len(columns.key)), np.append(marks_us, end_us)
        return Passed(owner_of[columns.key], now_us[~is_mark], cuts, marks_us, end_us)

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


def _columns_of(workload: Workload, start_us: int) -> Columns:
    arrivals = workload.arrivals
    keys = [event.key for event in arrivals]
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    return Columns(
        np.array([numbers[key] for key in keys], dtype=np.int64),
        np.array([event.event_time_us for event in arrivals], dtype=np.int64),
        np.array([event.arrival_us for event in arrivals], dtype=np.int64) - start_us,
        numbers,
    )
