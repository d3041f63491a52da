"""A plan: sources, network, cluster, trigger, disturbances and faults of one run, as data.

Plans are small, are compared and printed by value, and are checked when they are built. So a test
can draw them, and the text of one is Python that builds it again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Literal, TypeVar

from model.vocabulary import Event
from model.vocabulary.settings import require
from sim.kernel.disorder import Disturbance, check_disturbance
from sim.kernel.distributions import Constant, Distribution
from sim.kernel.faults import Duplicate, Schedule, check_fault
from sim.kernel.link import QUIET, RELIABLE, Noise, Place, Tier, Tiers, check_tier
from sim.kernel.source import EXACT, AnySource, Recording, Row
from sim.kernel.trigger import EVERY_SECOND, At, When

EPOCH_2020_US = 1_577_836_800_000_000
"""2020-01-01 00:00 UTC."""
TIER_TABLE = Tiers()
TEN_MICROSECONDS = Constant(10.0)
TuningT = TypeVar("TuningT")


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker as data: its speed, its place, and what it does with a full queue."""

    speed: float = 1.0
    """Work done per microsecond; 0.1 is a worker ten times slower."""
    queue_limit: int | None = None
    """Items that may wait, not counting those in service; ``None``: any number."""
    when_full: Literal["block", "drop"] = "block"
    """``block``: an item waits at the door and its sender has to stop (backpressure);
    ``drop``: the log sheds it, where it is not let in."""
    place: Place | None = None
    """Location of the worker; ``None``: at its sender, without a link in between."""

    def __post_init__(self) -> None:
        require(0 < self.speed < inf, "Worker.speed", self.speed, "finite and above 0")
        good = self.when_full in ("block", "drop")
        require(good, "Worker.when_full", self.when_full, "'block' or 'drop'")
        if self.queue_limit is not None:
            require(self.queue_limit >= 0, "Worker.queue_limit", self.queue_limit, "at least 0")


ORDINARY = Worker()


@dataclass(frozen=True, slots=True)
class Cluster:
    """The cluster of a query: its workers, and the links between the log and them."""

    workers: tuple[Worker, ...] = (ORDINARY,)
    """Workers, used in turn: with two of them, the third worker of a query is like the first."""
    service: Distribution = TEN_MICROSECONDS
    """Work of a tuple at speed 1, the same on every worker."""
    tuple_bytes: int = 100
    """Size of a tuple on a link."""
    noise: Noise = RELIABLE
    """Random loss on the links of the cluster, always with a retry."""

    def __post_init__(self) -> None:
        require(len(self.workers) > 0, "Cluster.workers", self.workers, "at least one worker")
        require(self.tuple_bytes > 0, "Cluster.tuple_bytes", self.tuple_bytes, "above 0")
        good = self.noise.retry_us is not None
        require(good, "Cluster.noise.retry_us", None, "a time: a cluster's links lose nothing")

    def worker(self, number: int) -> Worker:
        """Return the worker with this number."""
        return self.workers[number % len(self.workers)]


ONE_WORKER = Cluster()


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that determines a timed run, except for the query and the seed.

    The constructor raises ``ValueError`` with one sentence that names the offending value.
    """

    sources: tuple[AnySource, ...]
    cluster: Cluster = ONE_WORKER
    tuning: object = None
    """Settings of the cluster that only one room has; ``None``: the defaults of the room."""
    disturbances: tuple[Disturbance, ...] = ()
    faults: Schedule = ()
    """Faults; a fault of a message number that never occurs does nothing."""
    noise: Noise = QUIET
    """Random loss and replay on every link on the way to the log."""
    tiers: Tiers = TIER_TABLE
    trigger: When = EVERY_SECOND
    flush: bool = True
    """True if the stream is flushed behind its last batch."""
    epoch_us: int = EPOCH_2020_US
    """Start of the run, in microseconds since 1970."""
    name: str = "plan, simulated"

    def __post_init__(self) -> None:
        require(abs(self.epoch_us) <= EXACT, "Plan.epoch_us", self.epoch_us, f"within +-{EXACT}")
        for disturbance in self.disturbances:
            check_disturbance(disturbance, len(self.sources))
        for tier in self.tiers:
            check_tier(tier)
        names = [f"source-{number}" for number in range(len(self.sources))]
        for fault in self.faults:
            check_fault(fault)
            if isinstance(fault, Duplicate):
                good = fault.source in names
                require(good, "target of duplicate", fault.source, f"one of {', '.join(names)}")

    def way(self, one: Place | None, other: Place | None) -> Tier | None:
        """Return the tier between two ends; ``None``, for no link, if one end has no place."""
        return None if one is None or other is None else self.tiers.between(one, other)

    def tuned(self, default: TuningT) -> TuningT:
        """Return the room's tuning or its defaults; raise ``ValueError`` for another room's."""
        if self.tuning is None:
            return default
        good = isinstance(self.tuning, type(default))
        require(good, "Plan.tuning", self.tuning, f"a {type(default).__name__}")
        assert isinstance(self.tuning, type(default))
        return self.tuning


def replay(
    arrivals: Sequence[Event],
    name: str,
    cuts: Sequence[int] | None = None,
    *,
    flush: bool = True,
    cluster: Cluster = ONE_WORKER,
) -> Plan:
    """Return a plan with exactly these arrivals; the run starts with the first of them.

    ``arrivals`` are in order of arrival; ties keep their order. With ``cuts`` the batches are those
    of a workload; otherwise a batch ends every second.
    """
    rows = [
        Row(event_time_us, arrival_us, key, value, source_id, stream, more)
        for _, source_id, key, event_time_us, value, arrival_us, stream, more in arrivals
    ]
    return Plan(
        (Recording(tuple(rows)),),
        cluster=cluster,
        trigger=EVERY_SECOND if cuts is None else At(tuple(cuts)),
        flush=flush,
        epoch_us=arrivals[0].arrival_us if arrivals else EPOCH_2020_US,
        name=name,
    )
