"""Predictions of a replay through the stated cluster: tuples a second, and latency of answers.

Rules of this file:

* The rate is that at which the busiest worker never rests: tuples divided by its working time. How
  fast a recording arrives says nothing about the cluster.
* A figure without observations is ``None``.
"""

from collections.abc import Sequence
from typing import NamedTuple

from sim.clusters import STATED
from sim.kernel.distributions import Exponential, mean_us
from sim.kernel.link import HERE
from sim.kernel.plan import TIER_TABLE, Cluster, Worker
from sim.kernel.recorder import Summary
from sim.kernel.run import TimedRun
from straggler.rooms import Prediction

SECOND_US = 1e6
MS_US = 1e3


class Predictor(NamedTuple):
    """Names of the figures in the summary of a room's run, and what they measure."""

    p50: str
    """Name of the median latency (us) in the summary."""
    p99: str
    """Name of the 99th percentile of latency (us) in the summary."""
    latency: str
    """Span of the latency, for example ``from the arrival of a tuple to its end of service``."""
    busy: tuple[str, ...]
    """Prefixes of the names of utilisations in the summary, which has one for each worker."""
    speeds: str = ""
    """Note on the speeds of workers, if they differ from those of the cluster."""

    def predict(self, run: TimedRun) -> Prediction:
        """Return the prediction of a run."""
        summary = run.summary
        return Prediction(
            _rate(len(run.workload.arrivals), _busiest_us(summary, self.busy)),
            _ms(summary, self.p50),
            _ms(summary, self.p99),
        )

    def describe(self) -> str:
        """Describe the stated cluster and the meaning of its figures in two sentences."""
        cluster = describe_cluster(STATED, self.speeds)
        return (
            f"Predicted by a replay through {cluster}. tuples/s: the rate at which the busiest"
            f" worker never rests; p50 and p99: latency {self.latency}."
        )


def _busiest_us(summary: Summary, busy: Sequence[str]) -> float:
    shares = [float(share) for name, share in summary.items() if name.startswith(tuple(busy))]
    return max(shares, default=0.0) * float(summary.get("duration_us", 0.0))


def _rate(tuples: int, busiest_us: float) -> float | None:
    return tuples * SECOND_US / busiest_us if tuples and busiest_us > 0 else None


def _ms(summary: Summary, name: str) -> float | None:
    return float(summary[name]) / MS_US if name in summary else None


def describe_cluster(cluster: Cluster, speeds: str = "") -> str:
    """Describe a cluster: its workers, their network tiers, and the work of a tuple.

    ``speeds`` replaces the speeds of the cluster.
    """
    workers = " and ".join([_worker(worker, has_speed=not speeds) for worker in cluster.workers])
    if speeds:
        return f"workers {workers} in turn, {speeds}"
    kind = "exponential" if isinstance(cluster.service, Exponential) else "always"
    work = f"{mean_us(cluster.service):g} us of work a tuple ({kind})"
    return f"workers {workers} in turn, with {work}"


def _worker(worker: Worker, *, has_speed: bool) -> str:
    """Describe a worker by its network tier, and by its speed if ``has_speed``."""
    speed = f"of speed {worker.speed:g} " if has_speed else ""
    if worker.place is None:
        return f"{speed}right at the log"
    tier = TIER_TABLE.between(HERE, worker.place)
    name = TIER_TABLE._fields[TIER_TABLE.index(tier)]
    return f"{speed}in tier {name} ({tier.latency_us:g} us, {tier.bandwidth_mbps:,.0f} Mb/s)"
