"""The record of a run: where each tuple went, and when.

Rules of this file:

* The latest entry about a tuple counts, because work that a failure undoes is repeated.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from math import inf
from typing import NamedTuple

import numpy as np

from model.vocabulary import Event, Step
from model.vocabulary.grouping import Route
from sim.kernel.disorder import IntArray
from sim.kernel.distributions import FloatArray


@dataclass(slots=True, eq=False)
class Passage:
    """A tuple on its way through the cluster. Changed in place, for speed."""

    event: Event
    window: int
    work_us: float
    arrived_us: float
    instance: int = -1
    """Instance to which it was routed."""
    services: int = 0
    """Services begun, including those that a failure broke off."""
    sent_us: float = inf
    began_us: float = inf
    ended_us: float = inf


class Span(NamedTuple):
    """A window in time."""

    first: int
    """Number of its first tuple."""
    end: int
    """Number of the first tuple after it."""
    began_us: float
    """Time at which its first tuple could be routed."""
    times_us: tuple[int, ...]
    """Times per tuple that its senders used, by instance."""


class Passages(NamedTuple):
    """All tuples of a run as columns, by their numbers in the log; kernel time."""

    arrived_us: FloatArray
    instances: IntArray
    sent_us: FloatArray
    """Time at which the instance had a free place."""
    began_us: FloatArray
    """Time at which the service that was completed began."""
    ended_us: FloatArray

    def counts(self, span: Span, n: int) -> list[int]:
        """Return how many tuples of a window went to each of n instances."""
        counts: list[int] = np.bincount(self.instances[span.first : span.end], minlength=n).tolist()
        return counts


class GroupingRecord:
    """The record of a run so far."""

    __slots__ = ("_windows", "passages", "steps")

    def __init__(self) -> None:
        self.passages: list[Passage] = []
        """All tuples, by their numbers in the log."""
        self.steps: list[Step] = []
        """Visible steps of the machine, without routes."""
        self._windows: list[tuple[int, float, tuple[int, ...]]] = []

    def begin_window(self, first: int, times_us: tuple[int, ...], now_us: float) -> None:
        """Note that a window begins with tuple number ``first``."""
        self._windows.append((first, now_us, times_us))

    @property
    def spans(self) -> list[Span]:
        """The windows, in order."""
        bounds = [*(first for first, _, _ in self._windows), len(self.passages)]
        return [
            Span(first, end, began_us, times_us)
            for (first, began_us, times_us), end in zip(self._windows, bounds[1:], strict=True)
        ]

    def columns(self) -> Passages:
        """Return all tuples, after every one of them has been served."""
        passages = self.passages
        return Passages(
            np.array([each.arrived_us for each in passages]),
            np.array([each.instance for each in passages], dtype=np.int64),
            np.array([each.sent_us for each in passages]),
            np.array([each.began_us for each in passages]),
            np.array([each.ended_us for each in passages]),
        )

    def all_steps(self, senders: int) -> Iterator[Step]:
        """Return all steps, unordered: a trace has its own order."""
        routes = [
            Route(seq, seq % senders, each.instance) for seq, each in enumerate(self.passages)
        ]
        return chain(routes, self.steps)
