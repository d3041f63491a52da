"""What routers are told between two windows (docs/grouping.md, 3 and 4)."""

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from model.vocabulary import GroupingConfig
from spark_impl.grouping import hashes
from spark_impl.grouping.summaries import Summary


class HeavyKey(NamedTuple):
    """A key above the threshold."""

    counted: int
    error: int


class Table(NamedTuple):
    """Heavy keys and times of a window."""

    window: int
    times: tuple[int, ...]
    heavy: dict[str, HeavyKey]
    tuples: int
    """N, of the window before."""
    choices: int = 2
    """``d-choices``: d."""
    placed: dict[str, int] | None = None
    """``dkg``: the instances of keys that were heavy when the map was made."""
    buckets: tuple[int, ...] | None = None
    """``dkg``: the instance of every bucket, once there is a map."""

    @property
    def speed(self) -> float:
        """S: the speeds of all instances, added by index."""
        return list(accumulate(1 / time for time in self.times))[-1]


def heavy_keys(config: GroupingConfig, summary: Summary) -> dict[str, HeavyKey]:
    """Keys above the threshold, those with the largest counts first."""
    rows = zip(summary.keys.to_pylist(), summary.counts, summary.errors, strict=True)
    least = config.theta_share * summary.tuples
    return {
        key: HeavyKey(int(counted), int(error)) for key, counted, error in rows if counted > least
    }


def placed(
    config: GroupingConfig, heavy: dict[str, HeavyKey], buckets: Sequence[int]
) -> tuple[dict[str, int], tuple[int, ...]]:
    """``dkg``: heavy keys and buckets, each where there is least, the largest first."""
    weights = list(buckets)
    own = hashes.modulo(hashes.bases(list(heavy), config.hash_seed), 3, len(weights))
    for (_, key), bucket in zip(heavy.items(), own.tolist(), strict=True):
        weights[bucket] -= key.counted
    items = [(-key.counted, 0, name, 0) for name, key in heavy.items()]
    items += [(-max(0, weight), 1, "", number) for number, weight in enumerate(weights)]
    loads = [0] * config.instances
    found: dict[str, int] = {}
    places = [0] * len(weights)
    for negative, is_bucket, name, number in sorted(items):
        place = loads.index(min(loads))
        loads[place] -= negative
        if is_bucket:
            places[number] = place
        else:
            found[name] = place
    return found, tuple(places)
