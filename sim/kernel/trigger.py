"""Triggers: they cut the arrivals of a run into micro-batches.

Rules of this file:

* A trigger without new arrivals cuts nothing: there is no empty batch.
* An arrival at the very moment of a trigger belongs to the next batch.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import simpy

from model.vocabulary.settings import require


@dataclass(frozen=True, slots=True)
class Every:
    """A cut at each multiple of an interval, like Spark's processing-time trigger."""

    interval_us: int

    def __post_init__(self) -> None:
        require(self.interval_us > 0, "Every.interval_us", self.interval_us, "above 0")


@dataclass(frozen=True, slots=True)
class EveryTuples:
    """A cut after a fixed number of arrivals."""

    tuples: int

    def __post_init__(self) -> None:
        require(self.tuples > 0, "EveryTuples.tuples", self.tuples, "above 0")


@dataclass(frozen=True, slots=True)
class At:
    """Cuts after given numbers of arrivals, such as those of an existing workload."""

    cuts: tuple[int, ...]

    def __post_init__(self) -> None:
        good = all(left <= right for left, right in pairwise((0, *self.cuts)))
        require(good, "At.cuts", list(self.cuts), "ascending, from 0 on")


When: TypeAlias = Every | EveryTuples | At
EVERY_SECOND = Every(1_000_000)


class Trigger:
    """Calls ``cut()`` at the end of every micro-batch, and ``end()`` after the last one."""

    def __init__(
        self,
        env: simpy.Environment,
        when: When,
        cut: Callable[[], object],
        end: Callable[[], object],
    ) -> None:
        self._env = env
        self._cut, self._end = cut, end
        self._interval_us = when.interval_us if isinstance(when, Every) else None
        self._tuples = when.tuples if isinstance(when, EveryTuples) else None
        self._cuts = frozenset(when.cuts) if isinstance(when, At) else frozenset[int]()
        self._arrivals = 0
        self._size = 0  # of the open batch
        self._due_us: int | None = None
        self._is_over = False

    def before_arrival(self, now_us: int) -> None:
        """Cut before an arrival at this moment (us, rounded), if a cut is due."""
        if self._due_us is not None and now_us >= self._due_us:
            self._fire()

    def after_arrival(self) -> None:
        """Count an arrival in the open batch, and cut if that completes it."""
        self._arrivals += 1
        self._size += 1
        if self._interval_us is not None:
            if self._due_us is None:
                self._await(self._interval_us)
        elif self._size == self._tuples or self._arrivals in self._cuts:
            self._fire()

    def arrivals_ended(self) -> None:
        """Note that nothing more arrives: the run ends when the open batch is cut."""
        self._is_over = True
        if self._size and self._interval_us is None:
            self._fire()
        elif not self._size:
            self._end()

    def _await(self, interval_us: int) -> None:
        now = self._env.now
        self._due_us = due_us = (round(now) // interval_us + 1) * interval_us
        wake = simpy.Timeout(self._env, max(0.0, due_us - now))
        wake.callbacks.append(lambda _: self._fire() if self._due_us == due_us else None)

    def _fire(self) -> None:
        self._due_us, self._size = None, 0
        self._cut()
        if self._is_over:
            self._end()
