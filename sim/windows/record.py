"""Records of one task: tuples as they were served, steps, and gauges.

Rules of this file:

* A failure takes recorded steps back, so a step that is repeated counts once.
* A tuple is accepted unless the machine rejects it or, with ``dedup``, knows its identity.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, NamedTuple

import numpy as np

from model.vocabulary import Event, Step
from model.vocabulary.trace import StepT
from model.vocabulary.windows import Late, Rejected
from sim.kernel.disorder import IntArray
from sim.kernel.distributions import FloatArray
from sim.kernel.recorder import Level
from sim.timed_room import Revocable
from sim.windows.machine import WindowGauges


class TimedSteps(NamedTuple, Generic[StepT]):
    """Steps of one kind, in order of time."""

    at_us: FloatArray
    """Time at which each step was taken."""
    rows: IntArray
    """Number of the accepted tuple that caused the step, or came last before it; -1 for none."""
    steps: Sequence[StepT]


NO_STEPS: TimedSteps[Step] = TimedSteps(np.empty(0), np.empty(0, dtype=np.int64), ())


class Accepted(NamedTuple):
    """The accepted tuples of a task, in the order of acceptance."""

    events: Sequence[Event]
    served_us: FloatArray
    wait_us: FloatArray
    """Wait of the task (us) after each tuple."""


class TaskRecord(Revocable):
    """The record of one task so far."""

    __slots__ = (
        "_at_us",
        "_events",
        "_gauges",
        "_rows",
        "_served_us",
        "is_streaming",
        "share",
        "steps",
        "wait_us",
        "watermark_us",
    )

    def __init__(self) -> None:
        self.is_streaming = Level()
        """1 while the task has accepted a tuple and has not been flushed."""
        self.wait_us, self.watermark_us, self.share = Level(), Level(), Level()
        """Gauges of the task; see :class:`sim.windows.machine.WindowGauges`."""
        self._events: list[Event] = []
        self._served_us: list[float] = []
        self.steps: list[Step] = []
        """All steps, in order of time."""
        self._at_us: list[float] = []
        self._rows: list[int] = []
        self._gauges: WindowGauges | None = None
        super().__init__(self._events, self._served_us, self.steps, self._at_us, self._rows)

    def add_tuple(self, event: Event, steps: Sequence[Step], now_us: float) -> None:
        """Add a tuple that has been served, and the steps that can be seen now."""
        self._events.append(event)
        self._served_us.append(now_us)
        if steps:
            self.add_steps(steps, now_us)

    def add_steps(self, steps: Sequence[Step], now_us: float) -> None:
        """Add steps that can be seen now."""
        self.steps += steps
        self._at_us += [now_us] * len(steps)
        self._rows += [len(self._events) - 1] * len(steps)

    def gauge(self, gauges: WindowGauges | None, now_us: float) -> None:
        """Record the gauges of the task; ``None`` while they mean nothing."""
        if gauges == self._gauges:
            return
        before, self._gauges = self._gauges, gauges
        if (gauges is None) != (before is None):
            self.is_streaming.set(gauges is not None, now_us)
        if gauges is None:
            return
        if gauges.wait_us != self.wait_us.value:
            self.wait_us.set(gauges.wait_us, now_us)
        if gauges.watermark_us != self.watermark_us.value:
            self.watermark_us.set(gauges.watermark_us, now_us)
        if gauges.share != self.share.value:
            self.share.set(gauges.share, now_us)

    def accepted(self, *, dedup: bool) -> tuple[Accepted, dict[type[Step], TimedSteps[Step]]]:
        """Return the accepted tuples, and the steps by kind.

        With ``dedup`` a redelivered tuple is not accepted again.
        """
        rows = self._causes()
        rejected = {step.seq for step in self.steps if isinstance(step, Rejected)}
        good = [event.seq not in rejected for event in self._events]
        if dedup:
            # A redelivered tuple whose identity was forgotten counts once more, and is late.
            steps = zip(rows, self.steps, strict=True)
            late = {row for row, step in steps if isinstance(step, Late)}
            firsts = _first_deliveries(self._events, good)
            good = [is_first or row in late for row, is_first in enumerate(firsts)]
        mask = np.array(good, dtype=np.bool_)
        served_us = np.array(self._served_us, dtype=np.float64)[mask]
        events = [event for event, is_good in zip(self._events, good, strict=True) if is_good]
        # The wait after a tuple is set at the instant at which the tuple is served.
        wait_us = self.wait_us.at(np.nextafter(served_us, np.inf))
        number = np.append(np.cumsum(mask) - 1, -1)  # of the accepted tuple; -1 before the first
        at_us, causes = np.array(self._at_us), number[np.array(rows, dtype=np.int64)]
        places: dict[type[Step], list[int]] = defaultdict(list)
        for place, step in enumerate(self.steps):
            places[type(step)].append(place)
        seen = {
            kind: TimedSteps(at_us[of_it], causes[of_it], [self.steps[place] for place in of_it])
            for kind, of_it in places.items()
        }
        return Accepted(events, served_us, wait_us), seen

    def _causes(self) -> list[int]:
        """Return, for each step, the position of the tuple that caused it.

        A late pair names its tuple, because a machine may answer only at the end of a batch.
        """
        deliveries: dict[int, list[int]] = defaultdict(list)
        for row, event in enumerate(self._events):
            deliveries[event.source_id].append(row)
        rows = list(self._rows)
        for place, step in enumerate(self.steps):
            if isinstance(step, Late):
                of_it = deliveries[step.source_id]
                rows[place] = of_it[bisect_right(of_it, rows[place]) - 1]
        return rows


def _first_deliveries(events: Sequence[Event], good: Iterable[bool]) -> Iterator[bool]:
    known: set[int] = set()
    for event, is_good in zip(events, good, strict=True):
        yield is_good and event.source_id not in known
        if is_good:
            known.add(event.source_id)
