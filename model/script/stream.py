"""A stream, as far as it is known, and the rounding of exact numbers.

Source: docs/script.md, sections 4 and 5.
"""

from bisect import bisect_left
from collections.abc import Sequence
from fractions import Fraction
from math import inf, isfinite
from typing import NamedTuple

Point = tuple[int, float]
"""A stamp in microseconds and a value."""


class Stream(NamedTuple):
    """The known part of a stream."""

    points: tuple[Point, ...]
    """Tuples by stamp and value; the same point may occur several times."""
    until_us: int
    """Stamp below which every tuple is known; the stream has no later tuples."""
    undefined: frozenset[int] = frozenset()
    """Stamps at which a computation gave no finite number."""


def before(points: Sequence[Point], until_us: int) -> Sequence[Point]:
    """Return the points with a smaller stamp; points are in order."""
    return points[: bisect_left(points, (until_us,))]


def known_stream(values: dict[int, float], until_us: int) -> Stream:
    """Return a stream of one value per stamp; a stamp without a finite value is undefined."""
    stamps = sorted(stamp for stamp in values if stamp < until_us)
    # Adding 0 makes 0 of -0, so that equal values look alike.
    points = tuple([(stamp, values[stamp] + 0.0) for stamp in stamps if isfinite(values[stamp])])
    undefined = frozenset(stamp for stamp in stamps if not isfinite(values[stamp]))
    return Stream(points, until_us, undefined)


def to_float(exact: Fraction) -> float:
    """Round a fraction to float64, once; infinite if it is too large."""
    return quotient(exact.numerator, exact.denominator)


def quotient(above: int, below: int) -> float:
    """Divide two integers exactly, and round the result like any number."""
    try:
        return above / below
    except OverflowError:
        return inf
