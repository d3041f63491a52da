"""The state of the room: summaries of keys, the table of a window, and the state of a sender.

Source: docs/grouping.md, sections 1, 3 and 4; Metwally, Agrawal, El Abbadi, "Efficient Computation
of Frequent and Top-k Elements in Data Streams"; Agarwal, Cormode, Huang, Phillips, Wei, Yi,
"Mergeable Summaries".

Rules of this file:

* A summary, a table and a sender's state are values: nothing changes them. A table only caches the
  candidates that it has found, because keys recur.
* With N tuples, K counters and true frequency f: ``counted - error <= f <= counted``,
  ``error <= N/K``, and a key with ``f > N/K`` has a counter.
* A decision that a planted bug may replace is an entry of ``Rules``; ``rules`` has the right ones.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import ceil
from typing import NamedTuple

from model.vocabulary import GroupingConfig


class Count(NamedTuple):
    """A counter: an upper bound of the true frequency, and its largest error."""

    counted: int
    error: int


Summary = Mapping[str, Count]


def counters(config: GroupingConfig) -> int:
    """Return K, the largest number of counters of a summary."""
    return ceil(1 / config.eps_share)


def floor_of(summary: Summary, k: int) -> int:
    """Return the largest frequency that a key without a counter may have."""
    return min(each.counted for each in summary.values()) if len(summary) == k else 0


def count_keys(keys: Iterable[str]) -> Summary:
    """Count the keys of a micro-batch exactly; the floor of this summary is 0."""
    return {key: Count(count, 0) for key, count in Counter(keys).items()}


def merge_summaries(a: Summary, floor_a: int, b: Summary, floor_b: int, k: int) -> Summary:
    """Merge two summaries; the k keys with the largest counts stay."""
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
    """Function that returns C(k), by policy."""
    costs: Mapping[str, Costs]
    """Function that returns c_i, by policy; other policies have c_i = 1."""
    counters: Callable[[GroupingConfig], int]
    """Return K, the number of counters of a summary."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Instances of heavy keys, and of the buckets of all other keys (``dkg``)."""

    keys: Mapping[str, int]
    buckets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """Heavy keys and times of a window, and what a policy derives from them."""

    config: GroupingConfig
    rules: Rules
    window: int
    times_us: tuple[int, ...]
    costs: tuple[int, ...]
    """Load c_i that a tuple adds to each instance."""
    heavy: Mapping[str, Count]
    tuples: int
    """Number N of tuples of the window before; 0 in window 0."""
    placement: Placement | None
    _found: dict[str, tuple[int, ...]] = field(default_factory=dict, compare=False, repr=False)

    @property
    def n(self) -> int:
        """Number of instances."""
        return self.config.instances

    @property
    def speeds(self) -> tuple[float, ...]:
        """Speeds s_i, in tuples a microsecond."""
        return _speeds(self.times_us)

    def share(self, key: str) -> float:
        """Return p_k of a heavy key."""
        return self.heavy[key].counted / self.tuples

    def candidates(self, key: str) -> tuple[int, ...]:
        """Return C(k), with the instance that is preferred among equals first."""
        found = self._found.get(key)
        if found is None:
            latency_us = self.config.latency_us or (0,) * self.n
            instances = self.rules.candidates[self.config.policy](self, key)
            found = tuple(sorted(instances, key=lambda each: (latency_us[each], each)))
            self._found[key] = found
        return found


@lru_cache(maxsize=1 << 8)
def _speeds(times_us: tuple[int, ...]) -> tuple[float, ...]:
    return tuple([1 / time_us for time_us in times_us])


class SenderState(NamedTuple):
    """The state of a sender; a policy ignores the fields that it does not need."""

    loads: tuple[int, ...]
    """Loads L_i."""
    sent: frozenset[tuple[str, int]] = frozenset()
    """Heavy keys, and the instances that they were sent to in this window (``dag``)."""
    buckets: tuple[int, ...] = ()
    """Number of tuples in each bucket in window 0 (``dkg``)."""
