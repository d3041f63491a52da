"""Slices: where the windows over one stream cut it, and which cuts cost less.

Source: docs/script.md, section 7. Panes are due to Li, Maier, Tufte, Papadimos, Tucker ("No pane,
no gain"), slices at the edges alone to Krishnamurthy, Wu and Franklin ("On-the-fly sharing for
streamed aggregation").

Rules of this file:

* A cutting is a set of combs; a comb cuts at every `first + k * every`. Panes are one comb, the
  edges of windows several; all other code treats both alike.
* Cuts change costs and no result, so nothing here is computed with them.
"""

from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from math import gcd
from typing import NamedTuple

from model.vocabulary.script.config import MILLISECOND_US

HOUR_MS = 3_600_000


class Span(NamedTuple):
    """The length and the slide of a window, in milliseconds."""

    length_ms: int
    slide_ms: int
    zone: str = ""
    """Time zone whose days are counted, each as ``DAY_MS``; empty: there are no days."""

    @property
    def length_us(self) -> int:
        """Length, in microseconds."""
        return self.length_ms * MILLISECOND_US

    @property
    def slide_us(self) -> int:
        """Slide, in microseconds."""
        return self.slide_ms * MILLISECOND_US


class Comb(NamedTuple):
    """Cuts at first, first + every, ..., and at all earlier multiples."""

    every_ms: int
    first_ms: int
    """First cut, from 0 to less than ``every_ms``."""
    zone: str = ""
    """Time zone whose days are counted, each as ``DAY_MS``; empty: there are no days."""

    def cut_us(self, stamp_us: int) -> int:
        """Return the last cut that is not after a stamp; the comb has no zone."""
        return stamp_us - (stamp_us - self.first_ms * 1_000) % (self.every_ms * 1_000)

    def covers(self, other: "Comb") -> bool:
        """Return whether every cut of the other comb is a cut of this one."""
        apart = (other.first_ms - self.first_ms) % self.every_ms
        return other.zone == self.zone and other.every_ms % self.every_ms == 0 and apart == 0


Cutting = tuple[Comb, ...]


def slice_of(cutting: Cutting, stamp_us: int) -> int:
    """Return the start of the slice that contains a stamp."""
    return max(comb.cut_us(stamp_us) for comb in cutting)


@lru_cache(maxsize=1024)  # many streams have equal windows
def panes(spans: tuple[Span, ...]) -> Cutting:
    """Cut into pieces as wide as the greatest common divisor of all lengths and slides."""
    sizes_ms: dict[str, int] = {}
    for length_ms, slide_ms, zone in spans:
        sizes_ms[zone] = gcd(sizes_ms.get(zone, 0), length_ms, slide_ms)
    return tuple(Comb(size_ms, 0, zone) for zone, size_ms in sorted(sizes_ms.items()))


@lru_cache(maxsize=1024)
def edges(spans: tuple[Span, ...]) -> Cutting:
    """Cut where a window begins or ends, and nowhere else."""
    combs = {
        Comb(span.slide_ms, at % span.slide_ms, span.zone)
        for span in spans
        for at in (0, -span.length_ms)
    }
    kept = [
        comb for comb in combs if not any(other != comb and other.covers(comb) for other in combs)
    ]
    return tuple(sorted(kept))


def cost(cutting: Cutting, spans: tuple[Span, ...], per_hour: Fraction) -> Fraction:
    """Return steps an hour: a tuple is looked up in each comb, a window folds its slices.

    A window cannot have more nonempty slices than tuples. Cuts of two combs that coincide are
    counted twice.
    """
    pieces_per_ms = min(_cuts_per_ms(cutting), per_hour / HOUR_MS)
    return per_hour * len(cutting) + _folded_ms(spans) * pieces_per_ms


@lru_cache(maxsize=1024)
def _cuts_per_ms(cutting: Cutting) -> Fraction:
    return sum((Fraction(1, comb.every_ms) for comb in cutting), Fraction())


@lru_cache(maxsize=1024)
def _folded_ms(spans: tuple[Span, ...]) -> Fraction:
    """Return the length of all windows that end in an hour."""
    lengths = (Fraction(HOUR_MS, span.slide_ms) * span.length_ms for span in spans)
    return sum(lengths, Fraction())


class Choice(NamedTuple):
    """The cutting of a stream, and the costs of both cuttings."""

    cutting: Cutting
    panes_cost: Fraction
    edges_cost: Fraction

    @property
    def is_panes(self) -> bool:
        """Return whether panes cost at most as much as edges."""
        return self.panes_cost <= self.edges_cost


def choose(spans: Iterable[Span], per_hour: Fraction) -> Choice:
    """Return the cheaper way to cut a stream of so many tuples an hour for these windows."""
    different = tuple(sorted(set(spans)))
    both = panes(different), edges(different)
    first, second = (cost(cutting, different, per_hour) for cutting in both)
    return Choice(both[0] if first <= second else both[1], first, second)
