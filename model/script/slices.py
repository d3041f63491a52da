"""Slices: the cuts of windows over one stream, and the partial aggregate of each slice.

Source: docs/script.md, sections 5 and 7. Panes are due to Li, Maier, Tufte, Papadimos, Tucker ("No
pane, no gain"), slices at the edges alone to Krishnamurthy, Wu and Franklin ("On-the-fly sharing
for streamed aggregation").

Rules of this file:

* A cutting is a set of combs; a comb cuts at every `first + k * every`. Panes are one comb, the
  edges of windows several; all other code treats both alike.
* Sums are exact, and rounded once. Denominators of floats are powers of two: the largest one in a
  stream is a common denominator of all its values, so only whole numbers of units are added.
"""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import gcd, sqrt
from operator import mul
from typing import NamedTuple

from model.script.stream import quotient

HOUR_MS = 3_600_000


class Span(NamedTuple):
    """A length and a slide, in milliseconds."""

    length_ms: int
    slide_ms: int


class Comb(NamedTuple):
    """Cuts at first, first + every, ..., and at all earlier multiples."""

    every_ms: int
    first_ms: int
    """First cut, from 0 to less than ``every_ms``."""

    def around_us(self, stamp_us: int) -> tuple[int, int]:
        """Return the last cut that is not after a stamp, and the next one."""
        every_us = self.every_ms * 1_000
        behind_us = (stamp_us - self.first_ms * 1_000) % every_us
        return stamp_us - behind_us, stamp_us - behind_us + every_us

    def covers(self, other: "Comb") -> bool:
        """Return whether every cut of the other comb is a cut of this one."""
        apart = (other.first_ms - self.first_ms) % self.every_ms
        return other.every_ms % self.every_ms == 0 and apart == 0


Cutting = tuple[Comb, ...]


def slice_of(cutting: Cutting, stamp_us: int) -> int:
    """Return the start of the slice that contains a stamp."""
    return slice_around(cutting, stamp_us)[0]


def slice_around(cutting: Cutting, stamp_us: int) -> tuple[int, int]:
    """Return start and end of the slice that contains a stamp; the end starts the next slice."""
    last_us, *others_us = [comb.around_us(stamp_us) for comb in cutting]
    start_us, end_us = last_us
    for other_us in others_us:
        start_us, end_us = max(start_us, other_us[0]), min(end_us, other_us[1])
    return start_us, end_us


def panes(spans: Iterable[Span]) -> Cutting:
    """Cut into pieces as wide as the greatest common divisor of all lengths and slides."""
    return (Comb(gcd(*(number for span in spans for number in span)), 0),)


def edges(spans: Iterable[Span]) -> Cutting:
    """Cut where a window begins or ends, and nowhere else."""
    combs = {
        Comb(span.slide_ms, at % span.slide_ms) for span in spans for at in (0, -span.length_ms)
    }
    kept = [
        comb for comb in combs if not any(other != comb and other.covers(comb) for other in combs)
    ]
    return tuple(sorted(kept))


def cost(cutting: Cutting, spans: Iterable[Span], per_hour: Fraction) -> Fraction:
    """Return steps an hour: a tuple is looked up in each comb, a window folds its slices.

    A window cannot have more nonempty slices than tuples. Cuts of two combs that coincide are
    counted twice.
    """
    cuts_per_ms = sum((Fraction(1, comb.every_ms) for comb in cutting), Fraction())
    pieces_per_ms = min(cuts_per_ms, per_hour / HOUR_MS)
    folds = sum(
        (Fraction(HOUR_MS, span.slide_ms) * pieces_per_ms * span.length_ms for span in spans),
        Fraction(),
    )
    return per_hour * len(cutting) + folds


class Choice(NamedTuple):
    """The cutting of a stream, and the costs of both cuttings."""

    cutting: Cutting
    panes_cost: Fraction
    edges_cost: Fraction

    @property
    def is_panes(self) -> bool:
        """Whether panes cost at most as much as edges."""
        return self.panes_cost <= self.edges_cost


def choose(spans: Iterable[Span], per_hour: Fraction) -> Choice:
    """Return the cheaper way to cut a stream of so many tuples an hour for these windows."""
    spans = sorted(set(spans))
    both = panes(spans), edges(spans)
    first, second = (cost(cutting, spans, per_hour) for cutting in both)
    return Choice(both[0] if first <= second else both[1], first, second)


class Units(NamedTuple):
    """Values of a stream as whole numbers of units."""

    whole: list[int]
    scale: int
    """Number of units that make 1."""


class Partial(NamedTuple):
    """A partial aggregate of at least one value, from which every aggregate can be made."""

    n: int
    total: int
    """Sum, in units."""
    squares: int
    """Sum of the squares, in squares of units."""
    least: float
    greatest: float
    scale: int
    """Number of units that make 1; partials that are folded together have the same scale."""


def to_units(values: Sequence[float]) -> Units:
    """Return values as whole numbers of units, exactly."""
    if all(map(float.is_integer, values)):
        return Units(list(map(int, values)), 1)
    ratios = [value.as_integer_ratio() for value in values]
    scale = max([below for _, below in ratios], default=1)
    return Units([above * (scale // below) for above, below in ratios], scale)


def partial_of(values: Sequence[float], units: Units) -> Partial:
    """Return the partial aggregate of values, at least one, that are also given in units."""
    whole, scale = units
    squares = sum(map(mul, whole, whole))
    return Partial(len(whole), sum(whole), squares, min(values), max(values), scale)


def rescale(part: Partial, scale: int) -> Partial:
    """Return the same partial in smaller units; ``scale`` of them make 1."""
    factor = scale // part.scale
    return part._replace(
        total=part.total * factor, squares=part.squares * factor * factor, scale=scale
    )


def merge_partials(one: Partial, other: Partial) -> Partial:
    """Merge two partials of one scale."""
    return Partial(
        one.n + other.n,
        one.total + other.total,
        one.squares + other.squares,
        min(one.least, other.least),
        max(one.greatest, other.greatest),
        one.scale,
    )


def mean(parts: Sequence[Partial]) -> float:
    """Return the sum divided by the number, over all partials."""
    n = sum([part.n for part in parts])
    return quotient(sum([part.total for part in parts]), n * parts[0].scale)


def answer(op: str, parts: Sequence[Partial]) -> float:
    """Return an aggregate over all partials, rounded once (the root of stddev once more)."""
    if op == "max":
        return max([part.greatest for part in parts])
    if op == "min":
        return min([part.least for part in parts])
    if op == "avg":
        return mean(parts)
    n = sum([part.n for part in parts])
    if op == "count":
        return float(n)
    total, scale = sum([part.total for part in parts]), parts[0].scale
    if op == "sum":
        return quotient(total, scale)
    squares = sum([part.squares for part in parts])
    return sqrt(quotient(n * squares - total * total, (n * scale) ** 2))
