"""A worker that serves what it is sent, in the order in which it comes.

Rules of this file:

* Tuples of sensors are known beforehand, and served in long runs: a recurrence, no event for each.
  What other workers send comes in between, and may find some of a run looked at already: those that
  come after it are looked at again.
* Times are float microseconds of kernel time. Of equal ones tuples come first.
"""

from bisect import bisect_right
from collections.abc import Sequence


class Server:
    """One worker's queue."""

    __slots__ = ("_ahead_us", "_due_us", "_work_us", "ended_us", "extra_us", "free_us")

    def __init__(self, due_us: Sequence[float], work_us: Sequence[float]) -> None:
        """Tuples in the order in which they come, and how long each of them takes."""
        self._due_us = due_us
        self._work_us = work_us
        self._ahead_us: list[float] = []
        """Ends of tuples that are served next if nothing comes in between."""
        self.ended_us: list[float] = []
        """Ends of the tuples that have been served, in order."""
        self.extra_us: list[tuple[float, float]] = []
        """Begin and end of everything else that was done."""
        self.free_us = 0.0
        """When all that has been served is done."""

    def look(self, position: int) -> float:
        """When the tuple at a position is done if nothing comes in between; now, if it is."""
        if position < len(self.ended_us):
            return self.free_us
        ahead_us = self._ahead_us
        first = len(self.ended_us) + len(ahead_us)
        end_us = ahead_us[-1] if ahead_us else self.free_us
        behind = position + 1
        for due_us, work_us in zip(
            self._due_us[first:behind], self._work_us[first:behind], strict=True
        ):
            end_us = (due_us if due_us > end_us else end_us) + work_us
            ahead_us.append(end_us)
        return ahead_us[position - len(self.ended_us)]

    def serve(self, behind: int) -> None:
        """Serve the tuples before a position."""
        count = behind - len(self.ended_us)
        if count > 0:
            if len(self._ahead_us) < count:
                self.look(behind - 1)
            self.ended_us += self._ahead_us[:count]
            self.free_us = self.ended_us[-1]
            del self._ahead_us[:count]

    def serve_all(self) -> None:
        """Serve whatever is left."""
        self.serve(len(self._due_us))

    def come(self, now_us: float) -> int:
        """How many tuples have come by a time, those served included."""
        return bisect_right(self._due_us, now_us)

    def work(self, now_us: float, work_us: float) -> float:
        """Do something that is asked for now, after all that was served; return its end."""
        begin_us = max(now_us, self.free_us)
        self.free_us = begin_us + work_us
        if work_us:
            self.extra_us.append((begin_us, self.free_us))
        self._ahead_us.clear()
        return self.free_us
