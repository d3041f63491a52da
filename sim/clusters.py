"""Settings of a cluster that all rooms share: workers, links and faults."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import lcm
from typing import Annotated

from model.vocabulary.settings import Setting, Settings
from sim.kernel.distributions import Constant, Distribution, Exponential
from sim.kernel.faults import Schedule, schedule_of
from sim.kernel.link import HERE, Noise, Place, Tiers
from sim.kernel.plan import Cluster, Worker

NONE = "none"
TIERS = (NONE, *Tiers._fields)

STATED = Cluster(
    workers=(Worker(place=Place(process=1)), Worker(0.5, place=Place(node=1))),
    service=Exponential(100.0),
)
"""Cluster that replays recordings: fast workers in another process, slow ones on another node."""


@dataclass(frozen=True, slots=True)
class ClusterSettings(Settings):
    """Settings of the workers, the links and the faults of a run."""

    speeds: Annotated[tuple[float, ...], Setting("speeds of the workers, in turn", above=0)] = (
        1.0,
        0.5,
    )
    tiers: Annotated[
        tuple[str, ...], Setting("distances of the workers from the log, in turn", choices=TIERS)
    ] = (NONE,)
    queue_limit: Annotated[
        int | None, Setting("longest queue of a worker", at_least=0, none=NONE)
    ] = None
    when_full: Annotated[
        str, Setting("what a full queue does with arrivals", choices=("block", "drop"))
    ] = "block"
    service: Annotated[
        str, Setting("distribution of the work of a tuple", choices=("exponential", "constant"))
    ] = "exponential"
    service_us: Annotated[float, Setting("mean work of a tuple at speed 1", above=0)] = 5_000.0
    tuple_bytes: Annotated[int, Setting("size of a tuple on a link", above=0)] = 100
    loss: Annotated[float, Setting("share of messages that a link loses; each is sent again")] = 0.0
    retry_us: Annotated[float, Setting("time until a lost message is sent again")] = 200_000.0
    faults: Annotated[
        str, Setting('faults, like "slow worker-1 20s 5s 4; fail worker-0 9s 1s", or none')
    ] = NONE

    @property
    def cluster(self) -> Cluster:
        """Cluster of these settings; an impossible value raises ``ValueError``."""
        count = lcm(len(self.speeds), len(self.tiers))  # workers take speeds and tiers in turn
        places = [place_of(self.tiers[n % len(self.tiers)], n) for n in range(count)]
        workers = self.workers(places)
        return Cluster(workers, self.work, self.tuple_bytes, self.noise)

    def workers(self, places: Sequence[Place | None]) -> tuple[Worker, ...]:
        """Return workers at these places."""
        return tuple(
            [
                Worker(
                    self.speeds[n % len(self.speeds)],
                    queue_limit=self.queue_limit,
                    when_full="drop" if self.when_full == "drop" else "block",
                    place=place,
                )
                for n, place in enumerate(places)
            ]
        )

    @property
    def noise(self) -> Noise:
        """Random loss on the links."""
        return Noise(self.loss, self.retry_us)

    @property
    def work(self) -> Distribution:
        """Distribution of the work of a tuple (us at speed 1)."""
        is_constant = self.service == "constant"
        return Constant(self.service_us) if is_constant else Exponential(self.service_us)

    @property
    def schedule(self) -> Schedule:
        """Faults; see :func:`sim.kernel.faults.schedule_of`."""
        return () if self.faults == NONE else schedule_of(self.faults)


def place_of(tier: str, worker: int) -> Place | None:
    """Return a separate place for a worker at distance ``tier`` from the log."""
    places = {
        NONE: None,
        "process": HERE,
        "node": Place(process=worker + 1),
        "rack": Place(node=worker + 1),
        "elsewhere": Place(rack=worker + 1),
    }
    return places[tier]
