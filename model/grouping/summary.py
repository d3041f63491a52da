"""Space-Saving summaries of keys, and how they merge.

Source: docs/grouping.md, section 4; Metwally, Agrawal, El Abbadi, "Efficient Computation of
Frequent and Top-k Elements in Data Streams"; Agarwal, Cormode, Huang, Phillips, Wei, Yi, "Mergeable
Summaries".

Rules of this file:

* A summary is a value: nothing here changes one.
* With N tuples, K counters and true frequency f: ``counted - error <= f <= counted``,
  ``error <= N/K``, and a key with ``f > N/K`` has a counter.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from math import ceil
from typing import NamedTuple

from model.vocabulary import GroupingConfig


class Count(NamedTuple):
    """A counter: at least the true frequency, and by how much too large at most."""

    counted: int
    error: int


Summary = Mapping[str, Count]


def counters(config: GroupingConfig) -> int:
    """K, the most counters that a summary has."""
    return ceil(1 / config.eps_share)


def floor_of(summary: Summary, k: int) -> int:
    """What a key without a counter may have at most."""
    return min(each.counted for each in summary.values()) if len(summary) == k else 0


def exact(keys: Iterable[str]) -> Summary:
    """The keys of a micro-batch, counted; its floor is 0."""
    return {key: Count(count, 0) for key, count in Counter(keys).items()}


def merge(a: Summary, floor_a: int, b: Summary, floor_b: int, k: int) -> Summary:
    """The summary of both; of more than k keys those with the largest counts stay."""
    lacks_a, lacks_b = Count(floor_a, floor_a), Count(floor_b, floor_b)
    counted = {
        key: a.get(key, lacks_a).counted + b.get(key, lacks_b).counted for key in sorted({*a, *b})
    }
    # Sorting is stable, also in reverse: of equal counts the lesser key comes first.
    largest = sorted(counted, key=counted.__getitem__, reverse=True)[:k]
    return {
        key: Count(counted[key], a.get(key, lacks_a).error + b.get(key, lacks_b).error)
        for key in largest
    }
