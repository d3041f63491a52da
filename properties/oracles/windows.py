"""Aggregates of windows and predicates of joins by definition, with the standard library alone."""

from collections.abc import Callable, Mapping, Sequence
from operator import eq, ge, gt, le, lt, ne
from typing import Any

AGGREGATES: Mapping[str, Callable[[list[float]], float]] = {
    "sum": sum,
    "count": lambda values: float(len(values)),
    "avg": lambda values: sum(values) / len(values),
    "min": min,
    "max": max,
    "median": lambda values: sorted(values)[(len(values) - 1) // 2],
}

Row = Mapping[str, Any]
DISTANCES = {"equi": 0, "band": 1, "apart": 1, "between": 2}
"""Number of distances in a predicate about two columns."""
COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": eq,
    "<": lt,
    "<=": le,
    ">": gt,
    ">=": ge,
    "!=": ne,
}


def matches(predicate: Sequence[Any], r: Row, s: Row) -> bool:
    """Return whether a pair matches a predicate in plain data, such as ``["band", "value", 5]``.

    A row has the value of each column, ``None`` if it is missing.
    """
    match predicate:
        case ["and", *parts]:
            return all(matches(part, r, s) for part in parts)
        case ["where", stream, column, comparison, constant]:
            one, other = (r if stream == "R" else s)[column], constant
        case ["ineq", left, comparison, right]:
            one, other = r[left], s[right]
        case [relation, column, *given]:
            bounds, comparison = given[: DISTANCES[relation]], "="
            one, other = r[column], s[(*given, column)[len(bounds)]]
            if bounds and None not in (one, other):
                from_r = other - one
                least, most = bounds if relation == "between" else (-bounds[0], bounds[0])
                inside = (least is None or least <= from_r) and (most is None or from_r <= most)
                return inside != (relation == "apart") and from_r == from_r  # or it is no number
    return None not in (one, other) and COMPARISONS[comparison](one, other)
