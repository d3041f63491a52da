"""What a slice keeps of its tuples, from which every aggregate can be made.

Source: docs/script.md, sections 5 and 7.

Rules of this file:

* Sums are exact, and rounded once. Denominators of floats are powers of two: the largest one in a
  stream will do for all of it, and there are only whole numbers of units to add.
"""

from collections.abc import Sequence
from math import sqrt
from operator import mul
from typing import NamedTuple

from model.script.stream import quotient


class Units(NamedTuple):
    """Values of a stream as whole numbers of units."""

    whole: list[int]
    scale: int
    """How many units are 1."""


class Partial(NamedTuple):
    """Of at least one value."""

    n: int
    total: int
    """In units."""
    squares: int
    """The sum of the squares, in squares of units."""
    least: float
    greatest: float
    scale: int
    """How many units are 1; what is folded together has the same."""


def in_units(values: Sequence[float]) -> Units:
    """These values, exactly."""
    if all(map(float.is_integer, values)):
        return Units(list(map(int, values)), 1)
    ratios = [value.as_integer_ratio() for value in values]
    scale = max([below for _, below in ratios], default=1)
    return Units([above * (scale // below) for above, below in ratios], scale)


def of_values(values: Sequence[float], units: Units) -> Partial:
    """Of these values, at least one, which are so many units."""
    whole, scale = units
    squares = sum(map(mul, whole, whole))
    return Partial(len(whole), sum(whole), squares, min(values), max(values), scale)


def rescaled(part: Partial, scale: int) -> Partial:
    """Return the same part in smaller units, of which ``scale`` are 1."""
    factor = scale // part.scale
    return part._replace(
        total=part.total * factor, squares=part.squares * factor * factor, scale=scale
    )


def merged(one: Partial, other: Partial) -> Partial:
    """Return the part of all values of two parts of one scale."""
    return Partial(
        one.n + other.n,
        one.total + other.total,
        one.squares + other.squares,
        min(one.least, other.least),
        max(one.greatest, other.greatest),
        one.scale,
    )


def mean(parts: Sequence[Partial]) -> float:
    """Sum by number, over all parts."""
    n = sum([part.n for part in parts])
    return quotient(sum([part.total for part in parts]), n * parts[0].scale)


def answer(op: str, parts: Sequence[Partial]) -> float:
    """An aggregate over all parts, rounded once (the root of stddev once more)."""
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
