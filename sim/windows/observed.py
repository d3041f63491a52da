"""Look at a finished run from outside: its tasks, with what each accepted and what was seen."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from model.vocabulary import Event, Step
from model.vocabulary.trace import StepT
from model.windows.query import Query
from sim.kernel.disorder import IntArray
from sim.kernel.distributions import FloatArray
from sim.kernel.run import Arrived
from sim.windows.cluster import WindowCluster
from sim.windows.corrector import Corrected
from sim.windows.machine import QueryT
from sim.windows.record import Accepted, Seen, of_kind

SAMPLES = 300
"""Rows of a series, at most."""
BEHIND = 1.05
"""A cluster that takes so many times as long as the arrivals is behind; rows go on to its end."""


class Columns(NamedTuple):
    """Accepted tuples as columns; where keys do not matter, all of them are one."""

    key: IntArray
    """Number of the key."""
    event_us: IntArray
    came_us: IntArray
    """Arrival in the log, since the start of the run."""


@dataclass(frozen=True, slots=True)
class TaskSeen:
    """One task, looked at from outside."""

    number: int
    accepted: Accepted
    columns: Columns
    steps: dict[type[Step], Seen[Step]]

    def of(self, kind: type[StepT]) -> Seen[StepT]:
        """Return what was seen of one kind."""
        return of_kind(self.steps, kind)


class Observed:
    """A finished run, looked at from outside."""

    def __init__(self, room: WindowCluster[QueryT], arrived: Arrived) -> None:
        self.room = room
        self.arrived = arrived
        self.query: Query = room.query
        self.keys = self._numbered(arrived.events)
        """Number of each key, by first appearance."""
        self.tasks = [self._task(number) for number in range(len(room.tasks))]

    @property
    def corrected(self) -> Sequence[Corrected]:
        """Corrections, in the order in which they could be seen."""
        return self.room.corrector.corrected

    @cached_property
    def grid_us(self) -> FloatArray:
        """The moments that a series has rows for: at most one a slide; the last one is the end."""
        ends_us, end_us = max(self.arrived.ends_us, default=0.0), self.room.end_us
        if end_us > BEHIND * ends_us:
            ends_us = end_us
        rows = min(SAMPLES, int(np.ceil(ends_us / self.query.slide_us)))
        grid_us = np.linspace(0.0, ends_us, rows, endpoint=False)[1:]
        return np.append(grid_us, max([end_us, *grid_us[-1:]]))

    def _numbered(self, events: Sequence[Event]) -> dict[str, int]:
        if not self.query.keyed:
            return {"": 0}
        return {key: number for number, key in enumerate(dict.fromkeys(e.key for e in events))}

    def _task(self, number: int) -> TaskSeen:
        record = self.room.tasks[number].record
        accepted, steps = record.accepted(dedup=self.query.dedup)
        keys, is_keyed, start_us = self.keys, self.query.keyed, self.room.start_us
        columns = Columns(
            np.array([keys[e.key] if is_keyed else 0 for e in accepted.events], dtype=np.int64),
            np.array([event.event_time_us for event in accepted.events], dtype=np.int64),
            np.array([event.arrival_us for event in accepted.events], dtype=np.int64) - start_us,
        )
        return TaskSeen(number, accepted, columns, steps)
