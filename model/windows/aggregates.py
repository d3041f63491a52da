"""Aggregates of windowed queries (docs/slack.md, section 3).

Rules of this file:

* An aggregate must not depend on the order of its values: sums are rounded once, at the end
  (``math.fsum``).
* Limit: a sum beyond the range of float64 raises ``OverflowError``.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import ceil, fsum

from model.vocabulary.settings import look_up
from model.vocabulary.windows import WindowQuery

Aggregate = Callable[[Sequence[float]], float]
"""Function from the values of a window's tuples, at least one, to its answer."""


def count(values: Sequence[float]) -> float:
    """Return the number of tuples."""
    return float(len(values))


def average(values: Sequence[float]) -> float:
    """Return the arithmetic mean."""
    return fsum(values) / len(values)


def quantile(q: Fraction) -> Aggregate:
    """Return the aggregate that picks rank ceil(q * n); rank 1 is the smallest value."""

    def pick(values: Sequence[float]) -> float:
        return sorted(values)[ceil(q * len(values)) - 1]

    return pick


def as_written(number: float) -> Fraction:
    """Return the exact decimal that a person wrote for ``number``."""
    return Fraction(repr(number))


def aggregate_of(config: WindowQuery) -> Aggregate:
    """Return the aggregate of the query."""
    aggregates: dict[str, Aggregate] = {
        "sum": fsum,
        "count": count,
        "avg": average,
        "min": min,
        "max": max,
        "median": quantile(Fraction(1, 2)),
        "quantile": quantile(as_written(config.q)),
    }
    return look_up("aggregate", config.aggregate, aggregates)
