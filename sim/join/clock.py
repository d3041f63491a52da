"""Clocks: what a chain does at regular intervals, as long as there is something to do."""

from collections.abc import Callable

import simpy


class Clock:
    """Rings at multiples of an interval, from :meth:`start` as long as ``ring()`` returns true.

    A clock that stands still keeps no run going.
    """

    def __init__(self, env: simpy.Environment, interval_us: int, ring: Callable[[], bool]) -> None:
        self._env, self._interval_us, self._ring = env, interval_us, ring
        self._is_going = False
        self._rang_us = -1.0  # the multiple at which it rang last

    def start(self, *, again: bool = False) -> None:
        """Let the clock go, if it stands still; with ``again`` it may ring twice at a multiple."""
        if not self._is_going:
            self._is_going = True
            now = self._env.now
            due_us = -(-now // self._interval_us) * self._interval_us
            if due_us == self._rang_us and not again:
                due_us += self._interval_us
            self._rang_us = due_us
            wake = simpy.Timeout(self._env, due_us - now)
            wake.callbacks.append(self._wake)

    def _wake(self, _: simpy.Event) -> None:
        self._is_going = False
        if self._ring():
            self.start()
