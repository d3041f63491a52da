"""Stations: the queue of a worker that slows down, pauses, fails and recovers.

Rules of this file:

* Times are float microseconds of kernel time; *work* is service time at speed 1.
* Items are served one at a time, in the order of their arrival.
* Each item costs one callback on one Timeout, no process.
* Every offered item is counted as served, lost, at the door or inside.
* Nothing is dropped here: a worker that drops does so before the log lets an item in
  (:func:`sim.timed_room.has_room`), and its own queue has no limit.
"""

from collections import deque
from collections.abc import Callable
from math import inf, isclose, prod
from typing import Any, Generic, TypeAlias, TypeVar

import simpy

from model.vocabulary.settings import require
from sim.kernel.link import Link
from sim.kernel.plan import Worker
from sim.kernel.recorder import Level

T = TypeVar("T")


class _Job(Generic[T]):
    """An item inside a station or at its door. It is changed in place, for speed."""

    __slots__ = ("arrived_us", "is_done", "item", "left_us", "since_us", "started_us", "work_us")

    def __init__(self, item: T, arrived_us: float, work_us: float) -> None:
        self.item = item
        self.arrived_us = arrived_us
        self.work_us = self.left_us = work_us
        self.started_us = inf  # when service began; infinite before
        self.since_us = inf  # when service began or last continued
        self.is_done = False


class Station(Generic[T]):
    """A :class:`Worker` at work.

    ``done(item, arrived_us, started_us)`` is called when an item has been served, at ``env.now``.
    ``work(item)``, if given, is called when the service of an item begins, before ``done`` of the
    previous item. It returns the work of the item (us), which may depend on that of earlier ones.
    ``more(item)``, if given, is called when the work on an item is done; it returns further work
    on the same item, which follows at once, or ``None`` for none.

    A failure loses all items inside and at the door, and all that are offered until recovery. With
    ``restart`` the queue is durable instead: the worker goes back to its last :meth:`checkpoint`,
    ``restart()`` is called, and on recovery the worker serves again all items since then.

    The Timeout of an interrupted service still fires, without effect: after a slowdown or a failure
    ``env.run()`` may end later than the last event of the run.
    """

    __slots__ = (
        "_done",
        "_door",
        "_end",
        "_env",
        "_failures",
        "_kept",
        "_more",
        "_pauses",
        "_queue",
        "_restart",
        "_resting",
        "_serving",
        "_slowdowns",
        "_speed",
        "_stay_us",
        "_work",
        "blocked",
        "busy",
        "inside",
        "lost",
        "offered",
        "repeated",
        "served",
        "worker",
    )

    def __init__(
        self,
        env: simpy.Environment,
        worker: Worker,
        done: Callable[[T, float, float], object],
        work: Callable[[T], float] | None = None,
        restart: Callable[[], object] | None = None,
        more: Callable[[T], float | None] | None = None,
    ) -> None:
        self.worker = worker
        self.offered = 0
        self.served = 0
        self.lost = 0
        """Number of items inside or at the door at a failure, or offered during one."""
        self.repeated = 0
        """Number of times that an item already served was queued again by a failure."""
        self.blocked = 0
        """Number of items that had to wait at the door."""
        self.inside = Level()
        """Number of items in queue and service, over time."""
        self.busy = Level()
        """1 while the worker works, else 0, over time."""
        self._env = env
        self._done = done
        self._work = work
        self._more = more
        self._restart = restart
        self._speed = worker.speed
        self._queue: deque[_Job[T]] = deque()
        self._door: deque[tuple[_Job[T], Callable[[], object] | None]] = deque()
        self._serving: _Job[T] | None = None
        self._end: simpy.Event | None = None  # of the service
        self._resting: _Job[T] | None = None  # its service was interrupted
        self._kept: deque[_Job[T]] = deque()  # since the last checkpoint, where it restarts
        self._slowdowns: list[float] = []
        self._pauses = 0
        self._failures = 0
        self._stay_us = 0.0  # of the items that have left, together

    @property
    def at_door(self) -> int:
        """Number of items waiting to enter the queue."""
        return len(self._door)

    @property
    def waiting(self) -> int:
        """Number of items in the queue."""
        return len(self._queue)

    def offer(
        self, item: T, work_us: float = 0.0, entered: Callable[[], object] | None = None
    ) -> bool:
        """Offer the worker an item and its work (us); return whether the item waits at the door.

        If so, the sender should stop offering until ``entered()`` is called.
        """
        now = self._env.now
        self.offered += 1
        if self._failures and self._restart is None:
            self.lost += 1
            return False
        # No item overtakes those at the door, even if there is room for a moment.
        if not self._door and self._has_room():
            self._enter(_Job(item, now, work_us), now)
            return False
        self.blocked += 1
        self._door.append((_Job(item, now, work_us), entered))
        return True

    def checkpoint(self) -> None:
        """Set a checkpoint: items served so far are not served again after a failure."""
        kept = self._kept
        while kept and kept[0].is_done:
            kept.popleft()

    def pause(self) -> None:
        """Stop working; every item stays in its place. Pauses add up."""
        self._pauses += 1
        self._rest()

    def resume(self) -> None:
        """Undo one pause; after the last one, work continues where it stopped."""
        require(self._pauses > 0, "the number of pauses to undo", self._pauses, "above 0")
        self._pauses -= 1
        self._go_on()

    def slow(self, factor: float) -> None:
        """Work ``factor`` times slower from now on. Slowdowns multiply."""
        require(0 < factor < inf, "factor", factor, "finite and above 0")
        self._slowdowns.append(factor)
        self._change_speed()

    def unslow(self, factor: float) -> None:
        """Undo a slowdown by ``factor``."""
        require(factor in self._slowdowns, "factor", factor, "that of a slowdown in force")
        self._slowdowns.remove(factor)
        self._change_speed()

    def fail(self) -> None:
        """Fail: lose all items, or go back to the last checkpoint (see the class)."""
        self._failures += 1
        self._rest()
        if self._restart is None:
            self._lose_all()
        elif self._failures == 1:
            self._roll_back()
            self._restart()

    def recover(self) -> None:
        """Undo one failure; after the last one the worker works again."""
        require(self._failures > 0, "the number of failures to undo", self._failures, "above 0")
        self._failures -= 1
        self._go_on()

    def check(self) -> None:
        """Assert conservation of items and Little's law for the run so far.

        Little's law is an identity here: the area under the number inside equals the time that
        items spent inside, including items that are still inside. Source: J. D. C. Little, "A
        proof for the queuing formula L = lambda W", Operations Research 9(3), 1961.
        """
        now = self._env.now
        jobs = self._inside()
        left = self.served + self.lost + self.at_door
        came = self.offered + self.repeated
        assert came == left + len(jobs), (came, left, len(jobs))
        stay_us = self._stay_us + sum(now - job.arrived_us for job in jobs)
        area_us = float(self.inside.integral_us(now))
        assert isclose(area_us, stay_us, rel_tol=1e-6, abs_tol=1e-3), (area_us, stay_us)

    def close(self) -> None:
        """Drop all callbacks after the run.

        They refer to this station, and a reference cycle would keep the whole run in memory.
        """
        self._done = _ignore
        self._work = self._restart = self._more = None

    def _inside(self) -> list[_Job[T]]:
        """Return the items inside, in the order in which they will leave."""
        first = [each for each in (self._serving, self._resting) if each is not None]
        return [*first, *self._queue]

    def _is_idle(self) -> bool:
        return self._serving is None and not self._pauses and not self._failures

    def _has_room(self) -> bool:
        limit = self.worker.queue_limit if self.worker.when_full == "block" else None
        return limit is None or len(self._queue) < limit or self._is_idle()

    def _enter(self, job: _Job[T], now: float) -> None:
        self.inside.set(self.inside.value + 1, now)
        if self._restart is not None:
            self._kept.append(job)
        if self._is_idle():
            self._serve(job, now)
        else:
            self._queue.append(job)

    def _serve(self, job: _Job[T], now: float) -> None:
        if job.started_us == inf:
            job.started_us = now
            if self._work is not None:
                job.left_us = self._work(job.item)
        job.since_us = now
        self._end = simpy.Timeout(self._env, job.left_us / self._speed)
        self._end.callbacks.append(self._finish)
        self._serving = job
        if not self.busy.value:
            self.busy.set(1, now)

    def _finish(self, end: simpy.Event) -> None:
        job = self._serving
        if job is None or end is not self._end:
            return  # interrupted by a pause, a slowdown or a failure since
        now = self._env.now
        more_us = None if self._more is None else self._more(job.item)
        self._serving = None
        if more_us is not None:
            job.left_us = more_us
            self._serve(job, now)
            return
        job.is_done = True
        self.served += 1
        self._stay_us += now - job.arrived_us
        self.inside.set(self.inside.value - 1, now)
        if self._queue:
            self._serve(self._queue.popleft(), now)
        if self._door:
            self._let_in()
        if self._serving is None:
            self.busy.set(0, now)
        self._done(job.item, job.arrived_us, job.started_us)

    def _let_in(self) -> None:
        """Let items at the door enter while there is room."""
        now = self._env.now
        while self._door and self._has_room():
            job, entered = self._door.popleft()
            job.arrived_us = now
            self._enter(job, now)
            if entered is not None:
                entered()

    def _rest(self) -> None:
        """Interrupt the service of an item, and keep what is left of its work."""
        now, job = self._env.now, self._serving
        if job is not None:
            job.left_us = max(0.0, job.left_us - (now - job.since_us) * self._speed)
            self._resting, self._serving, self._end = job, None, None
        self.busy.set(0, now)

    def _go_on(self) -> None:
        """Continue the interrupted service, or else serve the first of the queue."""
        if self._pauses or self._failures:
            return
        job, self._resting = self._resting, None
        if job is None and self._queue and self._is_idle():
            job = self._queue.popleft()
        if job is not None:
            self._serve(job, self._env.now)
        self._let_in()

    def _change_speed(self) -> None:
        self._rest()
        self._speed = self.worker.speed / prod(self._slowdowns)
        self._go_on()

    def _lose_all(self) -> None:
        now = self._env.now
        gone = self._inside()
        self._stay_us += sum(now - job.arrived_us for job in gone)
        door, self._door = self._door, deque()
        self._resting = None
        self._queue.clear()
        self.lost += len(gone) + len(door)
        self._set_inside(0, now)
        for _, entered in door:
            if entered is not None:
                entered()

    def _roll_back(self) -> None:
        """Queue all items since the last checkpoint as if they had just arrived."""
        now = self._env.now
        for job in self._kept:
            if job.is_done:
                self.repeated += 1
                job.arrived_us = now  # the first stay has been counted
            job.left_us, job.started_us, job.is_done = job.work_us, inf, False
        self._resting = None
        self._queue = deque(self._kept)
        self._set_inside(len(self._queue), now)

    def _set_inside(self, items: int, now: float) -> None:
        """Set the number of items inside, unless it is the same: each change has a meaning.

        The last change of the level is the time at which the last item left.
        """
        if self.inside.value != items:
            self.inside.set(items, now)


AnyStation: TypeAlias = Station[Any]
"""A station, whatever it serves."""


def connect(link: Link[T], offer: Callable[[T, Callable[[], object]], bool]) -> None:
    """Make ``link`` deliver through ``offer``, and hold it while a message waits at the door."""

    def deliver(message: T) -> None:
        if offer(message, link.release):
            link.hold()

    link.receiver = deliver


def _ignore(*_: object) -> None:
    """Ignore the fate of an item."""
