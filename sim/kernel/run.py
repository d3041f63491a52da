"""Runs: one SimPy environment with sources, log, trigger, faults and the cluster of a room.

Rules of this file:

* A room adds workers and links and decides nothing about arrivals; the log decides nothing else.
* Whatever timing decided and untimed logic needs is in the workload of a run: the model or Spark,
  given it, must observe the trace of the run.
"""

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

import simpy

from model.vocabulary import Event, Trace, Workload
from sim.kernel.faults import Faultable, inject
from sim.kernel.link import Link
from sim.kernel.log import ONE_STREAM, Log
from sim.kernel.plan import Plan
from sim.kernel.recorder import Series, Summary, digest_of
from sim.kernel.seeds import Seeds
from sim.kernel.source import Tuple
from sim.kernel.station import Station
from sim.kernel.trigger import Trigger


class TimedCluster(Protocol):
    """What a room adds to a run: its part behind the log."""

    @property
    def workers(self) -> Mapping[str, Faultable]:
        """Workers of the cluster, by the names that faults use."""
        ...

    @property
    def links(self) -> Mapping[str, Link[Any]]:
        """Links of the cluster, by the names that faults use."""
        ...

    def admits(self, item: Tuple) -> bool:
        """Say whether the log lets a tuple in, or sheds it because the cluster is full."""
        ...

    def arrive(self, event: Event) -> None:
        """Take what has arrived in the log."""

    def end_batch(self) -> None:
        """End the micro-batch: what arrives from now on belongs to the next one."""

    def flush(self) -> None:
        """End the stream: nothing arrives any more."""

    def check(self) -> None:
        """Assert conservation and Little's law at every station and link."""


ClusterT = TypeVar("ClusterT", bound=TimedCluster)


class Arrived(NamedTuple):
    """What arrived in a run, and where the trigger cut it."""

    events: tuple[Event, ...]
    cuts: tuple[int, ...]
    """Positions of the cuts, without the end of the last batch."""
    ends_us: tuple[float, ...]
    """Kernel time at which each batch ended."""
    counts: Mapping[str, int]
    """See :meth:`sim.kernel.log.Log.counts`."""


@dataclass(frozen=True, slots=True, eq=False)
class TimedRun:
    """What a timed run gave."""

    plan: Plan
    workload: Workload
    """Everything that timing decided: arrival order, micro-batches, admissions, measured times. The
    model or Spark, given this, must observe the trace (docs/simulation.md, section 3)."""
    trace: Trace
    series: Series
    """Columns of one table over time; ``time_us`` is one of them."""
    summary: Summary
    """Figures by name."""

    @property
    def digest(self) -> str:
        """SHA-256 over everything in this run, in hexadecimal."""
        return digest_of(self.trace, self.workload, self.summary, self.series)


def run(
    plan: Plan,
    seed: int,
    build: Callable[[simpy.Environment, Seeds], ClusterT],
    streams: Sequence[str] = ONE_STREAM,
) -> tuple[ClusterT, Arrived]:
    """Run a plan until everything is over; ``build`` makes the room behind the log.

    The same seed gives the same run. Raises ``ValueError`` with one sentence that names the
    offending value, for example the unknown target of a fault.
    """
    with uncollected():
        env, seeds = simpy.Environment(), Seeds(seed)
        room = build(env, seeds)
        ends: list[tuple[int, float]] = []
        arrivals = 0

        def end_batch() -> None:
            ends.append((arrivals, env.now))
            room.end_batch()

        def arrive(event: Event) -> None:
            nonlocal arrivals
            trigger.before_arrival(event.arrival_us - plan.epoch_us)
            room.arrive(event)
            arrivals += 1
            trigger.after_arrival()

        trigger = Trigger(env, plan.trigger, end_batch, room.flush if plan.flush else _nothing)
        log = Log(env, plan, seeds, room.admits, arrive, trigger.arrivals_ended, streams)
        # Faults are set up before the first tuple, so that they come first at their instant.
        workers, links = {**log.stations, **room.workers}, {**log.links, **room.links}
        inject(env, plan.faults, workers, links)
        log.start()
        env.run()
        log.check()
        room.check()
        log.close()
        for part in (*room.workers.values(), *room.links.values()):
            if isinstance(part, Station | Link):
                part.close()
        cuts = tuple(position for position, _ in ends[:-1])
        ends_us = tuple(end_us for _, end_us in ends)
        return room, Arrived(tuple(log.events), cuts, ends_us, log.counts())


def _nothing() -> None:
    """Do not flush."""


@contextmanager
def uncollected() -> Iterator[None]:
    """Run without Python's collector of cyclic garbage.

    A run keeps nearly everything that it makes until it is over, and makes no cycles by the tuple.
    The collector would go through all of that again and again: half of the time of a run.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            # What is still there is kept on purpose: it is old now, and not gone through at once.
            if not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
            gc.enable()
