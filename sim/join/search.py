"""Search for the candidates of a query: by hashes, by a tree, or among all within the window.

Source: docs/join.md, sections 1 and 13.

A hash finds equal values. A tree finds the values within a band, or beyond an inequality. Both find
tuples whatever their event time. A range may be too wide, because of rounding, never too narrow.
"""

from typing import NamedTuple, TypeAlias

import numpy as np

from model.vocabulary import JoinConfig
from model.vocabulary.join_predicates import (
    TEXT,
    Apart,
    Band,
    Between,
    Equi,
    Ineq,
    Predicate,
    R,
    Where,
    kinds_of,
    parts_of,
)
from sim.join.columns import number_of
from sim.kernel.disorder import IntArray
from sim.kernel.distributions import AnyArray

Bound: TypeAlias = float | None
Ranges: TypeAlias = list[tuple[AnyArray, AnyArray]]
"""Smallest and largest values to find, for each value of the other stream."""


class Access(NamedTuple):
    """Candidates of a query: the column of S lies between ``low`` and ``high`` above that of R."""

    r_column: str
    s_column: str
    low: Bound
    """``None``: there is no bound."""
    high: Bound
    strict: bool = False
    """The bounds themselves do not belong to it."""
    outside: bool = False
    """True if what lies outside of the bounds is meant."""

    def column(self, stream: str) -> str:
        """Return the column of a stream."""
        return self.r_column if stream == R else self.s_column


EVERYTHING = Access(number_of("key"), number_of("key"), -(1 << 40), 1 << 40)
"""Access without an index: every tuple is compared."""
_INEQUALITIES: dict[str, tuple[Bound, Bound, bool, bool]] = {
    "<": (0, None, True, False),
    "<=": (0, None, False, False),
    ">": (None, 0, True, False),
    ">=": (None, 0, False, False),
    "!=": (0, 0, False, True),
}
"""Bounds of S above R by the operator between R and S; then ``strict`` and ``outside``."""


def access_of(config: JoinConfig, predicate: Predicate) -> Access:
    """Return the best index for a predicate: by equality, a band, an inequality, the window."""
    parts = [part for part in parts_of(predicate) if not isinstance(part, Where)]
    window = Access("event_time", "event_time", -config.window_us, config.window_us)
    best = min((_access(config, part) for part in parts), key=_width, default=window)
    return window if _width(best) == _WIDEST else best


_WIDEST = 4


def _width(access: Access) -> int:
    """Return the place of an access among others, the most selective first."""
    is_open = access.low is None or access.high is None
    if access[:2] == ("event_time", "event_time") and (is_open or access.outside):
        return _WIDEST  # wider than the window
    if access.outside:
        return 3
    return 2 if is_open else int(access.low != access.high)


def _access(config: JoinConfig, part: Predicate) -> Access:
    match part:
        case Equi(column, other):
            if kinds_of(config.r_columns)[column] == TEXT:
                column, other = number_of(column), number_of(other)
            return Access(column, other, 0, 0)
        case Band(column, eps, other):
            return Access(column, other, -eps, eps)
        case Apart(column, eps, other):
            return Access(column, other, -eps, eps, outside=True)
        case Between(column, low, high, other):
            return Access(column, other, low, high)
        case Ineq(left, op, right):
            return Access(left, right, *_INEQUALITIES[op])
    raise TypeError(part)


def find(
    few: AnyArray, many: AnyArray, access: Access, *, few_are_r: bool
) -> tuple[IntArray, IntArray]:
    """Return positions in ``many`` and in ``few`` of all candidates."""
    if few.dtype == np.object_:  # texts, as numbers in the same order
        numbers = np.unique(np.concatenate((few, many)), return_inverse=True)[1]
        few, many = numbers[: len(few)], numbers[len(few) :]
    order = few.argsort()
    ranges = _ranges(few[order], access if few_are_r else _mirrored(access))
    if len(few) == 1:
        good = [(low <= many) & (many <= high) for low, high in ranges]
        at = np.logical_or.reduce(good).nonzero()[0]
        return at, np.zeros(len(at), dtype=np.int64)
    # Sorting the many and searching for the few takes a tenth of the time of the opposite.
    by_value = many.argsort()
    ordered = many[by_value]
    parts = [_pairs(by_value, ordered, order, *each) for each in ranges]
    # Back in the order of both sides; the sorts may have moved equal values.
    pairs = np.concatenate(parts) if len(parts) > 1 else parts[0]
    pairs.sort()
    return np.divmod(pairs, len(few))


def _pairs(
    by_value: IntArray, ordered: AnyArray, order: IntArray, low: AnyArray, high: AnyArray
) -> IntArray:
    """Return the candidates of one range, as numbers of pairs."""
    first = ordered.searchsorted(low, side="left")
    counts = np.maximum(ordered.searchsorted(high, side="right") - first, 0)
    ends = counts.cumsum()
    inside = np.arange(ends[-1]) + (first - ends + counts).repeat(counts)
    pairs: IntArray = by_value[inside] * len(order) + order.repeat(counts)
    return pairs


def _mirrored(access: Access) -> Access:
    """Return the same candidates, found from S instead of R."""
    low = None if access.high is None else -access.high
    return access._replace(low=low, high=None if access.low is None else -access.low)


def _ranges(values: AnyArray, access: Access) -> Ranges:
    """Return the ranges of values of the other stream, which do not overlap."""
    _, _, low, high, strict, outside = access
    if not outside:
        return [(_moved(values, low, -1, strict), _moved(values, high, 1, strict))]
    below, above = _moved(values, low, 1, True), _moved(values, high, -1, True)
    if values.dtype.kind == "f":
        above = np.maximum(above, np.nextafter(below, np.inf))
    return [(_moved(values, None, -1, False), below), (above, _moved(values, None, 1, False))]


def _moved(values: AnyArray, by: Bound, to: int, strict: bool) -> AnyArray:
    """Return the bounds of ranges that end at values moved ``by``.

    They end downwards if ``to`` is -1, upwards if it is 1.
    """
    if values.dtype.kind == "f":
        if by is None:
            return np.full(len(values), to * np.inf)
        if not by:
            return np.nextafter(values, -to * np.inf) if strict else values
        reach = by + to * 4 * np.spacing(np.maximum(np.abs(values), abs(by)))
        return np.where(np.isinf(values), values, values + reach)
    most = np.iinfo(values.dtype).max
    if by is None:
        return np.full(len(values), to * most)
    return _sum(values, max(-most, min(int(by) - to * strict, most)), most)


def _sum(values: AnyArray, much: int, most: int) -> AnyArray:
    """Return sums of integers; those that are too large become the largest ones."""
    if much < 0:
        return np.asarray(np.maximum(values, -most - much) + much)
    return np.asarray(np.minimum(values, most - much) + much)
