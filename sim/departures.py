"""Departures: what the sources of a plan send and when, as columns.

Everything random about a source is drawn here, before the run, in arrays.
"""

from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from model.vocabulary import Event
from sim import faults
from sim.disorder import IntArray, disturb, present
from sim.distributions import FloatArray, draw_us
from sim.network import Tier
from sim.plan import IDS_PER_SOURCE, Plan, Recording, Source
from sim.seeds import Seeds

KINDS = (np.float64, np.int64, np.object_, np.int64, np.float64)
"""Of the columns of departures."""


class Departures(NamedTuple):
    """Tuples in the order in which they are sent."""

    leave_us: FloatArray
    """Kernel time."""
    source_ids: IntArray
    keys: NDArray[Any]
    """Of strings."""
    event_us: IntArray
    """Since the epoch 1970."""
    values: FloatArray

    def taken(self, rows: NDArray[Any]) -> "Departures":
        """These rows, in this order."""
        return Departures(*[column[rows] for column in self])

    def in_order(self) -> "Departures":
        """By the time of departure; of equal times the earlier row comes first."""
        return self.taken(np.argsort(self.leave_us, kind="stable"))

    def over(self, tier: Tier, bits: float) -> "Departures":
        """The same at the end of a link that nothing disturbs, as ``sim.network`` has it."""
        sending_us, free_us = bits / tier.bandwidth_mbps, 0.0
        due_us = []
        for leave_us in self.leave_us.tolist():
            free_us = (free_us if free_us > leave_us else leave_us) + sending_us
            due_us.append(free_us + tier.latency_us)
        return self._replace(leave_us=np.array(due_us, dtype=np.float64))

    def as_arrivals(self, epoch_us: int, streams: Sequence[str]) -> tuple[Event, ...]:
        """What arrives if nothing takes time on the way: each time rounded to a microsecond.

        Sources are of these streams in turn. Identities are numbers within a stream, so that
        different streams use the same.
        """
        sources, numbers = np.divmod(self.source_ids, IDS_PER_SOURCE)
        columns = (
            sources // len(streams) * IDS_PER_SOURCE + numbers,
            *self[2:],
            epoch_us + np.rint(self.leave_us).astype(np.int64),
            np.array(streams, dtype=object)[sources % len(streams)],
        )
        rows = zip(count(), *[column.tolist() for column in columns], strict=False)
        return tuple(map(Event._make, rows))


def departures_of(plan: Plan, number: int, seeds: Seeds) -> tuple[Departures, int]:
    """What a source of a plan sends, its own duplicates included, and how many those are."""
    source = plan.sources[number]
    if isinstance(source, Recording):
        created = _recorded(plan, number, source, seeds)
    else:
        created = _created(plan, number, source, seeds)
    twice, after_us = [], []
    for fault in plan.faults:
        if isinstance(fault, faults.Duplicate) and fault.source == f"source-{number}":
            found = np.flatnonzero(created.source_ids == number * IDS_PER_SOURCE + fault.nth)
            twice += found.tolist()
            after_us += [fault.after_us] * len(found)
    if twice:
        copies = created.taken(np.array(twice, dtype=np.int64))
        copies = copies._replace(leave_us=copies.leave_us + np.array(after_us, dtype=np.float64))
        created = together((created, copies))
    return created.in_order(), len(twice)


def together(parts: Iterable[Departures]) -> Departures:
    """One after the other."""
    columns = zip(departures_from(()), *parts, strict=True)
    return Departures(*[np.concatenate(each) for each in columns])


def departures_from(rows: Iterable[tuple[float, int, str, int, float]]) -> Departures:
    """Of tuples one by one."""
    columns = list(zip(*rows, strict=True)) or [()] * len(KINDS)
    return Departures(*[np.array(*each) for each in zip(columns, KINDS, strict=True)])


def _recorded(plan: Plan, number: int, source: Recording, seeds: Seeds) -> Departures:
    rows = source.rows
    absolute_us = np.array([row.event_time_us for row in rows], dtype=np.int64)
    event_us = absolute_us - plan.epoch_us
    arrival_us = np.array([row.arrival_us for row in rows], dtype=np.int64) - plan.epoch_us
    delays = disturb(
        number, (arrival_us - event_us).astype(np.float64), event_us, plan.disturbances, seeds
    )
    departures = Departures(
        # A recording's clocks may disagree: nothing can be sent before the run starts.
        np.maximum(0.0, event_us + delays),
        number * IDS_PER_SOURCE + np.arange(len(rows)),
        np.array([row.key for row in rows], dtype=object),
        absolute_us,
        np.array([row.value for row in rows], dtype=np.float64),
    )
    return departures.taken(present(number, event_us, plan.disturbances))


def _created(plan: Plan, number: int, source: Source, seeds: Seeds) -> Departures:
    n, name = source.events, f"source-{number}"
    intervals = draw_us(source.interval, seeds, f"{name}/interval", max(0, n - 1))
    event_us = source.start_us + np.rint(np.append(0.0, np.cumsum(intervals))[:n]).astype(np.int64)
    values = _values(source, seeds, name)
    ordinary = draw_us(source.delay, seeds, f"{name}/delay", n) + source.delay_by_value_us * values
    delays = disturb(number, ordinary, event_us, plan.disturbances, seeds)
    kept = present(number, event_us, plan.disturbances)
    leave_us = (event_us + delays)[kept]
    if source.in_order:
        leave_us = np.maximum.accumulate(leave_us)
    keys = np.array(source.keys, dtype=object)
    return Departures(
        leave_us,
        number * IDS_PER_SOURCE + np.flatnonzero(kept),
        keys[_keys(source, seeds, name)[kept]],
        plan.epoch_us + event_us[kept],
        values[kept],
    )


def _keys(source: Source, seeds: Seeds, name: str) -> IntArray:
    """The number of each tuple's key."""
    n = len(source.keys)
    if n == 1:
        return np.zeros(source.events, dtype=np.int64)
    shares = np.arange(1, n + 1, dtype=np.float64) ** -source.zipf
    bounds = np.cumsum(shares / shares.sum())[:-1]
    uniform = seeds.stream(f"{name}/keys").random(source.events)
    return np.searchsorted(bounds, uniform, side="right")


def _values(source: Source, seeds: Seeds, name: str) -> FloatArray:
    """Whole numbers, as floats."""
    if source.low == source.high:
        return np.full(source.events, source.low, dtype=np.float64)
    stream = seeds.stream(f"{name}/values")
    return stream.integers(source.low, source.high, source.events, endpoint=True).astype(np.float64)
