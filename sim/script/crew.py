"""What workers are, and how far away: the part of a run that costs time.

Source: docs/script.md, section 8, for what is sent; the tiers are those of ``sim.network``.
"""

from dataclasses import dataclass
from math import inf

from model.vocabulary.settings import require
from sim.kernel.distributions import Distribution, Exponential
from sim.kernel.link import HERE, Place, Tier, Tiers, check_tier

TIERS = Tiers()
SERVICE = Exponential(100.0)
TIER_NAMES = Tiers._fields
"""By their number: 0 is the same process, 3 is elsewhere."""


@dataclass(frozen=True, slots=True)
class Crew:
    """Workers and the ways to them; ``ValueError`` with one sentence that names a bad value.

    What drops sensors that nobody asks for, and sends on the others, stands at ``HERE``.
    """

    speeds: tuple[float, ...] = (1.0,)
    """Of the workers, in turn; 0.1 is ten times slower."""
    tiers: tuple[int, ...] = (2,)
    """How far away they are, in turn: 0 to 3. Two of the same tier are as far from each other."""
    service: Distribution = SERVICE
    """Work of a tuple at speed 1; the same tuple has the same work wherever it goes."""
    result_us: float = 100.0
    """Work of a result at speed 1: to compute it, and to take one that another worker sends."""
    tuple_bytes: int = 100
    result_bytes: int = 100
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
        good = 0 <= self.result_us < inf
        require(good, "result_us", self.result_us, "finite and at least 0")
        for name in ("tuple_bytes", "result_bytes"):
            require(getattr(self, name) > 0, name, getattr(self, name), "above 0")

    def speed(self, worker: int) -> float:
        """Work done a microsecond."""
        return self.speeds[worker % len(self.speeds)]

    def place(self, worker: int) -> Place:
        """Where a worker stands."""
        tier, own = self.tiers[worker % len(self.tiers)], worker + 1
        return (HERE, Place(process=own), Place(node=own), Place(rack=own))[tier]

    def way_to(self, worker: int) -> Tier:
        """From where tuples are sent on, to a worker."""
        return self.table.between(HERE, self.place(worker))

    def between(self, worker: int, other: int) -> Tier:
        """From a worker to another one."""
        return self.table.between(self.place(worker), self.place(other))
