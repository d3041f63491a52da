"""Cluster: workers with a queue, that serve, slow down, pause and fail.

Rules of this file:

* Times are float microseconds of kernel time; *work* is service time at speed 1.
* Tuples are served in the order in which they came, by any of the worker's servers.
* One callback on one Timeout per tuple, no process.
* Whatever goes wrong with a tuple is counted: every tuple offered is served, dropped, lost, at the
  door or inside.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from math import inf, isclose, prod
from typing import Generic, Literal, TypeVar

import numpy as np
import simpy

from sim.distributions import Constant, Distribution, endless, require
from sim.network import HERE, Link, Place
from sim.recorder import Level

T = TypeVar("T")

TEN_MICROSECONDS = Constant(10.0)


class Offer(Enum):
    """What became of a tuple that was offered."""

    ENTERED = "entered"
    BLOCKED = "blocked"
    """It stands at the door; the sender should offer nothing more until told that it entered."""
    DROPPED = "dropped"
    """Thrown away, because the queue was full or the worker had failed."""


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker as data."""

    service: Distribution = TEN_MICROSECONDS
    """Work of a tuple, unless the tuple brings its own."""
    speed: float = 1.0
    """Work done per microsecond and server; 0.1 is a worker ten times slower."""
    servers: int = 1
    queue_limit: int | None = None
    """Tuples that may wait, not counting those in service; ``None``: any number."""
    when_full: Literal["block", "drop"] = "block"
    """A tuple for which the queue has no room waits at the door, and the sender is told to stop
    (back-pressure); or it is thrown away."""
    place: Place = HERE

    def __post_init__(self) -> None:
        require(0 < self.speed < inf, "Worker.speed", self.speed, "finite and above 0")
        require(self.servers >= 1, "Worker.servers", self.servers, "at least 1")
        good = self.when_full in ("block", "drop")
        require(good, "Worker.when_full", self.when_full, "'block' or 'drop'")
        if self.queue_limit is not None:
            require(self.queue_limit >= 0, "Worker.queue_limit", self.queue_limit, "at least 0")


class _Job(Generic[T]):
    """A tuple inside a worker or at its door. Changed in place, for speed."""

    __slots__ = ("arrived_us", "item", "since_us", "started_us", "work_us")

    def __init__(self, item: T, arrived_us: float, work_us: float) -> None:
        self.item = item
        self.arrived_us = arrived_us
        self.work_us = work_us
        """Work left when service began or last went on."""
        self.started_us = inf
        """When service began; infinite before."""
        self.since_us = inf
        """When service began or last went on."""


class Station(Generic[T]):
    """A :class:`Worker` at work.

    ``done(item, arrived_us, started_us)`` is called when a tuple has been served; ``env.now`` is
    the time. ``work``, if given, is asked for the work of a tuple when its service begins: where
    that depends on what the worker has done before. It is asked before the end of the service
    before is told. Raises ``ValueError`` for a random service
    time without ``rng``.

    The Timeout of an interrupted service still fires, without effect: after a slowdown or a failure
    ``env.run()`` may end later than the last thing that happened.
    """

    __slots__ = (
        "_busy_us",
        "_done",
        "_door",
        "_draws",
        "_env",
        "_failures",
        "_pauses",
        "_queue",
        "_resting",
        "_serving",
        "_slowdowns",
        "_speed",
        "_time_of_gone_us",
        "_work",
        "blocked",
        "blocked_us",
        "dropped",
        "inside",
        "lost",
        "offered",
        "served",
        "worker",
    )

    def __init__(
        self,
        env: simpy.Environment,
        worker: Worker,
        done: Callable[[T, float, float], object],
        rng: np.random.Generator | None = None,
        work: Callable[[T], float] | None = None,
    ) -> None:
        self.worker = worker
        self.offered = 0
        self.served = 0
        self.dropped = 0
        """Thrown away because the queue was full."""
        self.lost = 0
        """Inside or at the door when the worker failed, or offered while it was down."""
        self.blocked = 0
        """Tuples that had to wait at the door."""
        self.blocked_us = 0.0
        """Time that those among them that entered had waited there."""
        self.inside = Level()
        """Tuples in queue and service, over time."""
        self._env = env
        self._done = done
        self._work = work
        self._draws = endless(worker.service, rng)
        self._speed = worker.speed
        self._queue: deque[_Job[T]] = deque()
        self._door: deque[tuple[_Job[T], Callable[[], object] | None]] = deque()
        self._busy_us = 0.0  # of service that has ended or was interrupted
        self._serving: dict[simpy.Event, _Job[T]] = {}
        self._resting: list[_Job[T]] = []
        self._slowdowns: list[float] = []
        self._pauses = 0
        self._failures = 0
        self._time_of_gone_us = 0.0

    @property
    def at_door(self) -> int:
        """Tuples waiting to enter the queue."""
        return len(self._door)

    def utilisation(self) -> float:
        """Share of the servers' time so far in which they worked; 0 when no time has passed."""
        now = self._env.now
        busy_us = self._busy_us + sum(now - job.since_us for job in self._serving.values())
        return busy_us / (now * self.worker.servers) if now > 0 else 0.0

    def offer(
        self,
        item: T,
        work_us: float | None = None,
        entered: Callable[[], object] | None = None,
    ) -> Offer:
        """Give the worker a tuple, with its own work if it has one.

        After ``BLOCKED``, ``entered()`` is called once: when the tuple enters, or is lost.
        """
        now = self._env.now
        # Drawn even for a tuple that is lost, so that losses move no other tuple's work.
        job = _Job(item, now, next(self._draws) if work_us is None else work_us)
        self.offered += 1
        if self._failures:
            self.lost += 1
            return Offer.DROPPED
        # Nobody overtakes those at the door, even if there is room for a moment.
        if not self._door and self._has_room():
            self._enter(job)
            return Offer.ENTERED
        if self.worker.when_full == "drop":
            self.dropped += 1
            return Offer.DROPPED
        self.blocked += 1
        self._door.append((job, entered))
        return Offer.BLOCKED

    def pause(self) -> None:
        """Stop working; everything stays where it is. Pauses add up."""
        self._pauses += 1
        self._rest()

    def resume(self) -> None:
        """Take back one pause; after the last one, work goes on where it stopped."""
        require(self._pauses > 0, "the number of pauses to take back", self._pauses, "above 0")
        self._pauses -= 1
        self._go_on()

    def slow(self, factor: float) -> None:
        """Work ``factor`` times slower from now on. Slowdowns multiply."""
        require(0 < factor < inf, "factor", factor, "finite and above 0")
        self._slowdowns.append(factor)
        self._change_speed()

    def unslow(self, factor: float) -> None:
        """Take back a slowdown by ``factor``."""
        require(factor in self._slowdowns, "factor", factor, "that of a slowdown in force")
        self._slowdowns.remove(factor)
        self._change_speed()

    def fail(self) -> None:
        """Lose everything inside and at the door, and all that is offered until it recovers."""
        self._failures += 1
        now = self._env.now
        self._rest()
        gone = [*self._resting, *self._queue]
        self._time_of_gone_us += sum(now - job.arrived_us for job in gone)
        door, self._door = self._door, deque()
        self._resting.clear()
        self._queue.clear()
        self.lost += len(gone) + len(door)
        self.inside.set(0, now)
        for _, entered in door:
            if entered is not None:
                entered()

    def recover(self) -> None:
        """Take back one failure; after the last one the worker is empty and works again."""
        require(
            self._failures > 0, "the number of failures to take back", self._failures, "above 0"
        )
        self._failures -= 1

    def check(self) -> None:
        """Assert conservation of tuples and Little's law for the run so far.

        Little's law as an identity: the area under the number inside equals the time that tuples
        spent inside, those still inside included. Source: J. D. C. Little, "A proof for the queuing
        formula L = lambda W", Operations Research 9(3), 1961.
        """
        now = self._env.now
        jobs = [*self._serving.values(), *self._resting, *self._queue]
        left = self.served + self.dropped + self.lost + self.at_door
        assert self.offered == left + len(jobs), (self.offered, left, len(jobs))
        time_us = self._time_of_gone_us + sum(now - job.arrived_us for job in jobs)
        area_us = self.inside.integral_us(now)
        assert isclose(area_us, time_us, rel_tol=1e-6, abs_tol=1e-3), (area_us, time_us)

    def _has_idle_server(self) -> bool:
        return not self._pauses and len(self._serving) < self.worker.servers

    def _has_room(self) -> bool:
        limit = self.worker.queue_limit
        return limit is None or len(self._queue) < limit or self._has_idle_server()

    def _enter(self, job: _Job[T]) -> None:
        now = job.arrived_us
        self.inside.set(self.inside.value + 1, now)
        if self._has_idle_server():
            self._serve(job, now)
        else:
            self._queue.append(job)

    def _serve(self, job: _Job[T], now: float) -> None:
        if job.started_us == inf:
            job.started_us = now
            if self._work is not None:
                job.work_us = self._work(job.item)
        job.since_us = now
        end = simpy.Timeout(self._env, job.work_us / self._speed)
        end.callbacks.append(self._finish)
        self._serving[end] = job

    def _finish(self, end: simpy.Event) -> None:
        job = self._serving.pop(end, None)
        if job is None:
            return  # interrupted by a pause, a slowdown or a failure since
        now = self._env.now
        self.served += 1
        self._time_of_gone_us += now - job.arrived_us
        self._busy_us += now - job.since_us
        self.inside.set(self.inside.value - 1, now)
        if self._queue:
            self._serve(self._queue.popleft(), now)
        if self._door:
            self._let_in()
        self._done(job.item, job.arrived_us, job.started_us)

    def _let_in(self) -> None:
        """Take from the door what there is room for now."""
        now = self._env.now
        while self._door and self._has_room():
            job, entered = self._door.popleft()
            self.blocked_us += now - job.arrived_us
            job.arrived_us = now
            self._enter(job)
            if entered is not None:
                entered()

    def _rest(self) -> None:
        """Take what is in service off the servers, with the work that is left."""
        now = self._env.now
        for job in self._serving.values():
            job.work_us = max(0.0, job.work_us - (now - job.since_us) * self._speed)
            self._resting.append(job)
            self._busy_us += now - job.since_us
        self._serving.clear()

    def _go_on(self) -> None:
        """Put back on the servers what rests, then what waits."""
        if self._pauses:
            return
        now = self._env.now
        resting, self._resting = self._resting, []
        for job in resting:
            self._serve(job, now)
        while self._queue and self._has_idle_server():
            self._serve(self._queue.popleft(), now)
        self._let_in()

    def _change_speed(self) -> None:
        self._rest()
        self._speed = self.worker.speed / prod(self._slowdowns)
        self._go_on()


def connect(link: Link[T], station: Station[T]) -> None:
    """Let ``link`` deliver to ``station``, and stand still while a message waits at its door."""

    def deliver(message: T) -> None:
        if station.offer(message, entered=link.release) is Offer.BLOCKED:
            link.hold()

    link.receiver = deliver
