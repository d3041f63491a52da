"""Where the streams enter: who is let in, who is shed, and when a source pauses.

Source: docs/join.md, sections 2, 5 and 8.

Rules of this file:

* What an arrival becomes is decided once, when it is taken for the first time, and kept as durable
  as the arrival: a replayed epoch admits the same.
* A source is polled: it sees an arrival at the next multiple of ``Crew.intake_us``.
* The gate is the reference's (``model.join.oracle.Gate``).
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence

import numpy as np
import simpy

from model.join.oracle import Gate
from model.vocabulary import Event
from sim.join.columns import Columns, IntArray
from sim.join.content import BoolArray, Index
from sim.join.crew import Crew
from sim.kernel.distributions import FloatArray


class Doors:
    """Decides on arrivals, in the order in which the sources take them."""

    def __init__(
        self, arrivals: Sequence[Event], arrived: Columns, gate: Gate, index: Index
    ) -> None:
        self.arrivals = arrivals
        self.arrived = arrived
        """The same as columns."""
        self.gate = gate
        self.index = index
        self.share = 0.0
        """That is shed at present."""
        self.shed: set[int] = set()
        """Positions of what was shed."""
        self.offered = 0
        """Arrivals that could be shed."""

    def decide(self, stream: str, positions: IntArray, chances: FloatArray) -> BoolArray:
        """Which arrivals of one epoch are admitted; each has a uniform draw of its own."""
        epochs = self.arrived.epoch
        epoch = int(epochs[positions[0]])
        # One arrival of an epoch always stays, so that there is no epoch without arrivals.
        is_first = positions == epochs.searchsorted(epoch)
        self.offered += len(positions) - int(is_first[0])
        good: BoolArray = is_first | (chances >= self.share)
        self.shed.update(positions[~good].tolist())
        rank = len(self.gate.admitted[stream].tuples)
        offered = [self.arrivals[position] for position in positions[good].tolist()]
        good[good] = self.gate.offer(stream, epoch, offered)
        self.index.add(stream, rank, self.arrived.taken(positions[good]))
        return good


class Source:
    """One stream on its way in, a run of arrivals at a time.

    ``admit(stream, n)`` is called when n tuples enter; call :meth:`taken` when they have.
    ``waits(stream)`` says whether the chain wants a pause. ``wake()`` is called when there may be
    something to take, and asks the sources to :meth:`look`.
    """

    def __init__(
        self,
        env: simpy.Environment,
        stream: str,
        doors: Doors,
        chances: FloatArray,
        crew: Crew,
        admit: Callable[[str, int], object],
        waits: Callable[[str], bool],
        wake: Callable[[], None],
    ) -> None:
        self.stream = stream
        self.other: Source
        self.positions = np.flatnonzero(doors.arrived.stream == stream)
        arrived = doors.arrived.taken(self.positions)
        # As lists: they are looked at one by one.
        self.times_us: list[int] = arrived.arrival_us.tolist()
        self.event_us: list[int] = arrived.event_us.tolist()
        seen_us = -(-arrived.arrival_us // crew.intake_us) * crew.intake_us
        self._seen_us: list[int] = seen_us.tolist()
        self._epochs: list[int] = arrived.epoch.tolist()
        self.at = 0
        """Arrivals taken."""
        self.end = 0
        """Arrivals up to the end of the epoch."""
        self.pauses = 0
        self._env, self._doors, self._crew = env, doors, crew
        self._chances = chances[self.positions]
        self._admit, self._waits, self._wake = admit, waits, wake
        self._entered = [0]
        """Admitted tuples among the first n arrivals, as far as is decided."""
        self._busy = False
        self._is_asleep = False
        self._is_paused = False

    @property
    def is_due(self) -> bool:
        """Whether an arrival is seen that may be handed over, unless there is a pause."""
        is_free = not self._busy and self.at < self.end
        return is_free and self._seen_us[self.at] <= self._env.now

    @property
    def is_done(self) -> bool:
        """Whether everything that the epoch has of the stream has entered."""
        return self.at == self.end and not self._busy

    def begin(self, epoch: int, at: int) -> None:
        """Start an epoch, perhaps again, at the arrival where it starts."""
        self.at = at
        self.end = bisect_right(self._epochs, epoch)
        self._busy = self._is_paused = False

    def stop(self) -> None:
        """Hand over nothing more, until the next start."""
        self.end = self.at
        self._busy = False

    def taken(self) -> None:
        """What was handed over has been admitted."""
        self._busy = False

    def look(self) -> None:
        """Hand over what is seen, or wait for it."""
        while not self._busy and self.at < self.end:
            now = self._env.now
            if self._seen_us[self.at] > now:
                self._sleep()
                return
            due = bisect_right(self._seen_us, now, self.at, self.end)
            if self._has_to_pause():
                return
            last = min(due, self.at + self._crew.intake_tuples)
            self._decide(last)
            n = self._entered[last] - self._entered[self.at]
            self.at = last
            self._busy = n > 0
            if n:
                self._admit(self.stream, n)

    def waiting(self) -> int:
        """Arrivals that have come and are not taken."""
        return bisect_right(self.times_us, self._env.now) - self.at

    def _sleep(self) -> None:
        """Wake when the next arrival is seen."""
        if self._is_asleep:
            return
        self._is_asleep = True
        wake = simpy.Timeout(self._env, self._seen_us[self.at] - self._env.now)
        wake.callbacks.append(self._wake_up)

    def _wake_up(self, _: simpy.Event) -> None:
        self._is_asleep = False
        self._wake()

    def _has_to_pause(self) -> bool:
        """Only the stream whose next arrival is the later one may pause for the other."""
        pace_us, other = self._crew.pace_us, self.other
        if pace_us is None:
            return False
        is_ahead = (
            other.at < other.end and self.event_us[self.at] - other.event_us[other.at] > pace_us
        )
        was_paused, self._is_paused = self._is_paused, is_ahead or self._waits(self.stream)
        self.pauses += self._is_paused and not was_paused
        return self._is_paused

    def _decide(self, last: int) -> None:
        new = slice(len(self._entered) - 1, last)
        if new.start < last:
            decisions = self._doors.decide(self.stream, self.positions[new], self._chances[new])
            self._entered += (self._entered[-1] + decisions.cumsum()).tolist()
