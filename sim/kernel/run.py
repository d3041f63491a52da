"""Timed runs: one SimPy environment with sources, log, trigger, faults and the cluster of a room.

Rules of this file:

* The log decides about arrivals, and about nothing else; the cluster of a room never does.
* The workload of a run records every decision of timing that untimed logic needs: the model or
  Spark, given the workload, must observe the trace of the run.
"""

import gc
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

import simpy

from model.vocabulary import Event, Trace, Workload
from sim.kernel.faults import Faultable, inject
from sim.kernel.link import AnyLink, Link
from sim.kernel.log import ONE_STREAM, Log
from sim.kernel.plan import Plan
from sim.kernel.recorder import Series, Summary
from sim.kernel.seeds import Seeds
from sim.kernel.source import Tuple
from sim.kernel.station import Station
from sim.kernel.trigger import Trigger


class TimedCluster(Protocol):
    """The part of a run that a room adds: workers and links behind the log."""

    @property
    def workers(self) -> Mapping[str, Faultable]:
        """Workers of the cluster, by their names in faults."""

    @property
    def links(self) -> Mapping[str, AnyLink]:
        """Links of the cluster, by their names in faults."""

    def admits(self, item: Tuple) -> bool:
        """Return whether the cluster has room for a tuple; otherwise the log sheds it."""

    def arrive(self, event: Event) -> None:
        """Take an event that has arrived in the log."""

    def end_batch(self) -> None:
        """End the micro-batch: later arrivals belong to the next one."""

    def flush(self) -> None:
        """End the stream: nothing more arrives."""

    def check(self) -> None:
        """Assert conservation and Little's law at every station and link."""


ClusterT = TypeVar("ClusterT", bound=TimedCluster)


class Arrived(NamedTuple):
    """Arrivals of a run, and the cuts of its trigger."""

    events: tuple[Event, ...]
    cuts: tuple[int, ...]
    """Positions of the cuts, without the end of the last batch."""
    ends_us: tuple[float, ...]
    """Kernel time at which each batch ended."""
    counts: Mapping[str, int]
    """See :meth:`sim.kernel.log.Log.counts`."""


@dataclass(frozen=True, slots=True, eq=False)
class TimedRun:
    """The results of a timed run."""

    plan: Plan
    workload: Workload
    """All decisions of timing: arrival order, micro-batches, admissions, measured times. The model
    or Spark, given the workload, must observe the trace (docs/simulation.md, section 3)."""
    trace: Trace
    series: Series
    """Columns over time, by name; ``time_us`` is one of them."""
    summary: Summary
    """Figures by name."""

    @property
    def digest(self) -> str:
        """SHA-256 of the run with all its figures, in hexadecimal."""
        sha = hashlib.sha256(self.trace.digest().encode("ascii"))
        for part in (self.workload.to_json(), *self.summary.items()):
            sha.update(repr(part).encode("utf-8"))
        for name, column in self.series.items():
            sha.update(name.encode("utf-8"))
            sha.update(column.tobytes())
        return sha.hexdigest()


def run(
    plan: Plan,
    seed: int,
    build: Callable[[simpy.Environment, Seeds], ClusterT],
    streams: Sequence[str] = ONE_STREAM,
) -> tuple[ClusterT, Arrived]:
    """Run a plan to its end; ``build`` makes the cluster behind the log.

    The same seed gives the same run. Raise ``ValueError`` with one sentence that names the
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

        trigger = Trigger(env, plan.trigger, end_batch, room.flush if plan.flush else lambda: None)
        log = Log(env, plan, seeds, room.admits, arrive, trigger.arrivals_ended, streams)
        # Faults are scheduled before the first tuple, so that they come first at their instant.
        inject(env, plan.faults, room.workers, {**log.links, **room.links})
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


@contextmanager
def uncollected() -> Iterator[None]:
    """Switch off Python's collector of cyclic garbage in this block.

    A run keeps nearly all its objects until its end, and its tuples make no cycles. The collector
    would scan all of them again and again, which takes half of the time of a run.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            # Living objects are kept on purpose: freezing makes them old, so that no scan follows.
            if not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
            gc.enable()
