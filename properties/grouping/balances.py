"""How a trace spread the tuples: imbalance, instances a key, the busiest instance.

Rules of this file:

1. Counted from the routes that were observed, in window 1 and later: in window 0 no key is known to
   be heavy.
2. Several windows make one figure by their sums: the largest work of each against what it could
   have been, or was in the mean.
"""

from typing import NamedTuple

from model.grouping.balance import total_speed, work_us
from model.grouping.evidence import Evidence


class Spread(NamedTuple):
    """Of the windows in which something could be known."""

    rho: float
    """By how much the makespans exceed those of a fluid."""
    imbalance: float
    """By how much they exceed the mean work; it hides how long everything takes."""
    replication: float
    """Instances a key, in a window."""
    busiest_us: int
    """The largest work of an instance in a window."""


def spread(seen: Evidence) -> Spread | None:
    """``None`` if there was no such window, or no route in any."""
    largest = fluid = mean = 0.0
    busiest_us = keys = places = 0
    for window in seen.windows[1:]:
        times_us = seen.config.times_of(window.first_batch)
        counts = seen.counts(window)
        work = work_us(counts, times_us)
        largest += max(work)
        fluid += sum(counts) / total_speed(times_us)
        mean += sum(work) / len(work)
        busiest_us = max(busiest_us, *work)
        at = seen.places(window)
        keys += len(at)
        places += sum(map(len, at.values()))
    if not busiest_us:
        return None
    return Spread(largest / fluid - 1, largest / mean - 1, places / keys, busiest_us)
