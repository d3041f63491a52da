"""Partial aggregates at the instances, and the answers that they merge to.

Source: docs/grouping.md, section 6.
"""

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import NamedTuple


class Aggregate(NamedTuple):
    """Of at least one value."""

    n: int
    total: float
    least: float
    greatest: float
    distinct: frozenset[float]
    top: tuple[float, ...]
    """The largest values, largest first."""


def aggregate(values: Sequence[float], top: int) -> Aggregate:
    """Of the values that one instance got, in their order."""
    return Aggregate(
        len(values),
        sum(values),
        min(values),
        max(values),
        frozenset(values),
        tuple(sorted(values, reverse=True)[:top]),
    )


def merge(partials: Iterable[Aggregate], top: int) -> Aggregate:
    """Of all of them, in the order of their instances."""
    return reduce(lambda a, b: _both(a, b, top), partials)


def _both(a: Aggregate, b: Aggregate, top: int) -> Aggregate:
    return Aggregate(
        a.n + b.n,
        a.total + b.total,
        min(a.least, b.least),
        max(a.greatest, b.greatest),
        a.distinct | b.distinct,
        tuple(sorted(a.top + b.top, reverse=True)[:top]),
    )
