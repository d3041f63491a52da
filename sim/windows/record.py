"""Record what was seen of one task: tuples as they were served, steps, and where it stood.

Rules of this file:

* What a failure takes back is taken back here, too: a step counts once.
* A tuple is accepted unless the machine rejected it, or its identity had come before and is known.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, NamedTuple, cast

import numpy as np

from model.vocabulary import Event, Step
from model.vocabulary.answers import Late, Rejected
from model.vocabulary.trace import StepT
from sim.kernel.disorder import IntArray
from sim.kernel.distributions import FloatArray
from sim.kernel.recorder import Level
from sim.windows.machine import Gauges


class Seen(NamedTuple, Generic[StepT]):
    """Steps of one kind, in order of time."""

    at_us: FloatArray
    """When each was taken."""
    rows: IntArray
    """The number of the accepted tuple that caused it or, at the end of a batch, came last."""
    steps: Sequence[StepT]


NOTHING: Seen[Step] = Seen(np.empty(0), np.empty(0, dtype=np.int64), ())


class Accepted(NamedTuple):
    """The tuples that a task accepted, in the order in which it did."""

    events: Sequence[Event]
    served_us: FloatArray
    wait_us: FloatArray
    """How long the task waited after each of them."""


class TaskRecord:
    """What was seen of one task so far."""

    __slots__ = (
        "_at_us",
        "_events",
        "_gauges",
        "_rows",
        "_saved",
        "_served_us",
        "_steps",
        "is_streaming",
        "share",
        "wait_us",
        "watermark_us",
    )

    def __init__(self) -> None:
        self.is_streaming = Level()
        """Whether the task has accepted something and has not been flushed."""
        self.wait_us, self.watermark_us, self.share = Level(), Level(), Level()
        """See :class:`sim.windows.machine.Gauges`."""
        self._events: list[Event] = []
        self._served_us: list[float] = []
        self._steps: list[Step] = []
        self._at_us: list[float] = []
        self._rows: list[int] = []
        self._saved = (0, 0)
        self._gauges: Gauges | None = None

    def served(self, event: Event, steps: Sequence[Step], now_us: float) -> None:
        """Note that a tuple has been served, and the steps that can be seen now."""
        self._events.append(event)
        self._served_us.append(now_us)
        if steps:
            self.saw(steps, now_us)

    def saw(self, steps: Sequence[Step], now_us: float) -> None:
        """Note steps that can be seen now."""
        self._steps += steps
        self._at_us += [now_us] * len(steps)
        self._rows += [len(self._events) - 1] * len(steps)

    def gauge(self, gauges: Gauges | None, now_us: float) -> None:
        """Note where the task stands now."""
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

    def save(self) -> None:
        """Keep what was seen so far, whatever happens."""
        self._saved = len(self._events), len(self._steps)

    def go_back(self) -> None:
        """Forget what was seen since it was kept the last time: it will be seen again."""
        events, steps = self._saved
        del self._events[events:], self._served_us[events:]
        del self._steps[steps:], self._at_us[steps:], self._rows[steps:]

    def steps(self) -> Iterator[Step]:
        """Return everything that was seen, in order of time."""
        return iter(self._steps)

    def accepted(self, *, dedup: bool) -> tuple[Accepted, dict[type[Step], Seen[Step]]]:
        """Return the accepted tuples, and the steps by kind; ``dedup``: redeliveries are none."""
        rows = self._causes()
        rejected = {step.seq for step in self._steps if isinstance(step, Rejected)}
        good = [event.seq not in rejected for event in self._events]
        if dedup:
            # A redelivery whose identity was forgotten takes part once more, and is late.
            steps = zip(rows, self._steps, strict=True)
            late = {row for row, step in steps if isinstance(step, Late)}
            firsts = _first_deliveries(self._events, good)
            good = [is_first or row in late for row, is_first in enumerate(firsts)]
        mask = np.array(good, dtype=np.bool_)
        served_us = np.array(self._served_us, dtype=np.float64)[mask]
        events = [event for event, is_good in zip(self._events, good, strict=True) if is_good]
        # What a task waits after a tuple was set in the instant in which it was served.
        wait_us = self.wait_us.at(np.nextafter(served_us, np.inf))
        number = np.append(np.cumsum(mask) - 1, -1)  # of the accepted tuple; none before the first
        at_us, causes = np.array(self._at_us), number[np.array(rows, dtype=np.int64)]
        places: dict[type[Step], list[int]] = defaultdict(list)
        for place, step in enumerate(self._steps):
            places[type(step)].append(place)
        seen = {
            kind: Seen(at_us[of_it], causes[of_it], [self._steps[place] for place in of_it])
            for kind, of_it in places.items()
        }
        return Accepted(events, served_us, wait_us), seen

    def _causes(self) -> list[int]:
        """Return the tuple that caused each step.

        A machine that answers at the end of a batch names the tuple of a late pair in the step.
        """
        deliveries: dict[int, list[int]] = defaultdict(list)
        for row, event in enumerate(self._events):
            deliveries[event.source_id].append(row)
        rows = list(self._rows)
        for place, step in enumerate(self._steps):
            if isinstance(step, Late):
                of_it = deliveries[step.source_id]
                rows[place] = of_it[bisect_right(of_it, rows[place]) - 1]
        return rows


def of_kind(seen: dict[type[Step], Seen[Step]], kind: type[StepT]) -> Seen[StepT]:
    """Return what was seen of one kind."""
    return cast("Seen[StepT]", seen.get(kind, NOTHING))


def _first_deliveries(events: Sequence[Event], good: Iterable[bool]) -> Iterator[bool]:
    known: set[int] = set()
    for event, is_good in zip(events, good, strict=True):
        yield is_good and event.source_id not in known
        if is_good:
            known.add(event.source_id)
