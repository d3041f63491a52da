"""Aggregates of windows and predicates of joins by definition, with the standard library alone."""

from collections.abc import Callable, Mapping, Sequence
from operator import ge, gt, le, lt, ne
from typing import Any, NamedTuple


class Delivery(NamedTuple):
    """One delivery of a tuple."""

    identity: int
    key: str
    event_time_us: int
    value: float


AGGREGATES: Mapping[str, Callable[[list[float]], float]] = {
    "sum": sum,
    "count": lambda values: float(len(values)),
    "avg": lambda values: sum(values) / len(values),
    "min": min,
    "max": max,
    "median": lambda values: sorted(values)[(len(values) - 1) // 2],
}

COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": lt,
    "<=": le,
    ">": gt,
    ">=": ge,
    "!=": ne,
}


def matches(predicate: Sequence[Any], r: Delivery, s: Delivery) -> bool:
    """Return whether a pair matches a predicate in plain data, such as ``["band", "value", 5]``."""
    match predicate:
        case ["equi", column]:
            return bool(getattr(r, column) == getattr(s, column))
        case ["band", column, eps]:
            return bool(abs(getattr(r, column) - getattr(s, column)) <= eps)
        case ["apart", column, eps]:
            return bool(abs(getattr(r, column) - getattr(s, column)) > eps)
        case ["ineq", left, comparison, right]:
            return COMPARISONS[comparison](getattr(r, left), getattr(s, right))
        case ["and", *parts]:
            return all(matches(part, r, s) for part in parts)
    msg = f"there is no predicate {predicate!r}"
    raise ValueError(msg)
