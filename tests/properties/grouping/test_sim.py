"""In time, TAG read literally keeps fast instances waiting (docs/grouping.md).

Policies are compared on the same arrivals and the same work; what is said about a mean is said with
a limit and the probability that the limit is wrong.
"""

from functools import cache
from typing import NamedTuple

import pytest

from model.grouping import balance
from model.vocabulary import Event, GroupingConfig
from properties import profiles
from sim.grouping import TimedRun, simulate
from sim.grouping.cluster import GroupingTuning
from sim.grouping.instances import times_us
from sim.kernel.distributions import Exponential
from sim.kernel.link import HERE
from sim.kernel.log import simulate_arrivals
from sim.kernel.plan import Cluster, Plan, Worker
from sim.kernel.recorder import Summary
from sim.kernel.source import Recording, Row, Source
from sim.kernel.trigger import EveryTuples
from straggler.rooms.grouping.draws import limits

FAILURE = 1e-3
"""Probability that a confidence limit of a mean is wrong."""


def repetitions(seed: int, usual: int = 5) -> range:
    """Return the seeds of repetitions: ``usual`` of them, more in profile ``nightly``."""
    return range(seed, seed + profiles.choose(usual, nightly=20))


class Stream(NamedTuple):
    """Light keys in two windows, of which the second one is promised to be balanced.

    Half of the instances are ten times slower. Everything is there at the start: senders stand
    still only where instances do.
    """

    n: int
    window_tuples: int
    keys: int = 5_000

    @property
    def cluster(self) -> Cluster:
        """The instances, fast ones first."""
        slow = self.n // 2
        fast = Worker(queue_limit=10, place=HERE)
        workers = (fast,) * (self.n - slow) + (Worker(0.1, queue_limit=10, place=HERE),) * slow
        return Cluster(workers, Exponential(100.0))

    @property
    def times_us(self) -> tuple[int, ...]:
        """Mean time of a tuple, by instance."""
        return times_us(Plan((), cluster=self.cluster), self.n)

    @property
    def tuple_more(self) -> float:
        """Increase of rho by one more tuple at the slowest instance."""
        return max(self.times_us) * balance.total_speed(self.times_us) / self.window_tuples

    def run(self, seed: int, policy: str = "tag") -> TimedRun:
        """Run the windows."""
        arrivals = _arrivals(self.keys, 2 * self.window_tuples, seed)
        rows = [Row(e.event_time_us, e.arrival_us, e.key, e.value) for e in arrivals]
        plan = Plan(
            (Recording(tuple(rows)),),
            cluster=self.cluster,
            tuning=GroupingTuning(measured=False),
            trigger=EveryTuples(self.window_tuples),
            epoch_us=arrivals[-1].arrival_us,
        )
        config = GroupingConfig(
            self.n,
            policy,
            ((0, self.times_us),),
            window_tuples=self.window_tuples,
            hash_seed=seed,
        )
        return simulate(plan, config, seed)


@cache
def _arrivals(keys: int, tuples: int, seed: int) -> tuple[Event, ...]:
    """Simulate a network that disorders arrivals; they are the same for all policies."""
    source = Source(
        tuples,
        Exponential(10.0),
        delay=Exponential(200.0),
        keys=tuple([f"k{rank}" for rank in range(keys)]),
        zipf=0.0,
    )
    return simulate_arrivals(Plan((source,)), seed).events


@pytest.mark.parametrize("n", [16, *(pytest.param(n, marks=pytest.mark.long) for n in (4, 64))])
def test_uniform_candidates_keep_fast_instances_waiting(seed: int, n: int) -> None:
    stream = Stream(n, profiles.choose(2_000, nightly=4_000))
    theory = balance.rho_of_uniform_pairs(n, n // 2, 10, light_share=1.0)
    literal = [stream.run(each, "tag-literal").summary for each in repetitions(seed)]
    corrected = [stream.run(each).summary for each in repetitions(seed)]
    lower, _ = limits([float(each["mean_rho"]) for each in literal], 10 * FAILURE)
    # The formula is for many keys; of these no more come than a window has tuples.
    assert lower + 1 > 0.8 * (theory + 1), (n, theory, literal)
    assert max(float(each["mean_rho"]) for each in corrected) < 2.5 * stream.tuple_more
    # A makespan is a throughput: 1 / (1 + rho) of the fluid's. The formula tells both apart.
    bound = 1 / (0.8 * (theory + 1))
    assert max(map(share, literal)) < bound < min(map(share, corrected))


def share(summary: Summary) -> float:
    """Return the throughput as a share of that of a fluid."""
    return float(summary["served_hz"]) / float(summary["ideal_hz"])
