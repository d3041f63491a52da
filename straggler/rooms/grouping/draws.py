"""Streams whose keys are drawn independently, and the balance of a system on them.

Rules of this file:

1. The same seed draws the same keys: policies and sizes are compared on common random numbers.
2. A stream has two or more windows: in the first one no key is known to be heavy, and balance is
   promised for the others only.
3. Means come with limits, and limits with the probability that they are wrong.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from random import Random
from statistics import fmean, stdev

from model.grouping.balance import rho
from model.grouping.evidence import evidence_of
from model.vocabulary import Event, GroupingConfig, System, Workload


@dataclass(frozen=True, slots=True)
class Draws:
    """Keys with Zipf's shares, and unequal instances that receive them."""

    instances: int
    policy: str = "tag"
    slow: int = 0
    """Number of slower instances."""
    times_slower: int = 10
    exponent: float = 1.0
    keys: int = 2_000
    window_tuples: int = 2_000
    windows: int = 2

    @property
    def times_us(self) -> tuple[int, ...]:
        """Time t_i of a tuple at each instance (us), the fast instances first."""
        return (1,) * (self.instances - self.slow) + (self.times_slower,) * self.slow

    def workload(self, seed: int) -> Workload:
        """Return the stream drawn with a seed."""
        shares = [1 / (rank + 1) ** self.exponent for rank in range(self.keys)]
        drawn = Random(seed).choices(range(self.keys), shares, k=self.windows * self.window_tuples)
        config = GroupingConfig(
            self.instances,
            self.policy,
            ((0, self.times_us),),
            window_tuples=self.window_tuples,
            hash_seed=seed,
        )
        return stream([f"k{key}" for key in drawn], config)

    def rho(self, system: System, seed: int, window: int = 1) -> float:
        """Return the rho of one of the windows."""
        workload = self.workload(seed)
        seen = evidence_of(workload, system(workload))
        return rho(seen.counts(seen.windows[window]), self.times_us)


def weighted(weights: Mapping[str, int], n: int, seed: int) -> list[str]:
    """Draw ``n`` keys with these weights."""
    return Random(seed).choices(list(weights), list(weights.values()), k=n)


def stream(keys: Sequence[str], config: GroupingConfig) -> Workload:
    """Return one tuple for each key, cut at the ends of windows."""
    arrivals = tuple(Event(seq, seq, key, 100, 1.0, 100) for seq, key in enumerate(keys))
    cuts = tuple(range(config.window_tuples, len(keys), config.window_tuples))
    return Workload("grouping", arrivals, config.to_json(), cuts)


def slope(xs: Sequence[float], ys: Sequence[float]) -> float:
    """Return the slope of the least-squares line."""
    from scipy import stats  # here, because it takes half a second

    return float(stats.linregress(xs, ys).slope)


def limits(values: Sequence[float], failure: float) -> tuple[float, float]:
    """Return the limits of the mean, each wrong with probability ``failure`` (Student's t)."""
    from scipy import stats

    wide = float(stats.t.isf(failure, len(values) - 1)) * stdev(values) / sqrt(len(values))
    return fmean(values) - wide, fmean(values) + wide
