"""A stream, as far as it is known.

Source: docs/script.md, section 5.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from math import isfinite
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


def known_stream(made: Iterable[Point], until_us: int) -> Stream:
    """Return a stream of computed values, all of them below ``until_us``.

    A stamp with a value that is not finite is undefined.
    """
    known = sorted(made)
    # Adding 0 makes 0 of -0, so that equal values look alike.
    points = tuple([(stamp, value + 0.0) for stamp, value in known if isfinite(value)])
    return Stream(
        points, until_us, frozenset(stamp for stamp, value in known if not isfinite(value))
    )
