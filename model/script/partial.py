"""What a slice keeps of its tuples, from which every aggregate can be made.

Source: docs/script.md, sections 5 and 7.
"""

from collections.abc import Iterable
from fractions import Fraction
from math import sqrt
from typing import NamedTuple

from model.script.stream import rounded


class Partial(NamedTuple):
    """Of at least one value; sums are exact."""

    n: int
    total: Fraction
    squares: Fraction
    least: float
    greatest: float


def of_values(values: Iterable[float]) -> Partial:
    """Of these values, at least one."""
    values = list(values)
    ratios = [value.as_integer_ratio() for value in values]
    # Denominators of floats are powers of two: the largest one will do for all.
    scale = max(below for _, below in ratios)
    whole = [above if below == scale else above * (scale // below) for above, below in ratios]
    total, squares = sum(whole), sum([each * each for each in whole])
    sums = Fraction(total, scale), Fraction(squares, scale * scale)
    return Partial(len(values), *sums, min(values), max(values))


def merged(left: Partial, right: Partial) -> Partial:
    """Of the values of both."""
    return Partial(
        left.n + right.n,
        left.total + right.total,
        left.squares + right.squares,
        min(left.least, right.least),
        max(left.greatest, right.greatest),
    )


def mean(parts: Iterable[Partial]) -> Fraction:
    """Sum by number, over all parts."""
    parts = list(parts)
    return sum((part.total for part in parts), Fraction()) / sum(part.n for part in parts)


def answer(op: str, whole: Partial) -> float:
    """An aggregate, rounded once (the root of stddev once more)."""
    if op == "count":
        return float(whole.n)
    if op in ("max", "min"):
        return whole.greatest if op == "max" else whole.least
    if op == "sum":
        return rounded(whole.total)
    if op == "avg":
        return rounded(whole.total / whole.n)
    return sqrt(rounded((whole.n * whole.squares - whole.total**2) / whole.n**2))
