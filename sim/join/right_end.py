"""The right end of a timed chain, where workers come and go while tuples flow.

Source: docs/join.md, section 7.

Rules of this file:

* The next change begins when the one before it is over.
* MARK follows what the log has sent to the old end. END goes from the first leaving worker to its
  neighbour. Both are messages, and take the time of their links.
* A failure takes the change back with the epoch.
"""

from collections.abc import Callable

from model.join.live import REDIRECTED
from sim.join.line import LOG, Line
from sim.join.live_chain import LiveChain


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
        """Whether tuples of S wait until their new end has read END."""
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
