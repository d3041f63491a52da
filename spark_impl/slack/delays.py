"""The largest delay of a task, of which K is a share (docs/slack.md, sections 2 and 4).

Rules of this file:

* A delay is remembered with the event clock after its tuple. The clock never goes back.
* Under ``aq`` a delay is forgotten as soon as the clock is more than ``recent_us`` ahead of that.
* Only delays that may still become the largest are kept.
"""

from typing import TypeAlias

import numpy as np

from model.vocabulary import SlackConfig
from spark_impl.runtime.arrays import Ints, Records
from spark_impl.windows.records import fill_records, join_records

DELAY = np.dtype([("t_max_us", "<i8"), ("delay_us", "<i8")])
"""A delay, and the event clock after its tuple."""
Kept: TypeAlias = int | Records
"""The largest delay; under ``aq``, the delays that may still become the largest, the present one
first. 0 if there is none."""


class Delays:
    """The delays of one task, none of which is ever forgotten."""

    def __init__(self, kept: Kept) -> None:
        self.largest_us = int(kept)
        """Largest delay now."""
        self._path: Ints

    def look(self, t_max: Ints, delay: Ints) -> Ints:
        """Return the largest delay after each of the next arrivals, none of which is settled."""
        del t_max
        self._path = np.maximum(np.maximum.accumulate(delay), self.largest_us)
        return self._path

    def settle(self, size: int) -> None:
        """Note that so many of the next arrivals have come; at least one has."""
        self.largest_us = int(self._path[size - 1])

    def kept(self) -> Kept:
        """Return what to keep until the next micro-batch."""
        return self.largest_us


class RecentDelays(Delays):
    """The delays of one task, which are forgotten as its clock advances."""

    def __init__(self, kept: Kept, recent_us: int) -> None:
        self._kept: Records = kept if isinstance(kept, np.ndarray) else np.empty(0, DELAY)
        super().__init__(self._kept["delay_us"].max(initial=0))
        self._recent_us = recent_us
        self._next = self._kept[:0]
        self._settled = 0

    def look(self, t_max: Ints, delay: Ints) -> Ints:
        """Return the largest recent delay after each of the next arrivals."""
        self._kept = self.kept()
        self._next = fill_records(DELAY, len(delay), t_max_us=t_max, delay_us=delay)
        self._settled = 0
        every = join_records(DELAY, (self._kept, self._next))
        since = np.searchsorted(every["t_max_us"], every["t_max_us"] - self._recent_us)
        self._path = sliding_maximum(every["delay_us"], since)[len(self._kept) :]
        return self._path

    def settle(self, size: int) -> None:
        """Note that so many of the next arrivals have come."""
        super().settle(size)
        self._settled = size

    def kept(self) -> Records:
        """Return each recent delay that is larger than all later ones, once for each clock."""
        every = join_records(DELAY, (self._kept, self._next[: self._settled]))
        if not self._settled:
            return every
        t_max = every["t_max_us"]
        recent = every[np.searchsorted(t_max, t_max[-1] - self._recent_us) :]
        from_here = np.maximum.accumulate(recent["delay_us"][::-1])[::-1]
        largest = recent[recent["delay_us"] > np.append(from_here[1:], 0)]
        # Of delays that are forgotten together the first is the largest.
        first = np.append(True, largest["t_max_us"][1:] > largest["t_max_us"][:-1])
        kept: Records = largest[first[: len(largest)]]
        return kept


def delays(config: SlackConfig, kept: Kept) -> Delays:
    """Return the delays of a task from what it has kept."""
    return RecentDelays(kept, config.recent_us) if config.control == "aq" else Delays(kept)


def sliding_maximum(values: Ints, since: Ints) -> Ints:
    """Return the maximum of ``values[since[i] .. i]`` for every ``i``; ``since[i] <= i``.

    Each run is the union of two runs whose length is a power of two: time O(n log n).
    """
    last = np.arange(len(values))
    power = np.frexp(last - since + 1)[1] - 1
    out, block = values.copy(), values
    for exponent in range(1, power.max(initial=0) + 1):
        half, size = 1 << exponent >> 1, 1 << exponent
        block = np.append(block[:half], np.maximum(block[half:], block[:-half]))
        at = np.flatnonzero(power == exponent)
        out[at] = np.maximum(block[at], block[since[at] + (size - 1)])
    return out
