"""Intakes of the streams: they hand arrivals over to the chain.

Source: docs/join.md, sections 5, 8 and 13.

Rules of this file:

* The log keeps arrivals until they are handed over, and hands them over again after a failure.
* Whether an arrival is shed is decided once, at its first handover, and is as durable as the
  arrival.
"""

from collections.abc import Callable, Sequence

from model.vocabulary import Event
from sim.join.load import Shedding
from sim.join.tuning import ChainTuning


class Intake:
    """The intake of one stream, a run of arrivals at a time.

    The intake calls ``admit(stream, events)`` to hand a run over; it is busy until whoever built it
    says that the worker has taken the run. ``has_room(stream)`` returns whether the worker's queue
    takes more.
    """

    def __init__(
        self,
        stream: str,
        tuning: ChainTuning,
        shedding: Shedding,
        admit: Callable[[str, Sequence[Event]], object],
        has_room: Callable[[str], bool],
    ) -> None:
        self.stream = stream
        self.events: list[Event] = []
        """Arrivals in the log."""
        self.at = 0
        """Number of arrivals handed over."""
        self._tuning, self._shedding = tuning, shedding
        self._admit, self._has_room = admit, has_room
        self._ends: list[int] = []  # arrivals up to the end of each epoch that was cut
        self._epoch: int | None = None  # the epoch under way
        self._first = 0  # number, in the log, of the first arrival of that epoch
        self._seen = 0  # number of arrivals when the intake last looked
        self._decided = 0
        self.is_busy = False
        """True while a run is on its way to the worker, or waits there."""

    # ------------------------------------------------------------------------------- epochs

    def cut(self) -> None:
        """End the epoch that is arriving."""
        self._ends.append(len(self.events))

    def begin(self, epoch: int, first: int, at: int) -> None:
        """Begin an epoch at its first arrival, possibly again after a failure."""
        self._epoch, self._first, self.at = epoch, first, at
        self.is_busy = False

    def stop(self) -> None:
        """Hand over nothing more until the next epoch begins."""
        self._epoch = None

    @property
    def waiting(self) -> int:
        """Number of arrivals not handed over yet."""
        return len(self.events) - self.at

    @property
    def is_cut(self) -> bool:
        """Return whether the epoch was cut: no more arrivals belong to it."""
        return self._epoch is not None and self._epoch < len(self._ends)

    @property
    def is_done(self) -> bool:
        """Return whether the worker has taken all arrivals of the epoch."""
        return self.is_cut and self.at == self._end and not self.is_busy

    @property
    def _end(self) -> int:
        """Number of arrivals up to the end of the epoch, as far as they have come."""
        assert self._epoch is not None
        return self._ends[self._epoch] if self.is_cut else len(self.events)

    # ------------------------------------------------------------------------------ handing over

    def see(self) -> None:
        """Count the arrivals that have come."""
        self._seen = len(self.events)

    @property
    def is_due(self) -> bool:
        """Return whether an arrival can be handed over, unless there is a reason to wait."""
        return self._epoch is not None and not self.is_busy and self.at < min(self._seen, self._end)

    def hand_over(self) -> bool:
        """Hand arrivals over, unless there is a reason to wait; return whether any were."""
        if not self.is_due or not self._has_room(self.stream):
            return False
        last = min(self._seen, self._end, self.at + self._tuning.intake_tuples)
        run = self.events[self.at : last]
        if last > self._decided:
            self._shedding.decide(self.events[max(self.at, self._decided) : last], self._first)
            self._decided = last
        shed = self._shedding.shed
        kept = [event for event in run if event.seq not in shed] if shed else run
        self.at = last
        if kept:
            self.is_busy = True
            self._admit(self.stream, kept)
        return True
