"""Look at a finished run from outside: arrivals that count, pairs, and how long they took."""

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from model.vocabulary import Event
from model.vocabulary.join import STREAMS, Rejected
from sim.join.cluster import ChainCluster
from sim.join.content import NONE
from sim.kernel.disorder import IntArray
from sim.kernel.distributions import FloatArray
from sim.kernel.run import Arrived


class Results(NamedTuple):
    """All pairs of a run, as columns, in the order in which they came out."""

    at_us: FloatArray
    epoch: IntArray
    query: IntArray
    """Number of the query."""
    r_id: IntArray
    s_id: IntArray


class Deliveries(NamedTuple):
    """The deliveries of one stream's tuples that were let in, ordered by identity."""

    source_id: IntArray
    arrival_us: FloatArray
    """Kernel time."""

    def arrival_of(self, source_id: IntArray) -> FloatArray:
        """Return when tuples arrived."""
        found: FloatArray = self.arrival_us[np.searchsorted(self.source_id, source_id)]
        return found


class Observed:
    """A finished run, looked at from outside."""

    def __init__(self, room: ChainCluster, arrived: Arrived) -> None:
        self.room = room
        self.arrived = arrived
        shed = room.shedding.shed
        self.events: Sequence[Event] = arrived.events
        """Arrivals that were not shed, with their numbers in the log."""
        if shed:
            self.events = [event for event in arrived.events if event.seq not in shed]

    @cached_property
    def rejected(self) -> list[Rejected]:
        """Arrivals that were rejected, with their numbers in the log."""
        return [step for step in self.room.steps if isinstance(step, Rejected)]

    @cached_property
    def results(self) -> Results:
        """Every pair that came out."""
        emitted = self.room.emitted
        if not emitted:
            return Results(np.empty(0), NONE, NONE, NONE, NONE)
        at_us, epochs, parts = zip(*emitted, strict=True)
        queries, r, s = zip(*parts, strict=True)
        sizes = [len(each) for each in r]
        at, epoch, query = (np.repeat(each, sizes) for each in (at_us, epochs, queries))
        return Results(at, epoch, query, np.concatenate(r), np.concatenate(s))

    @cached_property
    def deliveries(self) -> dict[str, Deliveries]:
        """What was let in of each stream: the first delivery of a tuple that was not rejected."""
        out = self.room.shedding.shed.union(step.seq for step in self.rejected)
        start_us = self.room.plan.epoch_us
        found = {}
        for stream, intake in self.room.intakes.items():
            events = [event for event in intake.events if event.seq not in out]
            ids = np.array([event.source_id for event in events], dtype=np.int64)
            arrival_us = np.array([event.arrival_us - start_us for event in events], dtype=float)
            distinct, first = np.unique(ids, return_index=True)
            found[stream] = Deliveries(distinct, arrival_us[first])
        return found

    @cached_property
    def latencies_us(self) -> FloatArray:
        """From the arrival of the later tuple of each pair to the moment at which it came out."""
        at_us, _, _, r_id, s_id = self.results
        of_r, of_s = (self.deliveries[stream] for stream in STREAMS)
        return at_us - np.maximum(of_r.arrival_of(r_id), of_s.arrival_of(s_id))

    @property
    def span_us(self) -> float:
        """When the last tuple arrived."""
        events = self.arrived.events
        return float(events[-1].arrival_us - self.room.plan.epoch_us) if events else 0.0
