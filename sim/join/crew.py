"""What a chain runs on, what its work costs, and by which rules it is controlled.

Source: docs/join.md, sections 5, 7 and 8.
"""

from dataclasses import dataclass
from math import inf

from model.join.load import Limits
from model.join.load_claims import Rule
from model.vocabulary.settings import require
from sim.kernel.link import Tier, Tiers, check_tier

TIERS = Tiers()
LIMITS = Limits(0.25, 0.8, 0.8)
BLOCK_SIZES = ("fixed", "adaptive")
SHEDDING = {"no": 1, "linear": 1, "quadratic": 2}
"""Rules with the power of each (docs/join.md, section 8)."""


def require_at_least_0(owner: object, *names: str) -> None:
    """Raise ``ValueError`` naming the first of these fields that is negative or not finite."""
    for name in names:
        value = getattr(owner, name)
        require(0 <= value < inf, name, value, "finite and at least 0")


@dataclass(frozen=True, slots=True)
class Costs:
    """Work at speed 1, and sizes on the network."""

    message_us: float = 5.0
    """Of a message, to take or to send; the tuples of one intake are a message."""
    tuple_us: float = 0.2
    """Of a tuple that is admitted, taken, sent or dropped."""
    comparison_us: float = 0.02
    """Of a candidate that the index selected."""
    result_us: float = 0.1
    tuple_bytes: int = 100
    header_bytes: int = 50
    """Of a block, an acknowledgement or a hint."""

    def __post_init__(self) -> None:
        require_at_least_0(self, "message_us", "tuple_us", "comparison_us", "result_us")
        for name in ("tuple_bytes", "header_bytes"):
            require(getattr(self, name) > 0, name, getattr(self, name), "above 0")


@dataclass(frozen=True, slots=True)
class Crew:
    """Workers and what links them; ``ValueError`` with one sentence that names a bad value."""

    speeds: tuple[float, ...] = (1.0,)
    """Of the workers, in turn."""
    tiers: tuple[Tier, ...] = (TIERS.node,)
    """Of the boundaries, in turn."""
    costs: Costs = Costs()
    is_indexed: bool = True
    """Without an index a tuple is compared with all that it meets, as in a handshake join."""
    intake_us: int = 10_000
    """A source looks for arrivals at multiples of this."""
    intake_tuples: int = 256
    """Most arrivals that a source takes at once."""
    hint_us: int = 100_000
    """Every so often workers send hints where no other message went."""
    pace_us: int | None = None
    """How far the event time of a stream's next arrival may lie ahead of the other's before its
    intake pauses; ``None``: it never pauses, for overdue tuples neither."""
    commit_us: int = 10_000
    """From the end of an epoch to the start of the next: state is saved, results are shown."""

    def __post_init__(self) -> None:
        for name in ("speeds", "tiers"):
            require(len(getattr(self, name)) > 0, name, getattr(self, name), "at least one")
        for speed in self.speeds:
            require(0 < speed < inf, "speeds", speed, "finite and above 0")
        for tier in self.tiers:
            check_tier(tier)
        for name in ("intake_us", "intake_tuples", "hint_us"):
            require(getattr(self, name) > 0, name, getattr(self, name), "above 0")
        require_at_least_0(self, "commit_us")
        if self.pace_us is not None:
            require_at_least_0(self, "pace_us")


@dataclass(frozen=True, slots=True)
class Control:
    """Block size, shedding and number of workers, by the mean utilisation."""

    capacity: int = 1_000
    """C: tuples held that make a utilisation of 1 of a worker."""
    limits: Limits = LIMITS
    blocks: str = "fixed"
    """``adaptive``: zeta(tau), at most the block size of the query."""
    shed: str = "no"
    base: float = 0.0
    """B, the share that is shed as soon as anything is."""
    margin: float = 0.05
    """How far below tau1 shedding ends once it has begun."""
    smoothing: float = 0.3
    """Weight of the latest utilisation in the smoothed one."""
    scale: bool = False
    """Whether workers come and go."""
    every_us: int = 1_000_000

    @property
    def rule(self) -> Rule:
        """What the claims about load have to know."""
        power = SHEDDING[self.shed]
        return Rule(self.limits, self.capacity, self.base, power, self.margin)

    def __post_init__(self) -> None:
        require(self.capacity > 0, "capacity", self.capacity, "above 0")
        require(self.blocks in BLOCK_SIZES, "blocks", self.blocks, " or ".join(BLOCK_SIZES))
        require(self.shed in SHEDDING, "shed", self.shed, "one of " + ", ".join(SHEDDING))
        require(0 <= self.base < 1, "base", self.base, "at least 0 and below 1")
        require_at_least_0(self, "margin")
        good = 0 < self.smoothing <= 1
        require(good, "smoothing", self.smoothing, "above 0 and at most 1")
        require(self.every_us > 0, "every_us", self.every_us, "above 0")
