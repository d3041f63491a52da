"""The workers that each sensor is sent to by definition, with the standard library alone.

The oracle follows docs/script.md, section 8, for windows over unions and operations on two windows.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any, NamedTuple

from properties.oracles.hashing import signed_hash

Piece = frozenset[int]
"""Windows that are placed together."""


class Script(NamedTuple):
    """Windows and operations, and the workers for them."""

    windows: Sequence[tuple[frozenset[str], int]]
    """Sensors and results an hour, by window."""
    pairs: Sequence[tuple[int, int]]
    """Windows that an operation reads."""
    rates: Mapping[str, int]
    """Tuples an hour, by sensor."""
    workers: int
    percent: int
    """Cap of a worker's load, in percent of its equal part of all tuples that are read."""

    def hosts(self) -> Mapping[str, tuple[int, ...]]:
        """Return the workers that each sensor is sent to, by sensor."""
        units = [frozenset({each}) for each in range(len(self.windows))]
        groups = self._groups(units)
        found = [self._fill(groups, lambda own, _new, _at: (self._load(own),))]
        if self._badness(found[0])[0]:
            small = [each for each in groups if self._load(self._read_by(each)) <= self._cap]
            large = [each for each in units if not any(each <= piece for piece in small)]
            found.append(self._fill([*small, *large], self._adds))
            found.append(self._fill(units, self._adds))
            found.append(self._fill(units, self._by_hash))
        sent, _ = min(found, key=self._badness)
        return {
            sensor: tuple(at for at, own in enumerate(sent) if sensor in own)
            for sensor in self._read_by(range(len(units)))
        }

    @property
    def _cap(self) -> Fraction:
        asked = self._load(self._read_by(range(len(self.windows))))
        return Fraction(asked * self.percent, 100 * self.workers)

    def _load(self, sensors: Iterable[str]) -> int:
        return sum(self.rates[each] for each in sensors)

    def _read_by(self, piece: Iterable[int]) -> frozenset[str]:
        return frozenset[str]().union(*(self.windows[each][0] for each in piece))

    def _groups(self, units: Sequence[Piece]) -> Sequence[Piece]:
        """Return the windows that share sensors or operations, directly or not."""
        numbers = combinations(range(len(units)), 2)
        shared = [pair for pair in numbers if self._read_by(pair[:1]) & self._read_by(pair[1:])]
        for link in map(frozenset, [*shared, *self.pairs]):
            apart = [each for each in units if not each & link]
            units = [*apart, link.union(*(each for each in units if each & link))]
        return units

    def _fill(self, pieces: Sequence[Piece], key: Callable[..., Any]) -> Any:
        """Place the largest piece first; return the sensors of workers, and workers of windows."""
        sent, placed = [set[str]() for _ in range(self.workers)], dict[int, int]()
        loads = {each: self._load(self._read_by(each)) for each in pieces}
        for piece in sorted(pieces, key=lambda each: (-loads[each], min(each))):
            new = self._read_by(piece)
            at = min(range(self.workers), key=lambda each: (*key(sent[each], new, each), each))
            sent[at] |= new
            placed |= dict.fromkeys(piece, at)
        return sent, placed

    def _adds(self, own: set[str], new: set[str], _at: int) -> tuple[bool, int, int]:
        whole, before = self._load(own | new), self._load(own)
        is_over = whole > self._cap
        return is_over, whole if is_over else whole - before, before

    def _by_hash(self, _own: set[str], new: set[str], at: int) -> tuple[int]:
        return (-self._load(each for each in new if signed_hash(each) % self.workers == at),)

    def _badness(self, found: Any) -> tuple[Fraction, int]:
        """Return how far the largest load is above the cap, and the tuples and results sent."""
        sent, placed = found
        readers = [set[int]() for _ in self.windows]
        for pair in self.pairs:
            come = Counter[int]()
            for each in pair:
                come[placed[each]] += self.windows[each][1]
            at = min(come, key=lambda each: (-come[each], each))
            for each in pair:
                readers[each] |= {at} - {placed[each]}
        loads = [*map(self._load, sent)]
        derived = sum(self.windows[each][1] * len(at) for each, at in enumerate(readers))
        return max(Fraction(), max(loads) - self._cap), sum(loads) + derived
