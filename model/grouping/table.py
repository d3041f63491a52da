"""The table of a window, which all routers know from its start to its end, and the rules.

Source: docs/grouping.md, sections 1, 3 and 4.

Rules of this file:

* A table is a value; it only remembers which candidates it has found, for keys come again.
* What is decided where a bug can be planted is an entry of ``Rules``; ``rules`` has the right ones.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from model.grouping.summary import Count, Summary
from model.vocabulary import GroupingConfig

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
