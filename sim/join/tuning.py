"""What only room ``join`` asks about its cluster: costs, intake, and rules of control.

Source: docs/join.md, sections 5, 7 and 8.
"""

from dataclasses import dataclass
from math import inf

from model.join.load import Limits
from model.join.load_claims import Rule
from model.vocabulary.settings import require
from sim.kernel.plain import plain

BLOCK_SIZES = ("fixed", "adaptive")
SHEDDING = {"no": 1, "linear": 1, "quadratic": 2}
"""Rules of shedding, each with its power (docs/join.md, section 8)."""
LIMITS = Limits(0.25, 0.8, 0.8)
plain(Limits)


def _require_at_least_0(owner: object, *names: str) -> None:
    """Raise ``ValueError`` naming the first of these fields that is negative or not finite."""
    for name in names:
        value = getattr(owner, name)
        require(0 <= value < inf, name, value, "finite and at least 0")


@plain
@dataclass(frozen=True, slots=True)
class Costs:
    """Work at speed 1, beside that of the tuples (``Cluster.service``); bytes of a header.

    A tuple's work is due each time that it is admitted, taken, sent or dropped.
    """

    message_us: float = 5.0
    """Work of a message, taken or sent; the tuples of one intake are one message."""
    comparison_us: float = 0.02
    """Work of a candidate pair that the index selected."""
    result_us: float = 0.1
    header_bytes: int = 50
    """Size of a block, an acknowledgement or a hint without tuples."""

    def __post_init__(self) -> None:
        _require_at_least_0(self, "message_us", "comparison_us", "result_us")
        require(self.header_bytes > 0, "header_bytes", self.header_bytes, "above 0")


@plain
@dataclass(frozen=True, slots=True)
class Control:
    """How the mean utilisation sets block size, shedding and number of workers."""

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
        _require_at_least_0(self, "margin")
        good = 0 < self.smoothing <= 1
        require(good, "smoothing", self.smoothing, "above 0 and at most 1")
        require(self.every_us > 0, "every_us", self.every_us, "above 0")


UNCONTROLLED = Control()
ORDINARY = Costs()


@plain
@dataclass(frozen=True, slots=True)
class ChainTuning:
    """Costs, intake and control of a chain; ``ValueError`` with one sentence for a bad value."""

    costs: Costs = ORDINARY
    control: Control = UNCONTROLLED
    is_indexed: bool = True
    """Without an index a tuple is compared with all that it meets, as in a handshake join."""
    intake_us: int = 10_000
    """The intake looks for arrivals at multiples of this."""
    intake_tuples: int = 256
    """Most arrivals of a stream that are handed over at once."""
    hint_us: int = 100_000
    """Every so often workers send hints where no other message went."""
    pace_us: int | None = None
    """How far the event time of a stream's next arrival may lie ahead of the other stream before
    its intake pauses; ``None``: it never pauses, not even for overdue tuples."""
    commit_us: int = 10_000
    """From the end of an epoch to the start of the next: state is saved, results are shown."""
    record: bool = False
    """Whether steps of the protocol are recorded; a chain whose workers come and go has none."""

    def __post_init__(self) -> None:
        for name in ("intake_us", "intake_tuples", "hint_us"):
            require(getattr(self, name) > 0, name, getattr(self, name), "above 0")
        _require_at_least_0(self, "commit_us")
        if self.pace_us is not None:
            _require_at_least_0(self, "pace_us")
