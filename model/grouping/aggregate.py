"""Partial aggregates at the instances, and the answers that they merge to.

Source: docs/grouping.md, section 6.
"""

from collections.abc import Iterable, Sequence
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
    descending = sorted(values, reverse=True)
    return Aggregate(
        len(values),
        sum(values),
        min(values),
        descending[0],
        frozenset(values),
        tuple(descending[:top]),
    )


def merge(partials: Iterable[Aggregate], top: int) -> Aggregate:
    """Of all of them, in the order of their instances."""
    merged, *others = partials
    for other in others:
        merged = _both(merged, other, top)
    return merged


def _both(a: Aggregate, b: Aggregate, top: int) -> Aggregate:
    return Aggregate(
        a.n + b.n,
        a.total + b.total,
        min(a.least, b.least),
        max(a.greatest, b.greatest),
        a.distinct | b.distinct,
        tuple(sorted(a.top + b.top, reverse=True)[:top]),
    )
