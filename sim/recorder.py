"""What is remembered of a run: streaming figures, series where asked for, and a digest.

Memory does not grow with the length of the run, apart from the series and events that the caller
asks to be kept.
"""

import hashlib
from collections.abc import Mapping
from math import inf, sqrt
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from model.vocabulary import Trace, Workload

Field: TypeAlias = int | float | str


class Tally:
    """Count, mean, variance and extremes of observations, in one pass.

    Source: B. P. Welford, "Note on a method for calculating corrected sums of squares and
    products", Technometrics 4(3), 1962.
    """

    __slots__ = ("_squares", "count", "high", "low", "mean")

    def __init__(self) -> None:
        self.count = 0
        self.mean = 0.0
        self.low = inf
        self.high = -inf
        self._squares = 0.0

    def add(self, value: float) -> None:
        """Take one observation."""
        self.count += 1
        before = value - self.mean
        self.mean += before / self.count
        self._squares += before * (value - self.mean)
        self.low = min(self.low, value)
        self.high = max(self.high, value)

    @property
    def deviation(self) -> float:
        """Sample standard deviation; 0 for fewer than two observations."""
        return sqrt(self._squares / (self.count - 1)) if self.count > 1 else 0.0


class Level:
    """A quantity that keeps its value between changes, averaged over time (queue length, load)."""

    __slots__ = ("_area", "_since_us", "peak", "value")

    def __init__(self) -> None:
        self.value = 0.0
        self.peak = 0.0
        self._area = 0.0
        self._since_us = 0.0

    def set(self, value: float, now_us: float) -> None:
        """The value is ``value`` from ``now_us`` on."""
        self._area += self.value * (now_us - self._since_us)
        self._since_us = now_us
        self.value = value
        if value > self.peak:
            self.peak = value

    def integral_us(self, now_us: float) -> float:
        """Area under the curve from 0 to ``now_us``: value times microseconds."""
        return self._area + self.value * (now_us - self._since_us)

    def mean(self, now_us: float) -> float:
        """Mean over the time from 0 to ``now_us``; 0 when no time has passed."""
        return self.integral_us(now_us) / now_us if now_us > 0 else 0.0


class Series:
    """Samples of a quantity, at most one per ``every_us``."""

    __slots__ = ("_next_us", "every_us", "times_us", "values")

    def __init__(self, every_us: float) -> None:
        self.every_us = every_us
        self.times_us: list[float] = []
        self.values: list[float] = []
        self._next_us = -inf

    def add(self, value: float, now_us: float) -> None:
        """Keep the sample unless the last one kept is too recent."""
        if now_us >= self._next_us:
            self.times_us.append(now_us)
            self.values.append(value)
            self._next_us = now_us + self.every_us


class Digest:
    """SHA-256 over the recorded events, in the order in which they happened."""

    __slots__ = ("_sha",)

    def __init__(self) -> None:
        self._sha = hashlib.sha256()

    def add(self, *fields: Field) -> None:
        """One event: plain numbers and strings (``repr`` of a float is exact)."""
        self._sha.update(repr(fields).encode("utf-8"))

    def hex(self) -> str:
        """The digest of everything added so far."""
        return self._sha.hexdigest()


def digest_of(
    trace: Trace,
    workload: Workload,
    summary: Mapping[str, Field],
    series: Mapping[str, NDArray[np.float64]],
) -> str:
    """SHA-256 over everything that a timed run gave, in hexadecimal."""
    sha = hashlib.sha256(trace.digest().encode("ascii"))
    for part in (workload.to_json(), *summary.items()):
        sha.update(repr(part).encode("utf-8"))
    for name, column in series.items():
        sha.update(name.encode("utf-8"))
        sha.update(column.tobytes())
    return sha.hexdigest()


class Recorder:
    """Named figures of one run.

    ``series`` names the levels and observations to keep as a series, with the sampling interval
    in microseconds; ``keep_events`` keeps the events themselves, not only their digest.
    """

    __slots__ = ("_keep_events", "counts", "digest", "events", "levels", "series", "tallies")

    def __init__(
        self, series: Mapping[str, float] | None = None, *, keep_events: bool = False
    ) -> None:
        self.counts: dict[str, int] = {}
        self.tallies: dict[str, Tally] = {}
        self.levels: dict[str, Level] = {}
        self.series = {name: Series(every_us) for name, every_us in (series or {}).items()}
        self.events: list[tuple[Field, ...]] = []
        self.digest = Digest()
        self._keep_events = keep_events

    def count(self, name: str, by: int = 1) -> None:
        """Something happened ``by`` times."""
        self.counts[name] = self.counts.get(name, 0) + by

    def observe(self, name: str, value: float, now_us: float) -> None:
        """One observation, such as a latency."""
        if name not in self.tallies:
            self.tallies[name] = Tally()
        self.tallies[name].add(value)
        if name in self.series:
            self.series[name].add(value, now_us)

    def level(self, name: str, value: float, now_us: float) -> None:
        """A quantity changes its value, such as a buffer its size."""
        if name not in self.levels:
            self.levels[name] = Level()
        self.levels[name].set(value, now_us)
        if name in self.series:
            self.series[name].add(value, now_us)

    def event(self, *fields: Field) -> None:
        """Something that must happen alike in every run of the same seed."""
        self.digest.add(*fields)
        if self._keep_events:
            self.events.append(fields)

    def summary(self, now_us: float) -> dict[str, float]:
        """All figures by name, sorted: counts, ``name.mean`` and so on, time-weighted levels."""
        figures: dict[str, float] = dict(self.counts)
        for name, tally in self.tallies.items():
            figures |= {f"{name}.count": tally.count, f"{name}.mean": tally.mean}
            figures |= {f"{name}.low": tally.low, f"{name}.high": tally.high}
        for name, level in self.levels.items():
            figures |= {f"{name}.mean": level.mean(now_us), f"{name}.peak": level.peak}
        return {name: figures[name] for name in sorted(figures)}
