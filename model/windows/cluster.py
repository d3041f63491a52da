"""A micro-cluster and the wait that follows from it (docs/watermark.md, sections 1 and 2).

Source: dynamic adjustment of the watermark by the local disorder of the last k arrivals.

Rules of this file:

* Integers only: nothing is rounded but the wait itself, which is rounded down.
* Equal event times are in order.
"""

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Mapping


class Cluster:
    """The last k event times, and the number ``inv`` of their pairs that are out of order."""

    __slots__ = ("_in_order", "inv", "k", "times_us")

    def __init__(self, k: int) -> None:
        self.k = k
        self.times_us: deque[int] = deque()
        """Event times in order of arrival."""
        self._in_order: list[int] = []
        """The same event times, smallest first."""
        self.inv = 0

    def enter(self, time_us: int) -> None:
        """Add an arrival; the oldest one leaves if there are more than k."""
        in_order = self._in_order
        place = bisect_right(in_order, time_us)
        self.inv += len(in_order) - place
        in_order.insert(place, time_us)
        self.times_us.append(time_us)
        if len(in_order) > self.k:
            oldest_us = self.times_us.popleft()
            smaller = bisect_left(in_order, oldest_us)
            # The oldest came before all others, so each smaller one made a pair out of order.
            self.inv -= smaller
            del in_order[smaller]

    def __len__(self) -> int:
        return len(self.times_us)


Reading = Callable[[int, int, int], int]
"""Function from M, the pairs out of order and all pairs (maybe 0) to the wait."""


def disorder(max_wait_us: int, inv: int, pairs: int) -> int:
    """Return floor(M * D)."""
    return max_wait_us * inv // pairs if pairs else max_wait_us


def literal(max_wait_us: int, inv: int, pairs: int) -> int:
    """Return floor(M * P), as printed in the paper."""
    return max_wait_us * (pairs - inv) // pairs if pairs else 0


def scaled(max_wait_us: int, inv: int, pairs: int) -> int:
    """Return floor(M * min(1, 2 * D))."""
    return min(max_wait_us, 2 * max_wait_us * inv // pairs) if pairs else max_wait_us


def fixed(max_wait_us: int, _inv: int, _pairs: int) -> int:
    """Return M."""
    return max_wait_us


READINGS: Mapping[str, Reading] = {
    "disorder": disorder,
    "literal": literal,
    "scaled": scaled,
    "fixed": fixed,
}
"""Reading by its name in the configuration."""


def wait_us(reading: str, max_wait_us: int, cluster: Cluster) -> int:
    """Return how long to wait with this cluster, in microseconds."""
    n = len(cluster)
    return READINGS[reading](max_wait_us, cluster.inv, n * (n - 1) // 2)
