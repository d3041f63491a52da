"""Aggregates of the values of one window (docs/slack.md, section 3).

Rules of this file:

* An aggregate sees the values as a sequence and must not depend on their order: sums are rounded
  once, at the end (``math.fsum``).
* Limit: a sum beyond the range of float64 raises ``OverflowError``.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import ceil, fsum

from model.windows.query import Query

Aggregate = Callable[[Sequence[float]], float]
"""The answer for a window from the values of its tuples, at least one."""


def count(values: Sequence[float]) -> float:
    """How many tuples there are."""
    return float(len(values))


def average(values: Sequence[float]) -> float:
    """Arithmetic mean."""
    return fsum(values) / len(values)


def quantile(q: Fraction) -> Aggregate:
    """The value of rank ceil(q * n); rank 1 is the smallest value."""

    def of_rank(values: Sequence[float]) -> float:
        return sorted(values)[ceil(q * len(values)) - 1]

    return of_rank


def as_written(number: float) -> Fraction:
    """The decimal number that a person wrote and that ``number`` stands for, exactly."""
    return Fraction(repr(number))


def aggregate_of(config: Query) -> Aggregate:
    """The aggregate that the query asks for."""
    simple: dict[str, Aggregate] = {
        "sum": fsum,
        "count": count,
        "avg": average,
        "min": min,
        "max": max,
        "median": quantile(Fraction(1, 2)),
        "quantile": quantile(as_written(config.q)),
    }
    return simple[config.aggregate]
