"""Route a stream by definition, in plain Python: an oracle that imports nothing of ours.

Rules of this file:

* It follows docs/grouping.md, sections 1 to 4, 6 and 7, for the policy ``tag``, by loops.
* Fractions are float64 in the order in which the page prints them.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from math import ceil, isfinite, log
from operator import add
from typing import Any, NamedTuple

from properties.oracles.hashing import GOLDEN, MASK, mix, xxh64
from properties.oracles.join import batches_of

Counts = dict[str, tuple[int, int]]
"""Count and error of each key in a summary."""


class Table(NamedTuple):
    """Knowledge of a router about a window."""

    times_us: tuple[int, ...]
    counts: Mapping[str, int]
    """Counts of the heavy keys."""
    tuples: int
    """Number of tuples of the window before."""


class Excess(NamedTuple):
    """Makespan of a window above that of a fluid, in tuples of the slowest instance per sender."""

    above: float
    allowed: int
    """Most tuples above the fluid on average, by section 7."""


class Router:
    """Routes, heavy keys and windows of a workload."""

    def __init__(self, workload: Mapping[str, Any]) -> None:
        config = workload["config"]
        if config.get("policy", "tag") != "tag":
            msg = f"policy is {config['policy']!r}; this router knows tag only"
            raise ValueError(msg)
        self.config = config
        self.n = config["instances"]
        self.theta = config.get("theta") or 1 / (5 * self.n)
        self.counters = ceil(1 / (config.get("eps") or self.theta / 2))
        self.routes: list[tuple[int, int, int]] = []
        """Number, sender and instance of every arrival."""
        self.heavy: list[tuple[int, str, int, tuple[int, ...]]] = []
        """Window, key, count and candidates of every heavy key."""
        self.windows: list[list[tuple[Sequence[Any], int]]] = []
        """Arrivals of every window, each with its instance."""
        self.tables: list[Table] = []
        """Table of every window."""
        self._summaries: list[Counts] = []
        self._loads: list[list[int]] = []
        self._senders = config.get("senders", 1)
        self._known: dict[tuple[int, str], tuple[int, ...]] = {}
        self._fluids_us: dict[int, float] = {}
        for batch, rows in enumerate(batches_of(workload)):
            if not self.windows or len(self.windows[-1]) >= config["window_tuples"]:
                self._begin_window(batch)
            self._route(rows)

    def _begin_window(self, batch: int) -> None:
        """Name heavy keys by the window before, and forget everything else."""
        merged = self._summaries[0] if self._summaries else {}
        for other in self._summaries[1:]:
            merged = self._merge(merged, other)
        tuples = len(self.windows[-1]) if self.windows else 0
        counts = {key: each for key, (each, _) in merged.items() if each > self.theta * tuples}
        times_us = (1,) * self.n
        for first, each in self.config.get("times_us", ()):
            if first <= batch:
                times_us = tuple(each)
        self.tables.append(Table(times_us, counts, tuples))
        for key, counted in counts.items():
            self.heavy.append((len(self.windows), key, counted, self.candidates(key)))
        self.windows.append([])
        self._summaries = [{} for _ in range(self._senders)]
        self._loads = [[0] * self.n for _ in range(self._senders)]

    def _route(self, rows: Sequence[Sequence[Any]]) -> None:
        """Route a micro-batch, then count its keys."""
        latencies = self.config.get("latency_us") or [0] * self.n
        fresh: dict[int, Counter[str]] = defaultdict(Counter)
        for row in sorted(rows, key=lambda row: int(row[0])):
            seq, key = row[0], row[2]
            sender = seq % self._senders
            loads = self._loads[sender]
            chosen = min(self.candidates(key), key=lambda i: (loads[i], latencies[i], i))
            loads[chosen] += self.tables[-1].times_us[chosen]
            self.routes.append((seq, sender, chosen))
            self.windows[-1].append((row, chosen))
            fresh[sender][key] += 1
        for sender, found in fresh.items():
            exact = {key: (each, 0) for key, each in found.items()}
            self._summaries[sender] = self._merge(self._summaries[sender], exact, is_exact=True)

    def _merge(self, one: Counts, other: Counts, *, is_exact: bool = False) -> Counts:
        floor_one, floor_other = self._floor(one), 0 if is_exact else self._floor(other)
        merged = {}
        for key in one.keys() | other.keys():
            (a, error_a) = one.get(key, (floor_one, floor_one))
            (b, error_b) = other.get(key, (floor_other, floor_other))
            merged[key] = a + b, error_a + error_b
        kept = sorted(merged, key=lambda key: (-merged[key][0], key))[: self.counters]
        return {key: merged[key] for key in kept}

    def _floor(self, counts: Counts) -> int:
        full = len(counts) == self.counters
        return min(each for each, _ in counts.values()) if full else 0

    def candidates(self, key: str, window: int = -1) -> tuple[int, ...]:
        """Return the candidates of a key in a window, by default the last one."""
        place = window % len(self.tables), key
        if place not in self._known:
            self._known[place] = self._find_candidates(key, window)
        return self._known[place]

    def _find_candidates(self, key: str, window: int) -> tuple[int, ...]:
        table = self.tables[window]
        hashed = xxh64(key.encode(), self.config.get("hash_seed", 42))
        speeds = [1 / time_us for time_us in table.times_us]

        def distance(i: int) -> tuple[float, int]:
            h = mix((hashed + (i + 1) * GOLDEN) & MASK)
            return -log(((h >> 11) + 0.5) / 2**53) * table.times_us[i], i

        share = table.counts[key] / table.tuples if key in table.counts else 0.0
        needed = _summed(speeds) * share / self.config.get("gamma", 0.2)
        order = sorted(range(self.n), key=distance)
        for length in range(min(2, self.n), self.n + 1):
            if _summed([speeds[i] for i in order[:length]]) >= needed:
                return tuple(sorted(order[:length]))
        return tuple(range(self.n))

    def answers(self) -> Iterator[tuple[int, str, int, float]]:
        """Yield window, key, number and sum of the finite values."""
        for number, rows in enumerate(self.windows):
            values: dict[str, list[float]] = defaultdict(list)
            for row, _ in rows:
                if isfinite(float(row[4])):
                    values[row[2]].append(float(row[4]))
            for key, found in values.items():
                yield number, key, len(found), sum(found, 0.0)

    def excesses(self, routes: Mapping[int, int]) -> list[Excess]:
        """Return the excess of every full window but the first, which knows no heavy keys.

        ``routes`` gives the instance by the number of an arrival, under any policy. The fluid keeps
        to the candidates of ``tag``.
        """
        full = self.config["window_tuples"]
        return [
            Excess(self._above(window, routes) / self._senders, self._allowed(window))
            for window, rows in enumerate(self.windows)
            if window and len(rows) >= full
        ]

    def _above(self, window: int, routes: Mapping[int, int]) -> float:
        times_us = self.tables[window].times_us
        work_us = Counter[int]()
        for row, _ in self.windows[window]:
            work_us[routes[row[0]]] += times_us[routes[row[0]]]
        if window not in self._fluids_us:
            self._fluids_us[window] = self._fluid_us(window)
        return (max(work_us.values()) - self._fluids_us[window]) / max(times_us)

    def _fluid_us(self, window: int) -> float:
        """Return the makespan of a fluid: the largest need of a set of instances, by its speed."""
        needs, speeds = [0.0] * (1 << self.n), [0.0] * (1 << self.n)
        for key, tuples in Counter(row[2] for row, _ in self.windows[window]).items():
            needs[sum(1 << i for i in self.candidates(key, window))] += tuples
        for i, time_us in enumerate(self.tables[window].times_us):
            speeds[1 << i] = 1 / time_us
        for sums in (needs, speeds):  # over all subsets, one instance after the other
            for i in range(self.n):
                half = 1 << i
                for start in range(half, 1 << self.n, 2 * half):
                    inside = sums[start : start + half]
                    without = sums[start - half : start]
                    sums[start : start + half] = map(add, inside, without)
        return max(need / speed for need, speed in zip(needs[1:], speeds[1:], strict=True))

    def _allowed(self, window: int) -> int:
        if self.n <= 2:
            return 1  # every key has all instances to choose from
        times_us = self.tables[window].times_us
        speed, slowest_us = _summed([1 / each for each in times_us]), max(times_us)
        slow = _summed([1 / each for each in times_us if each > slowest_us / 2])
        share = min(0.5, slow / speed)
        single = 1 / (speed * slowest_us) * (1 + 1e-9)
        return next(h for h in count(2) if share ** (2**h) <= single)


def _summed(numbers: Sequence[float]) -> float:
    """Return a sum from left to right; the built-in one compensates in later versions."""
    total = 0.0
    for each in numbers:
        total += each
    return total
