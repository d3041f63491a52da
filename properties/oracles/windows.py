"""Recompute answers from tuples alone, in plain Python: an oracle that imports nothing of ours.

Rules of this file:

* Only the standard library is imported, so a reader need not trust any other file here.
* The code is written for clarity: loops over tuples, without state. Order matters only where a
  tuple is delivered twice: its first delivery counts.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import ge, gt, le, lt, ne
from typing import Any, NamedTuple


class Delivery(NamedTuple):
    """One delivery of a tuple."""

    identity: int
    key: str
    event_time_us: int
    value: float


class Answer(NamedTuple):
    """The answer for a window and key."""

    value: float
    n: int


Windows = Mapping[tuple[str, int], Answer]
"""Answers by key and start of the window (us)."""

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


def window_aggregates(
    deliveries: Iterable[Delivery], aggregate: str, size_us: int, slide_us: int
) -> Windows:
    """Return the exact answer for every window [start, start + size) with at least one tuple.

    Windows start at the multiples of the slide. A tuple that was delivered twice counts once.
    """
    seen: set[int] = set()
    values: dict[tuple[str, int], list[float]] = defaultdict(list)
    for delivery in deliveries:
        if delivery.identity in seen:
            continue
        seen.add(delivery.identity)
        start_us = delivery.event_time_us // slide_us * slide_us
        while start_us + size_us > delivery.event_time_us:
            values[delivery.key, start_us].append(delivery.value)
            start_us -= slide_us
    of = AGGREGATES[aggregate]
    return {window: Answer(of(found), len(found)) for window, found in values.items()}


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
