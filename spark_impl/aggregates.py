"""Aggregates of columns, as :meth:`spark_impl.over.Windows.agg` takes them.

Names that Python has already end in an underscore.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Aggregation:
    """An aggregate of one column."""

    name: str
    """Name of its column in results, and of its folder."""
    kind: str
    """The aggregate, as configurations call it."""
    column: str | None
    """Column of the values, None if rows are counted."""
    settings: Mapping[str, Any]
    """Settings beside those of the windows, which they override."""

    def alias(self, name: str) -> "Aggregation":
        """Return the same aggregate under another name."""
        return replace(self, name=name)


def sum_(column: str, **settings: Any) -> Aggregation:
    """Add up the values of a column.

    Args:
        column: column of the values: numbers, or texts that can be read as numbers.
        **settings: settings of the room (docs/settings.md) for this aggregate only.

    Examples:
        >>> power = sum_("watts", lambda_thr=0.9).alias("power")
        >>> [each.name for each in (power, quantile("watts", 0.9), count())]
        ['power', 'quantile_watts', 'count']
    """
    return _aggregation("sum", column, settings)


def avg(column: str, **settings: Any) -> Aggregation:
    """Average the values of a column."""
    return _aggregation("avg", column, settings)


def min_(column: str, **settings: Any) -> Aggregation:
    """Find the smallest value of a column."""
    return _aggregation("min", column, settings)


def max_(column: str, **settings: Any) -> Aggregation:
    """Find the largest value of a column."""
    return _aggregation("max", column, settings)


def median(column: str, **settings: Any) -> Aggregation:
    """Find the median of a column."""
    return _aggregation("median", column, settings)


def quantile(column: str, q: float, **settings: Any) -> Aggregation:
    """Find the least value of a column with a share ``q`` of all values up to it.

    Args:
        q: share of the values, above 0 and below 1.
    """
    return _aggregation("quantile", column, {**settings, "q": q})


def count(**settings: Any) -> Aggregation:
    """Count the rows."""
    return Aggregation("count", "count", None, settings)


def _aggregation(kind: str, column: str, settings: Mapping[str, Any]) -> Aggregation:
    return Aggregation(f"{kind}_{column}", kind, column, settings)
