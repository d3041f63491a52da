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
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
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


def count_keys(keys: Iterable[str]) -> Summary:
    """The keys of a micro-batch, counted; its floor is 0."""
    return {key: Count(count, 0) for key, count in Counter(keys).items()}


def merge_summaries(a: Summary, floor_a: int, b: Summary, floor_b: int, k: int) -> Summary:
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


Candidates = Callable[["Table", str], set[int]]
Costs = Callable[[GroupingConfig, tuple[int, ...]], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Rules:
    """The decisions of a router; ``variants`` replace some of them."""

    candidates: Mapping[str, Candidates]
    """C(k), by policy."""
    costs: Mapping[str, Costs]
    """c_i where it is not 1, by policy."""
    least: Callable[[Sequence[int], Sequence[int]], int]
    """From candidates in preference and loads: the one that is taken."""
    charged: Callable[["Table", int], int]
    """The instance whose load increases when one is taken."""
    afresh: Collection[str]
    """Policies that start every window with loads 0."""
    counters: Callable[[GroupingConfig], int]
    """K of a summary."""
    floor: Callable[[Summary, int], int]
    """floor(X) of a summary with at most K counters."""


@dataclass(frozen=True, slots=True)
class Placement:
    """``dkg``: where heavy keys and the buckets of the other ones live."""

    keys: Mapping[str, int]
    buckets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """Heavy keys, times, and what a policy derives from them."""

    config: GroupingConfig
    rules: Rules
    window: int
    times_us: tuple[int, ...]
    costs: tuple[int, ...]
    """c_i."""
    heavy: Mapping[str, Count] = field(default_factory=dict)
    tuples: int = 0
    """N, those of the window before; 0 in window 0."""
    placement: Placement | None = None
    owners: tuple[int, ...] = ()
    """``cg``: the instance of every virtual worker."""
    _found: dict[str, tuple[int, ...]] = field(default_factory=dict, compare=False, repr=False)

    @property
    def n(self) -> int:
        """How many instances there are."""
        return self.config.instances

    @property
    def speeds(self) -> tuple[float, ...]:
        """s_i, in tuples a microsecond."""
        return _speeds(self.times_us)

    def share(self, key: str) -> float:
        """p_k of a heavy key, else 0."""
        return self.heavy[key].counted / self.tuples if key in self.heavy else 0.0

    def candidates(self, key: str) -> tuple[int, ...]:
        """C(k), the instance that is preferred among equals first."""
        found = self._found.get(key)
        if found is None:
            found = self.in_preference(self.rules.candidates[self.config.policy](self, key))
            self._found[key] = found
        return found

    def in_preference(self, instances: set[int]) -> tuple[int, ...]:
        """By latency, then by index."""
        latency_us = self.config.latency_us
        if latency_us:
            # Sorting is stable: of equal latencies the lower index comes first.
            return tuple(sorted(sorted(instances), key=latency_us.__getitem__))
        return tuple(sorted(instances))


@lru_cache(maxsize=1 << 8)
def _speeds(times_us: tuple[int, ...]) -> tuple[float, ...]:
    """Every key asks for them."""
    return tuple([1 / time_us for time_us in times_us])


class SenderState(NamedTuple):
    """What a sender knows; a policy that does not need a field leaves it as it is."""

    sender: int
    loads: tuple[int, ...]
    """L_i."""
    routed: int = 0
    """Tuples routed so far."""
    sent: frozenset[tuple[str, int]] = frozenset()
    """``dag``: heavy keys and where they have been sent to in this window."""
    virtual: tuple[int, ...] = ()
    """``cg``: loads of virtual workers."""
    buckets: tuple[int, ...] = ()
    """``dkg``: tuples that fell into each bucket in window 0."""
