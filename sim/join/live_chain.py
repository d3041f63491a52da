"""The model's chain, whose right end comes and goes while tuples flow, and that end in time.

Source: docs/join.md, section 7; the tables of ``model.join.live``.

Rules of this file:

* The phases and their guards are those of the model. The source hands over one run of S at a time,
  so the queue of the old end is empty when the run after the change is handed over: MARK is the
  first task behind it.
* An epoch does not end while a boundary is closed in both directions, or while the source of S
  waits for END. A worker that gets no more R may stay for several epochs.
* The next change begins when the one before it is over. A failure takes a change back with its
  epoch.
* MARK follows what the log has sent to the old end. END goes from the first leaving worker to its
  neighbour. Both are messages, and take the time of their links.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from model.join import chain
from model.join.live import ADDED, LEAVING, REDIRECTED
from model.join.state import Lane, Worker
from model.vocabulary import Step
from model.vocabulary.join import R, S
from sim.join.content import RankArray
from sim.join.line import LOG, Line
from sim.join.machine import NOTHING, Service
from sim.join.model_chain import ModelChain


class LiveChain(ModelChain):
    """A chain with the numbered protocol, which may grow and shrink at the right end.

    Several workers that come or go together are one new or one leaving end.
    """

    boundary = 0
    """Number of the last worker that neither comes nor goes."""
    _kept_boundary = 0

    @property
    def phase(self) -> str:
        """Phase of the change, as in ``model.join.live``; empty without one."""
        return self._state.phase

    @property
    def workers(self) -> int:
        """Number of workers now."""
        return len(self._state.workers)

    def begin(self, epoch: int, *, flush: bool) -> None:
        """Begin an epoch; a flush gives up the change, because nothing expires any more."""
        super().begin(epoch, flush=flush)
        self.boundary = self._kept_boundary
        if flush:
            self._enter("")

    def commit(self) -> Sequence[Step]:
        """Keep the state of the chain; return rejections and recorded steps of the epoch."""
        self._kept_boundary = self.boundary
        return super().commit()

    def is_over(self) -> bool:
        """Return whether the chain is quiet, and no tuple waits for a change."""
        return self._state.phase not in (ADDED, REDIRECTED) and super().is_over()

    # ------------------------------------------------------------------------------- a change

    def grow(self, by: int) -> None:
        """Add workers at the right end; the boundary to them is closed until :meth:`open`."""
        lane = Lane(store=RankArray().as_ranks())
        state = self._state
        self.boundary = self.workers - 1
        self._state = state._replace(
            workers=(*state.workers, *[Worker(lane, lane)] * by),
            right=(*state.right, *[()] * by),
            left=(*state.left, *[()] * by),
            phase=ADDED,
        )

    def open(self) -> Service:
        """Read MARK at the old end: everything that entered there has been taken."""
        self._enter("")
        return NOTHING

    def stop_r(self, by: int) -> None:
        """Send no more R to workers at the right end, so that they can leave."""
        self.boundary = self.workers - 1 - by
        self._enter(LEAVING)

    def can_redirect(self) -> bool:
        """Return whether no R is left at the leaving workers, or on its way there."""
        staying, leaving = self._sides()
        has_r = any(len(worker.r.store) or worker.r.copies for worker in leaving)
        return self._state.phase == LEAVING and not has_r and not staying[-1].r.copies

    def redirect(self) -> None:
        """Let S enter at the neighbour, once it has read END."""
        self._enter(REDIRECTED)

    def can_leave(self) -> bool:
        """Return whether the leaving workers have nothing left and nothing under way."""
        _, leaving = self._sides()
        has_s = any(len(worker.s.store) or worker.s.copies for worker in leaving)
        return self._state.phase == REDIRECTED and not has_s

    def leave(self) -> Service:
        """Read END at the neighbour: the leaving workers have left."""
        state, n = self._state, self.boundary + 1
        self._state = state._replace(
            workers=state.workers[:n],
            right=state.right[: n - 1],
            left=state.left[: n - 1],
            phase="",
        )
        self._known = {pair: known for pair, known in self._known.items() if max(pair) < n}
        return NOTHING

    def _sides(self) -> tuple[Sequence[Worker], Sequence[Worker]]:
        workers, n = self._state.workers, self.boundary + 1
        return workers[:n], workers[n:]

    def _enter(self, phase: str) -> None:
        self._state = self._state._replace(phase=phase)

    # -------------------------------------------------------------------------------- services

    def receive(self, worker: int, sender: int, message: object) -> Service:
        """Take a message; a hint from or to a worker that has left says nothing any more."""
        if max(worker, sender) >= self.workers:
            return NOTHING
        return super().receive(worker, sender, message)

    def look(self, worker: int) -> Service:
        """Let a worker drop and send all that it may."""
        return NOTHING if worker >= self.workers else super().look(worker)

    def _forward(self, worker: int) -> None:
        if self._state.phase != REDIRECTED or worker <= self.boundary:
            super()._forward(worker)
            return
        # S goes on whatever the loads are, as much as the credit allows.
        setup = replace(self._setup, free=True)
        while blocks := list(chain.forwards(setup, self._state, worker, S)):
            self._step(blocks[-1])

    def _is_closed(self, worker: int, stream: str) -> bool:
        if not self._state.phase:
            return False
        to_the_right = (worker, stream) == (self.boundary, R)
        to_the_left = (worker, stream) == (self.boundary + 1, S)
        return to_the_right or (to_the_left and self._state.phase == ADDED)


class RightEnd:
    """The right end of a chain; ``resized(before, after, began_us)`` is called after a change."""

    def __init__(
        self, line: Line, machine: LiveChain, resized: Callable[[int, int, float], object]
    ) -> None:
        self._line, self._machine, self._resized = line, machine, resized
        self._before = 0  # number of workers before the change; 0 without one
        self._began_us = 0.0
        self._has_sent_end = False

    @property
    def is_held(self) -> bool:
        """Return whether tuples of S wait until their new end has read END."""
        return self._machine.phase == REDIRECTED

    def begin(self) -> None:
        """Take the state of the machine, at the start of an epoch or after a failure."""
        self._has_sent_end = False
        self._line.resize(self._machine.workers)
        self._before = self._machine.workers if self._machine.phase else 0

    def change(self, wanted: int, now_us: float) -> None:
        """Begin to add or remove workers, unless a change is under way."""
        machine, line, n = self._machine, self._line, self._line.workers
        if self._before or wanted == n:
            return
        self._before, self._began_us = n, now_us
        if wanted > n:
            machine.grow(wanted - n)
            line.resize(wanted)
            line.tell(LOG, n - 1, machine.open)
        else:
            machine.stop_r(n - wanted)

    def go_on(self, *, is_taken: bool) -> None:
        """Take the next step of a change; ``is_taken``: no tuple of S comes from the log now."""
        if not self._before:
            return
        machine, line = self._machine, self._line
        if is_taken and machine.can_redirect():
            machine.redirect()
            line.look(everyone=True)
        if machine.can_leave() and not self._has_sent_end:
            self._has_sent_end = True
            first = machine.boundary + 1
            line.tell(f"worker-{first}", first - 1, machine.leave)
        if not machine.phase:
            before, self._before = self._before, 0
            self._has_sent_end = False
            line.resize(machine.workers)
            self._resized(before, machine.workers, self._began_us)
