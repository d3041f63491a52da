"""A windowed query: the settings that rooms share, and the aggregate (docs/slack.md, section 3).

Rules of this file:

* An aggregate must not depend on the order of its values: sums are rounded once, at the end
  (``math.fsum``).
* Limit: a sum beyond the range of float64 raises ``OverflowError``.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import ceil, fsum
from typing import Protocol

from model.vocabulary import WindowSpec
from model.vocabulary.settings import JsonObject, look_up

# ------------------------------------------------------------------------------------- settings


class Query(Protocol):
    """The settings that the configurations of rooms ``slack`` and ``watermark`` have in common."""

    @property
    def size_us(self) -> int:
        """Window length W."""
        ...

    @property
    def slide_us(self) -> int:
        """Window slide s."""
        ...

    @property
    def windows(self) -> WindowSpec:
        """Window boundaries that follow from length and slide."""
        ...

    @property
    def aggregate(self) -> str:
        """Name of the aggregate."""
        ...

    @property
    def q(self) -> float:
        """Rank of the aggregate ``quantile``, as a share."""
        ...

    @property
    def keyed(self) -> bool:
        """Whether every key has answers of its own."""
        ...

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        ...

    @property
    def dedup(self) -> bool:
        """Whether redeliveries are recognised."""
        ...

    @property
    def feedback(self) -> int:
        """Feedback delay L in microseconds."""
        ...

    @property
    def max_future_us(self) -> int | None:
        """The most by which an event time may lie ahead of its arrival; unlimited if None."""
        ...

    @property
    def gamma_us(self) -> int:
        """Largest span Gamma of the pending event times."""
        ...

    @property
    def max_age(self) -> int:
        """Largest age of a pending event time behind the watermark, in microseconds."""
        ...

    def to_json(self) -> JsonObject:
        """Return the settings as plain data."""
        ...


# ------------------------------------------------------------------------------------ aggregates

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


def aggregate_of(config: Query) -> Aggregate:
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
