"""A micro-cluster and the wait that follows from it (docs/watermark.md, sections 1 and 2).

Source: dynamic adjustment of the watermark by the local disorder of the last k arrivals.

Rules of this file:

* Integers only: no share is ever rounded but the wait itself, and that one down.
* Equal event times are in order.
"""

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Mapping


class Cluster:
    """The last k event times in the order of arrival, and how many of their pairs are reversed."""

    __slots__ = ("_in_order", "inv", "k", "times_us")

    def __init__(self, k: int, times_us: Iterable[int] = ()) -> None:
        self.k = k
        self.times_us: deque[int] = deque()
        """In the order of arrival."""
        self._in_order: list[int] = []
        """The same, smallest first."""
        self.inv = 0
        for time_us in times_us:
            self.enter(time_us)

    def enter(self, time_us: int) -> None:
        """One more arrival; the oldest leaves if there are too many."""
        in_order = self._in_order
        place = bisect_right(in_order, time_us)
        self.inv += len(in_order) - place
        in_order.insert(place, time_us)
        self.times_us.append(time_us)
        if len(in_order) > self.k:
            oldest_us = self.times_us.popleft()
            smaller = bisect_left(in_order, oldest_us)
            # It came before all others: those that are smaller were pairs out of order.
            self.inv -= smaller
            del in_order[smaller]

    def __len__(self) -> int:
        return len(self.times_us)


Reading = Callable[[int, int, int], int]
"""The wait from M, from the pairs out of order, and from the number of all pairs (0: none)."""


def disorder(max_wait_us: int, inv: int, pairs: int) -> int:
    """floor(M * D)."""
    return max_wait_us * inv // pairs if pairs else max_wait_us


def literal(max_wait_us: int, inv: int, pairs: int) -> int:
    """floor(M * P), as printed."""
    return max_wait_us * (pairs - inv) // pairs if pairs else 0


def scaled(max_wait_us: int, inv: int, pairs: int) -> int:
    """floor(M * min(1, 2 * D))."""
    return min(max_wait_us, 2 * max_wait_us * inv // pairs) if pairs else max_wait_us


def fixed(max_wait_us: int, _inv: int, _pairs: int) -> int:
    """M."""
    return max_wait_us


READINGS: Mapping[str, Reading] = {
    "disorder": disorder,
    "literal": literal,
    "scaled": scaled,
    "fixed": fixed,
}
"""By the name that the configuration uses."""


def wait_us(reading: str, max_wait_us: int, cluster: Cluster) -> int:
    """How long to wait with this cluster."""
    n = len(cluster)
    return READINGS[reading](max_wait_us, cluster.inv, n * (n - 1) // 2)
