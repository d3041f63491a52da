"""A stream, as far as it is known, and the numbers that windows and operations make of values.

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
    """What is known of a stream."""

    points: tuple[Point, ...]
    """By stamp and value; the same point may be there several times."""
    until_us: int
    """Every tuple with a stamp below this is known, and none of the others is here."""
    undefined: frozenset[int] = frozenset()
    """Stamps at which there was something to compute and no finite number came out."""


def before(points: Sequence[Point], until_us: int) -> Sequence[Point]:
    """Of points in order, those with a stamp below this."""
    return points[: bisect_left(points, (until_us,))]


def known_stream(values: dict[int, float], until_us: int) -> Stream:
    """A stream of one value a stamp; what is not finite is undefined."""
    stamps = sorted(stamp for stamp in values if stamp < until_us)
    # Adding 0 makes 0 of -0, so that equal values look alike.
    points = tuple([(stamp, values[stamp] + 0.0) for stamp in stamps if isfinite(values[stamp])])
    undefined = frozenset(stamp for stamp in stamps if not isfinite(values[stamp]))
    return Stream(points, until_us, undefined)


def to_float(exact: Fraction) -> float:
    """To float64, once; infinite where it is too large."""
    return quotient(exact.numerator, exact.denominator)


def quotient(above: int, below: int) -> float:
    """Of two integers, exactly, and then rounded like any number."""
    try:
        return above / below
    except OverflowError:
        return inf
