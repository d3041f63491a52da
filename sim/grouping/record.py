"""Record what happened to the tuples of a run: where each went, and when.

Rules of this file:

* What is noted twice of a tuple is what was noted last: what a failure takes back happens again.
"""

from collections.abc import Iterator
from itertools import chain
from math import inf
from typing import NamedTuple

import numpy as np

from model.vocabulary import Event, Step
from model.vocabulary.grouping import Route
from sim.kernel.disorder import IntArray
from sim.kernel.distributions import FloatArray


class Passage:
    """A tuple on its way through the room. Changed in place, for speed."""

    __slots__ = (
        "arrived_us",
        "began_us",
        "ended_us",
        "event",
        "instance",
        "sent_us",
        "services",
        "window",
        "work_us",
    )

    def __init__(self, event: Event, window: int, work_us: float, arrived_us: float) -> None:
        self.event = event
        self.window = window
        self.work_us = work_us
        self.arrived_us = arrived_us
        self.instance = -1  # where it was routed
        self.services = 0  # that began, those that a failure broke off included
        self.sent_us = self.began_us = self.ended_us = inf


class Span(NamedTuple):
    """A window in time."""

    first: int
    """Its first tuple."""
    end: int
    """The first tuple after it."""
    began_us: float
    """When the first tuple of it could be routed."""
    times_us: tuple[int, ...]
    """The times that its senders went by."""


class Seen(NamedTuple):
    """When the tuples of a run were where, by their numbers in the log; kernel time."""

    arrived_us: FloatArray
    instances: IntArray
    sent_us: FloatArray
    """When the instance had a place."""
    began_us: FloatArray
    """When the service began that no failure broke off."""
    ended_us: FloatArray

    def counts(self, span: Span, n: int) -> list[int]:
        """Return how many tuples of a window went to each of n instances."""
        counts: list[int] = np.bincount(self.instances[span.first : span.end], minlength=n).tolist()
        return counts


class Record:
    """What was seen of a run so far."""

    __slots__ = ("_windows", "passages", "steps")

    def __init__(self) -> None:
        self.passages: list[Passage] = []
        """All tuples, by their numbers in the log."""
        self.steps: list[Step] = []
        """What the machine made visible, routes left out."""
        self._windows: list[tuple[int, float, tuple[int, ...]]] = []

    def window(self, first: int, times_us: tuple[int, ...], now_us: float) -> None:
        """Note that a window begins with a tuple."""
        self._windows.append((first, now_us, times_us))

    @property
    def spans(self) -> list[Span]:
        """The windows, in order."""
        bounds = [*(first for first, _, _ in self._windows), len(self.passages)]
        return [
            Span(first, end, began_us, times_us)
            for (first, began_us, times_us), end in zip(self._windows, bounds[1:], strict=True)
        ]

    def seen(self) -> Seen:
        """Return all tuples, once every one of them has been served."""
        passages = self.passages
        return Seen(
            np.array([each.arrived_us for each in passages]),
            np.array([each.instance for each in passages], dtype=np.int64),
            np.array([each.sent_us for each in passages]),
            np.array([each.began_us for each in passages]),
            np.array([each.ended_us for each in passages]),
        )

    def all_steps(self, senders: int) -> Iterator[Step]:
        """Return every step, in no order: a trace has its own."""
        routes = [
            Route(seq, seq % senders, each.instance) for seq, each in enumerate(self.passages)
        ]
        return chain(routes, self.steps)
