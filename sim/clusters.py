"""Settings of a cluster, the same in every room: what its workers and links are, and what fails."""

from collections.abc import Mapping, Sequence
from math import lcm

from model.vocabulary.settings import require
from sim.kernel.distributions import Constant, Distribution, Exponential
from sim.kernel.faults import Schedule, schedule_of
from sim.kernel.link import HERE, Noise, Place, Tiers
from sim.kernel.plan import Cluster, Worker
from sim.settings import NONE, Setting, Word, chosen, integer, number

FULL = ("block", "drop")
SERVICES = ("exponential", "constant")
TIERS = (NONE, *Tiers._fields)

DEFAULTS: Mapping[str, Setting] = {
    "speeds": "1,0.5",  # of the workers, in turn
    "tiers": Word(NONE, TIERS, is_list=True),  # how far workers are from the log, in turn
    "queue_limit": NONE,  # of each worker
    "when_full": Word("block", FULL),
    "service": Word("exponential", SERVICES),
    "service_us": 5_000.0,  # mean work of a tuple, at speed 1
    "tuple_bytes": 100,
    "loss": 0.0,  # of messages on the cluster's links, each with a retry
    "retry_us": 200_000.0,
    "faults": NONE,  # for example: slow worker-1 20000000 5000000 4; fail worker-0 9000000 1000000
}
"""Every setting of a cluster with its default; a room may have others."""

STATED = Cluster(
    workers=(Worker(place=Place(process=1)), Worker(0.5, place=Place(node=1))),
    service=Exponential(100.0),
)
"""The cluster through which recordings are replayed: fast workers nearby, slow ones in the rack."""


def cluster_of(given: Mapping[str, str]) -> Cluster:
    """Read a cluster; ``ValueError`` with one sentence that names the offending key or value."""
    tiers = [text.strip() for text in given["tiers"].split(",")]
    count = lcm(len(given["speeds"].split(",")), len(tiers))  # each of them in turn
    return Cluster(
        workers_of(given, [place_of(tiers[n % len(tiers)], n) for n in range(count)]),
        service_of(given),
        integer("tuple_bytes", given["tuple_bytes"]),
        noise_of(given),
    )


def workers_of(given: Mapping[str, str], places: Sequence[Place | None]) -> tuple[Worker, ...]:
    """Read workers that stand at these places."""
    speeds = [_above_0(given, "speeds", text) for text in given["speeds"].split(",")]
    limit = None
    if given["queue_limit"] != NONE:
        limit = int(number("queue_limit", given["queue_limit"], int, other=NONE))
        require(limit >= 0, "queue_limit", limit, "at least 0")
    when_full = chosen("when_full", given["when_full"], {"block": "block", "drop": "drop"})
    return tuple(
        [
            Worker(
                speeds[n % len(speeds)],
                queue_limit=limit,
                when_full="drop" if when_full == "drop" else "block",
                place=place,
            )
            for n, place in enumerate(places)
        ]
    )


def noise_of(given: Mapping[str, str]) -> Noise:
    """Read the random loss on the cluster's links."""
    return Noise(
        float(number("loss", given["loss"], float)),
        float(number("retry_us", given["retry_us"], float)),
    )


def service_of(given: Mapping[str, str]) -> Distribution:
    """Read the work of a tuple."""
    service_us = _above_0(given, "service_us", given["service_us"])
    return Exponential(service_us) if given["service"] == "exponential" else Constant(service_us)


def faults_of(given: Mapping[str, str]) -> Schedule:
    """Read a fault schedule; see :func:`sim.kernel.faults.schedule_of`."""
    return () if given["faults"] == NONE else schedule_of(given["faults"])


def place_of(tier: str, worker: int) -> Place | None:
    """Return a place of its own for a worker that is so far from the log."""
    places = {
        NONE: None,
        "process": HERE,
        "node": Place(process=worker + 1),
        "rack": Place(node=worker + 1),
        "elsewhere": Place(rack=worker + 1),
    }
    return chosen("tiers", tier, places)


def _above_0(given: Mapping[str, str], key: str, text: str) -> float:
    value = float(number(key, text, float))
    require(value > 0, key, text.strip(), "above 0")
    return value
