"""A plan: sources, workers, places, disturbances and faults of one run, as data.

Plans are small, compared and printed by value, and checked when they are built, so that a test can
draw and shrink them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from typing import NamedTuple, TypeAlias, assert_never

from sim.cluster import Worker
from sim.disorder import Disturbance, check_disturbance
from sim.distributions import Constant, Distribution, require
from sim.faults import (
    Clog,
    Duplicate,
    Fail,
    Fault,
    Lose,
    Pause,
    Replay,
    Schedule,
    Slow,
    check_fault,
)
from sim.network import HERE, QUIET, Noise, Place, Tiers, check_tier

EPOCH_2020_US = 1_577_836_800_000_000
"""2020-01-01 00:00 UTC."""

IDS_PER_SOURCE = 1_000_000_000
"""Tuple ``n`` of source ``s`` has the identity ``s * IDS_PER_SOURCE + n``."""

EXACT = 2**53
"""Whole numbers up to here are exact as floats."""

ONE_SECOND = Constant(1_000_000)
NO_DELAY = Constant(0)
TIER_TABLE = Tiers()


@dataclass(frozen=True, slots=True)
class Source:
    """A source of tuples with integer values."""

    events: int
    interval: Distribution = ONE_SECOND
    """Between the event times of two successive tuples; exponential: a Poisson process."""
    start_us: int = 0
    """Event time of the first tuple, after the start of the run."""
    delay: Distribution = NO_DELAY
    """From the event time until the source sends: all that the network's links do not explain."""
    delay_by_value_us: float = 0.0
    """On top of ``delay``, for each unit of the value: a larger message takes longer."""
    in_order: bool = False
    """A tuple waits until those before it have been sent, so a delay holds up what follows."""
    keys: tuple[str, ...] = ("a",)
    zipf: float = 0.0
    """Key number i (from 1) has a share proportional to i^-zipf; 0: all keys alike."""
    low: int = 1
    """Smallest value."""
    high: int = 100
    """Largest value, included."""
    bits: int = 800
    """Size of a tuple on a link."""
    place: Place | None = None
    """Where it stands; ``None``: right there, no link in between."""
    worker: int | None = None
    """The worker that passes its tuples on; ``None``: straight to the sink."""

    def __post_init__(self) -> None:
        good = 0 <= self.events < IDS_PER_SOURCE
        require(good, "Source.events", self.events, f"between 0 and {IDS_PER_SOURCE - 1}")
        require(self.start_us >= 0, "Source.start_us", self.start_us, "at least 0")
        require(len(self.keys) > 0, "Source.keys", self.keys, "at least one key")
        good = 0 <= self.delay_by_value_us < inf
        label = "Source.delay_by_value_us"
        require(good, label, self.delay_by_value_us, "finite and at least 0")
        # Larger messages would be sent before smaller ones are.
        good = self.delay_by_value_us == 0 or self.low >= 0
        require(good, "Source.low", self.low, "at least 0 where a value delays its tuple")
        require(self.zipf >= 0, "Source.zipf", self.zipf, "at least 0")
        require(abs(self.low) <= EXACT, "Source.low", self.low, f"within +-{EXACT}")
        good = self.low <= self.high <= EXACT
        require(good, "Source.high", self.high, f"between low, {self.low}, and {EXACT}")
        require(self.bits >= 0, "Source.bits", self.bits, "at least 0")


class Row(NamedTuple):
    """One tuple of a recorded trace; times in microseconds since the epoch."""

    event_time_us: int
    arrival_us: int
    key: str
    value: float


@dataclass(frozen=True, slots=True)
class Recording:
    """A source that replays a recorded trace: each tuple is sent when it was recorded to arrive."""

    rows: tuple[Row, ...]
    bits: int = 800
    place: Place | None = None
    worker: int | None = None

    def __post_init__(self) -> None:
        good = len(self.rows) < IDS_PER_SOURCE
        require(good, "Recording.rows", len(self.rows), f"fewer than {IDS_PER_SOURCE}")
        require(self.bits >= 0, "Recording.bits", self.bits, "at least 0")


AnySource: TypeAlias = Source | Recording


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that decides what arrives when, except for the seed.

    Raises ``ValueError`` with one sentence that names the offending value.
    """

    sources: tuple[AnySource, ...]
    workers: tuple[Worker, ...] = ()
    disturbances: tuple[Disturbance, ...] = ()
    faults: Schedule = ()
    """Workers are called ``worker-0``, ... and sources ``source-0``, ...; a link is called like the
    source or worker that sends over it. A message number that never comes up does nothing."""
    noise: Noise = QUIET
    """What every link does to messages at random."""
    tiers: Tiers = TIER_TABLE
    sink: Place = HERE
    epoch_us: int = EPOCH_2020_US
    """When the run starts, in microseconds since 1970."""
    name: str = "plan, simulated"

    def __post_init__(self) -> None:
        require(self.epoch_us > 0, "Plan.epoch_us", self.epoch_us, "after 1970")
        for number, source in enumerate(self.sources):
            label = f"worker of source {number}"
            if source.worker is not None:
                good = 0 <= source.worker < len(self.workers)
                require(good, label, source.worker, f"one of the {len(self.workers)} workers")
            if isinstance(source, Recording):
                self._check_rows(number, source)
        for disturbance in self.disturbances:
            check_disturbance(disturbance, len(self.sources))
        for tier in self.tiers:
            check_tier(tier)
        for fault in self.faults:
            check_fault(fault)
            known = self._targets(fault)
            require(
                fault[0] in known, f"target of {fault.kind}", fault[0], f"one of {sorted(known)}"
            )

    def _targets(self, fault: Fault) -> set[str]:
        """What a fault may name: workers, links (a source without a place has none) or sources."""
        workers = {f"worker-{number}" for number in range(len(self.workers))}
        sources = {f"source-{n}": source for n, source in enumerate(self.sources)}
        match fault:
            case Pause() | Fail() | Slow():
                return workers
            case Clog() | Lose() | Replay():
                return workers | {name for name in sources if sources[name].place is not None}
            case Duplicate():
                return set(sources)
        assert_never(fault)

    def _check_rows(self, number: int, source: Recording) -> None:
        start_us = self.epoch_us
        early = (row for row in source.rows if min(row.event_time_us, row.arrival_us) < start_us)
        row = next(early, None)
        require(row is None, f"a row of source {number}", row, f"at or after {start_us} us")


def replay(rows: Iterable[Row], name: str) -> Plan:
    """The plan whose arrivals are a recorded trace, exactly; the run starts at its first time.

    ``rows`` in order of arrival; ties keep their order. A tuple's identity is its row number.
    """
    recorded = tuple(rows)
    times_us = [min(row.event_time_us, row.arrival_us) for row in recorded]
    return Plan((Recording(recorded),), epoch_us=min(times_us, default=EPOCH_2020_US), name=name)
