"""What the stated cluster says of a recording: how many tuples a second, and how long answers take.

Rules of this file:

* The rate is that at which the busiest worker never rests: tuples by the time for which it worked.
  How fast a recording comes says nothing about the cluster.
* A figure of which nothing was seen is ``None``.
"""

from collections.abc import Sequence
from typing import NamedTuple

from sim.clusters import STATED
from sim.kernel.distributions import Exponential, mean_us
from sim.kernel.link import HERE
from sim.kernel.plan import TIER_TABLE, Cluster, Worker
from sim.kernel.recorder import Summary
from sim.kernel.run import TimedRun

SECOND_US = 1e6
MS_US = 1e3


class Prediction(NamedTuple):
    """Figures of one replay; names end in their unit."""

    predicted_tuples_per_s: float | None
    predicted_latency_p50_ms: float | None
    predicted_latency_p99_ms: float | None


NO_PREDICTION = Prediction(None, None, None)


class Predictor(NamedTuple):
    """Where the figures of a room's run are, and what they are about."""

    p50: str
    """Median latency (us) of an answer: its name in the summary."""
    p99: str
    latency: str
    """What takes that long, for example ``from the arrival of a tuple to its end of service``."""
    busy: tuple[str, ...]
    """How the names of utilisations in the summary begin: shares of the run, one a worker."""
    speeds: str = ""
    """What a reader has to know of the workers' speeds, if they are not those of the cluster."""

    def predict(self, run: TimedRun) -> Prediction:
        """Return what a run predicts."""
        summary = run.summary
        return Prediction(
            _rate(len(run.workload.arrivals), _busiest_us(summary, self.busy)),
            _ms(summary, self.p50),
            _ms(summary, self.p99),
        )

    def told(self) -> str:
        """Return what the stated cluster is and what its figures mean, as a sentence."""
        cluster = told(STATED, self.speeds)
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


def told(cluster: Cluster, speeds: str = "") -> str:
    """Return a cluster in words: its workers, how far away they are, and the work of a tuple.

    ``speeds`` says how fast they are, if not as fast as in the cluster.
    """
    workers = " and ".join([_worker(worker, is_fast=not speeds) for worker in cluster.workers])
    if speeds:
        return f"workers {workers} in turn, {speeds}"
    kind = "exponential" if isinstance(cluster.service, Exponential) else "always"
    work = f"{mean_us(cluster.service):g} us of work a tuple ({kind})"
    return f"workers {workers} in turn, with {work}"


def _worker(worker: Worker, *, is_fast: bool) -> str:
    """Return the speed of a worker, if that is asked, and how far from the log it stands."""
    speed = f"of speed {worker.speed:g} " if is_fast else ""
    if worker.place is None:
        return f"{speed}right at the log"
    tier = TIER_TABLE.between(HERE, worker.place)
    name = TIER_TABLE._fields[TIER_TABLE.index(tier)]
    return f"{speed}in tier {name} ({tier.latency_us:g} us, {tier.bandwidth_mbps:,.0f} Mb/s)"
