"""Streams whose keys are drawn independently.

Rules of this file:

1. The same seed draws the same keys: policies and sizes are compared on common random numbers.
2. A stream has two or more windows: in the first one no key is known to be heavy, and balance is
   promised for the others only.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from model.vocabulary import Event, GroupingConfig, Workload


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


def stream(keys: Sequence[str], config: GroupingConfig) -> Workload:
    """Return one tuple for each key, cut at the ends of windows."""
    arrivals = tuple(Event(seq, seq, key, 100, 1.0, 100) for seq, key in enumerate(keys))
    cuts = tuple(range(config.window_tuples, len(keys), config.window_tuples))
    return Workload("grouping", arrivals, config.to_json(), cuts)
