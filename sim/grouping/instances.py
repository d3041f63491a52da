"""Instances of an operator in a plan: their distance, and the time that a tuple takes there.

Source: docs/grouping.md, section 1.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import inf, prod
from typing import NamedTuple

from model.vocabulary.grouping import TIME_US_MAX
from model.vocabulary.settings import require
from sim.kernel.distributions import mean_us
from sim.kernel.faults import Slow
from sim.kernel.link import HERE, Tier
from sim.kernel.plan import Plan

NO_LINK = Tier(0.0, inf)
"""Way to an instance without a link."""
SPEED_MIN, SPEED_MAX = 1e-6, 1e6
"""Speeds of the slowest and the fastest instance that are allowed."""


def check(plan: Plan) -> None:
    """Raise ``ValueError`` with one sentence if the workers cannot be instances."""
    work_us = mean_us(plan.cluster.service)
    require(0 < work_us < inf, "mean of Cluster.service", work_us, "finite and above 0")
    for worker in plan.cluster.workers:
        require(worker.queue_limit != 0, "queue_limit", worker.queue_limit, "above 0")
        good = SPEED_MIN <= worker.speed <= SPEED_MAX
        require(good, "speeds", worker.speed, "from a millionth to a million")


def tier(plan: Plan, instance: int) -> Tier:
    """Return the way from the log to an instance."""
    return plan.way(HERE, plan.cluster.worker(instance).place) or NO_LINK


def tier_numbers(plan: Plan, n: int) -> tuple[int, ...]:
    """Return ``tiers`` of a router's configuration: 0 is the same process, 3 is elsewhere."""
    ways = [tier(plan, instance) for instance in range(n)]
    return tuple([plan.tiers.index(way) if way in plan.tiers else 0 for way in ways])


def latency_us(plan: Plan, n: int) -> tuple[int, ...]:
    """Return ``latency_us`` of a router's configuration."""
    return tuple([round(tier(plan, instance).latency_us) for instance in range(n)])


def time_us(plan: Plan, instance: int, service_us: float) -> int:
    """Return ``t_i`` of an instance: the larger one of transfer time and service time."""
    transfer_us = tier(plan, instance).transfer_us(8 * plan.cluster.tuple_bytes)
    return _longer_us(transfer_us, service_us)


def _longer_us(transfer_us: float, service_us: float) -> int:
    return min(TIME_US_MAX, max(1, round(max(transfer_us, service_us))))


def times_us(plan: Plan, n: int, at_us: float = 0.0) -> tuple[int, ...]:
    """Return every ``t_i`` on average, with speeds and slowdowns at a moment."""
    work_us = mean_us(plan.cluster.service)
    return tuple([time_us(plan, i, work_us * _slowness(plan, i, at_us)) for i in range(n)])


def _slowness(plan: Plan, instance: int, at_us: float) -> float:
    factors = [
        fault.factor
        for fault in plan.faults
        if isinstance(fault, Slow)
        and fault.worker == f"worker-{instance}"
        and fault.at_us <= at_us < fault.at_us + fault.for_us
    ]
    return prod(factors) / plan.cluster.worker(instance).speed


def ideal_hz(plan: Plan, n: int) -> float:
    """Return the throughput (tuples a second) of an ideal fluid, at the start."""
    return sum(1e6 / each for each in times_us(plan, n))


# ------------------------------------------------------------------------------------- measured


class Reading(NamedTuple):
    """Observations of an instance since the reading before."""

    served: int
    """Number of tuples served."""
    busy_us: float
    """Time that they took in service."""
    transfer_us: float
    """Mean time on the line of the tuples that entered, or of those of an earlier reading."""
    way_us: float | None
    """Mean time of a tuple from sending to entering; ``None`` if none entered."""


class Meter:
    """Measures how long an instance is busy with a tuple, and how long a tuple is on its way."""

    def __init__(self, latency_us: float) -> None:
        self._latency_us = latency_us
        self._entered_us = -inf
        """Time at which the last tuple entered."""
        self._transfer_us = 0.0
        self._restart()

    def enter(self, sent_us: float, now_us: float) -> None:
        """Note a tuple that enters the instance."""
        way_us = now_us - sent_us
        # Behind another tuple, it has the line from the moment at which that one leaves it.
        self._line_us += min(way_us - self._latency_us, now_us - self._entered_us)
        self._way_us += way_us
        self._entered += 1
        self._entered_us = now_us

    def serve(self, busy_us: float) -> None:
        """Note a tuple that was served."""
        self._served += 1
        self._busy_us += busy_us

    def read(self) -> Reading:
        """Return what was noted, and begin again."""
        entered, way_us = self._entered, None
        if entered:
            self._transfer_us, way_us = self._line_us / entered, self._way_us / entered
        reading = Reading(self._served, self._busy_us, self._transfer_us, way_us)
        self._restart()
        return reading

    def _restart(self) -> None:
        self._served = self._entered = 0
        self._busy_us = self._line_us = self._way_us = 0.0


def measure_times_us(known_us: Sequence[int], seen: Sequence[Reading]) -> tuple[int, ...]:
    """Return every measured ``t_i``; an instance that has served nothing keeps its known time."""
    return tuple(
        [
            _longer_us(each.transfer_us, each.busy_us / each.served) if each.served else known
            for known, each in zip(known_us, seen, strict=True)
        ]
    )


def measure_tiers(plan: Plan, known: Sequence[int], seen: Sequence[Reading]) -> tuple[int, ...]:
    """Return every measured tier; an instance that nothing has reached keeps its known tier."""
    bits = 8 * plan.cluster.tuple_bytes
    free_us = [each.travel_us(bits) for each in plan.tiers]
    limits = [near_us * far_us for near_us, far_us in pairwise(free_us)]
    return tuple(
        [
            tier if each.way_us is None else sum(each.way_us**2 > limit for limit in limits)
            for tier, each in zip(known, seen, strict=True)
        ]
    )
