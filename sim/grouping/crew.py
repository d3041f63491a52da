"""What the instances of an operator are, and how far away: the part of a run that costs time.

Source: docs/grouping.md, section 1; for back-pressure by credits, Carbone et al., "State
Management in Apache Flink", and the documentation of that system.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from model.vocabulary.settings import require
from sim.kernel.distributions import Distribution, Exponential, mean_us
from sim.kernel.faults import Schedule, Slow, check_fault
from sim.kernel.link import Tier, Tiers, check_tier

TIERS = Tiers()
SERVICE = Exponential(200.0)
TIER_NAMES = Tiers._fields
"""By their number: 0 is the same process, 3 is elsewhere."""


@dataclass(frozen=True, slots=True)
class Crew:
    """Instances and the way to them; ``ValueError`` with one sentence that names a bad value."""

    speeds: tuple[float, ...] = (1.0,)
    """Of the instances, in turn; 0.1 is ten times slower."""
    tiers: tuple[int, ...] = (1,)
    """How far away they are, in turn: 0 to 3."""
    service: Distribution = SERVICE
    """Work of a tuple at speed 1; the same tuple has the same work wherever it goes."""
    tuple_bytes: int = 100
    queue_limit: int = 100
    """Tuples that may be under way to an instance, waiting there or served."""
    faults: Schedule = ()
    """``Slow`` alone; instances are called ``worker-0``, ..."""
    table: Tiers = TIERS

    def __post_init__(self) -> None:
        for name in ("speeds", "tiers"):
            require(len(getattr(self, name)) > 0, name, getattr(self, name), "at least one")
        for speed in self.speeds:
            require(1e-6 <= speed <= 1e6, "speeds", speed, "from a millionth to a million")
        for tier in self.tiers:
            require(tier in range(len(self.table)), "tiers", tier, "0, 1, 2 or 3")
        for each in self.table:
            check_tier(each)
        work_us = mean_us(self.service)
        require(0 < work_us < inf, "mean of service", work_us, "finite and above 0")
        for name in ("tuple_bytes", "queue_limit"):
            require(getattr(self, name) > 0, name, getattr(self, name), "above 0")
        for fault in self.faults:
            require(isinstance(fault, Slow), "a fault of an instance", fault, "a Slow")
            check_fault(fault)

    def tier(self, instance: int) -> Tier:
        """The way to an instance."""
        return self.table[self.tiers[instance % len(self.tiers)]]

    def tier_numbers(self, n: int) -> tuple[int, ...]:
        """``tiers`` of a router's configuration."""
        return tuple([self.tiers[i % len(self.tiers)] for i in range(n)])

    def latency_us(self, n: int) -> tuple[int, ...]:
        """``latency_us`` of a router's configuration."""
        return tuple([round(self.tier(i).latency_us) for i in range(n)])

    def transfer_us(self, instance: int) -> float:
        """How long a tuple is on the line to an instance, without propagation."""
        return 8 * self.tuple_bytes / self.tier(instance).bandwidth_mbps

    def spells(self, instance: int) -> list[tuple[float, float]]:
        """Until when an instance takes how many microseconds for one of work; the last for ever."""
        plain = 1 / self.speeds[instance % len(self.speeds)]
        slow = [
            fault
            for fault in self.faults
            if isinstance(fault, Slow) and fault.worker == f"worker-{instance}"
        ]
        ends = {float(at) for each in slow for at in (each.at_us, each.at_us + each.for_us)}
        found, since_us = [], 0.0
        for until_us in [*sorted(ends - {0.0}), inf]:
            slowness = plain
            for each in slow:
                if each.at_us <= since_us < each.at_us + each.for_us:
                    slowness *= each.factor
            found.append((until_us, slowness))
            since_us = until_us
        return found

    def times_us(self, n: int, at_us: float = 0.0) -> tuple[int, ...]:
        """``t_i``, true on the mean: the larger one of transfer and service."""
        work_us = mean_us(self.service)
        return tuple([self.time_us(i, work_us * self._slowness(i, at_us)) for i in range(n)])

    def time_us(self, instance: int, service_us: float) -> int:
        """``t_i`` of an instance that serves so long."""
        return max(1, round(max(self.transfer_us(instance), service_us)))

    def _slowness(self, instance: int, at_us: float) -> float:
        return next(slow for until_us, slow in self.spells(instance) if at_us < until_us)

    def ideal_hz(self, n: int) -> float:
        """Tuples a second that a fluid could be worked off with, at the start."""
        return sum(1e6 / time_us for time_us in self.times_us(n))


def measured_us(
    before: Sequence[int], crew: Crew, served: Sequence[tuple[int, float]]
) -> tuple[int, ...]:
    """``t_i`` as they were seen: of every instance how many it has served, and for how long.

    One that has served nothing keeps what was known of it.
    """
    return tuple(
        [
            crew.time_us(i, busy_us / count) if count else before[i]
            for i, (count, busy_us) in enumerate(served)
        ]
    )
