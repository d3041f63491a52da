"""A timed room: it simulates plans, replays workloads, and plots its runs.

A room adds its processes (``cluster.py``), its figures (``figures.py``) and its scenarios. Its
``room.py`` runs a plan through these and ends with a :class:`TimedRoom`. Clusters of all rooms are
made of the parts at the end of this file: work of tuples, links, full queues, and checkpoints.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import simpy

from model.vocabulary import Event, Fault, System, Workload
from model.vocabulary.settings import JsonObject, Settings
from sim.clusters import STATED
from sim.kernel.distributions import Constant, iterate_samples
from sim.kernel.faults import Fail
from sim.kernel.link import AnyLink, Link, Tier
from sim.kernel.plan import Cluster, Plan, replay
from sim.kernel.run import Arrived, TimedRun
from sim.kernel.seeds import Seeds
from sim.kernel.station import AnyStation
from sim.timed_figures import RunPlot

PRODUCER = "sim"
"""Producer of the traces that timed rooms observe."""


ConfigT = TypeVar("ConfigT")
RunT = TypeVar("RunT", bound=TimedRun)
T = TypeVar("T")


def workload_of(
    room: str,
    plan: Plan,
    config: Settings,
    seed: int,
    arrived: Arrived,
    kills: tuple[Fault, ...],
) -> Workload:
    """Return everything that timing decided in a run, for the model or Spark."""
    events: tuple[Event, ...] = arrived.events
    return Workload(
        room, events, config.to_json(), arrived.cuts, kills, seed, flush=plan.flush, name=plan.name
    )


def stated_plan(workload: Workload, cluster: Cluster = STATED) -> Plan:
    """Return the plan that repeats the arrivals and micro-batches of a workload on a cluster."""
    return replay(
        workload.arrivals, workload.name, workload.cuts, flush=workload.flush, cluster=cluster
    )


@dataclass(frozen=True, slots=True)
class TimedRoom(Generic[ConfigT, RunT]):
    """A timed room."""

    read: Callable[..., ConfigT]
    """Reads a query from plain data."""
    simulate: Callable[[Plan, ConfigT, int], RunT]
    """Runs a plan and a query with a seed."""
    plot: RunPlot
    """Title, panels and columns of the plot of a run."""
    restate: Callable[[Workload, ConfigT], Plan] = lambda workload, _config: stated_plan(workload)
    """Returns the plan of a replay, given the workload and its query."""

    def simulate_plan(self, plan: Plan, config: JsonObject, seed: int) -> RunT:
        """Run a plan and a query in plain data."""
        return self.simulate(plan, self.read(config), seed)

    def replay(self, workload: Workload) -> RunT:
        """Replay a workload through the stated cluster, with its arrival times and batches."""
        config = self.read(workload.config)
        return self.simulate(self.restate(workload, config), config, workload.seed)

    def make_system(self) -> System:
        """Return the timed room as a System."""
        return lambda workload: self.replay(workload).trace

    def draw(self, run: TimedRun, path: Path) -> None:
        """Write a run over its time: faults, workers, lag, latency, panels of the room.

        The name of the file ends in one of :data:`sim.timed_figures.ENDINGS`.
        """
        # Imported here: matplotlib takes a second, and no other command needs it.
        from sim.report.drawing import draw_timed_run, save

        save(draw_timed_run, (run, self.plot), path)


# ----------------------------------------------------------------------------------------- clusters


def tuple_work_us(plan: Plan, seeds: Seeds, stream: str = "service") -> Iterator[float]:
    """Yield the work of one tuple after the other (us at speed 1), drawn from a named stream."""
    service = plan.cluster.service
    return iterate_samples(service, None if isinstance(service, Constant) else seeds.stream(stream))


def link_of(
    env: simpy.Environment,
    seeds: Seeds,
    plan: Plan,
    name: str,
    tier: Tier,
    receive: Callable[[T], object],
    *,
    once: bool = True,
) -> Link[T]:
    """Return a link of the cluster; with ``once`` its receiver gets no message twice."""
    noise = plan.cluster.noise
    rng = seeds.stream(f"{name}/link") if noise.is_random else None
    return Link(env, tier, receive, noise, rng, once=once)


def has_room(station: AnyStation, limit: int | None, expected: int = 0) -> bool:
    """Return whether a queue of at most ``limit`` items takes one more.

    ``expected`` items are on their way to the station. An idle worker takes an item at once.
    """
    waiting = station.waiting + expected
    return limit is None or waiting < limit or station.inside.value + expected == 0


def admits(station: AnyStation, expected: int = 0) -> bool:
    """Return whether a worker takes a tuple from the log; a full one that drops sheds it.

    ``expected`` tuples are on their way. Marks need no place, because serving them takes no time.
    """
    worker = station.worker
    return worker.when_full == "block" or has_room(station, worker.queue_limit, expected)


def check_all(stations: Iterable[AnyStation], links: Iterable[AnyLink]) -> None:
    """Assert conservation and Little's law at every station, and conservation on every link."""
    for station in stations:
        station.check()
    for link in links:
        link.check()


def kills_of(batches: Iterable[int], end: float = inf) -> tuple[Fault, ...]:
    """Return a kill of each interrupted micro-batch before ``end``, in order."""
    return tuple([Fault("kill", batch) for batch in sorted(batches) if batch < end])


# ---------------------------------------------------------------------------------- checkpoints


class Restorable(Protocol):
    """A machine that can return to an earlier state."""

    def saved(self) -> object:
        """Return the content of a checkpoint."""

    def restore(self, saved: object) -> None:
        """Restore the state of a checkpoint; forget everything else."""


class Revocable:
    """A record, made of lists that only grow, whose latest part can be undone."""

    __slots__ = ("_lengths", "_lists")

    def __init__(self, *lists: list[Any]) -> None:
        self._lists = lists
        self.save()

    def save(self) -> None:
        """Keep everything so far: no failure undoes it."""
        self._lengths = [len(each) for each in self._lists]

    def go_back(self) -> None:
        """Forget everything since the last :meth:`save`, because it will happen again."""
        for each, length in zip(self._lists, self._lengths, strict=True):
            del each[length:]


class Checkpoint:
    """The state to which a worker returns when it fails: the state at its last mark."""

    __slots__ = ("_is_over", "_machine", "_record", "_saved", "batch", "interrupted", "is_kept")

    def __init__(self, plan: Plan, worker: str, machine: Restorable, record: Revocable) -> None:
        self.batch = 0
        """Micro-batch, or flush, at which the worker is."""
        self.interrupted: set[int] = set()
        """Micro-batches in which the worker failed."""
        self.is_kept = any(
            isinstance(fault, Fail) and fault.worker == worker for fault in plan.faults
        )
        """True if a checkpoint is kept at all: only if the plan lets the worker fail."""
        self._machine, self._record = machine, record
        self._saved = machine.saved() if self.is_kept else None
        self._is_over = False

    def save(self, batch: int, *, is_flush: bool) -> None:
        """Keep the state at the mark of a micro-batch, or of the end of the stream."""
        if self.is_kept:
            self._saved = self._machine.saved()
            self._record.save()
        self.batch, self._is_over = batch + 1, is_flush

    def restore(self) -> None:
        """Return machine and record to the last mark, after a failure."""
        if not self._is_over:
            self.interrupted.add(self.batch)
        self._machine.restore(self._saved)
        self._record.go_back()
