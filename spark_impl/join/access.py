"""Way of a query to its candidates in the store of a stream: an index, and the ranges to select.

Rules of this file:

* A store is searched by one condition, or by several that belong together: all equalities, all
  conditions on one pair of columns. What the others say is decided on the candidates.
* Selections come before everything else: no index has a row that is not accepted.
* Equalities come first, then conditions that bound a column on both sides, then inequalities, then
  conditions that exclude a middle. The window bounds the event time on both sides, and comes last.
* A range may be too wide, because of rounding, never too narrow.
"""

from math import ceil, floor, inf, nextafter
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from model.vocabulary.join import And, Apart, Band, Between, Equi, Ineq, Predicate, S, Where
from model.vocabulary.join_predicates import parts_of
from spark_impl.runtime.arrays import Column, Ints

EQUAL = "equal"
"""Kind of an index that finds equal values of some columns, by time."""
SORTED = "sorted"
"""Kind of an index that is sorted by one column."""
IN_TIME = "in time"
"""Kind of an index that is sorted by time, in slabs twice as long as the window, then by one column
of numbers.
"""
EVENT_TIME = "event_time"
FAR_US = 1 << 61
"""A limit: event times lie below it, and no sum or difference of two such numbers overflows."""
_LARGEST = (1 << 63) - 1


class Span(NamedTuple):
    """Condition on a stored value: how far it may lie above that of the probing tuple."""

    low: float | None
    """Least difference; ``None``: there is none."""
    high: float | None
    strict: bool = False
    """The ends do not belong to it."""

    @property
    def mirrored(self) -> "Span":
        """The same condition, seen from the other stream."""
        low, high, strict = self
        return Span(None if high is None else -high, None if low is None else -low, strict)


class Access(NamedTuple):
    """Way to the candidates of a query in the store of one stream."""

    kind: str
    stored: tuple[str, ...]
    """Columns of the stored tuples."""
    probing: tuple[str, ...]
    """Columns of the probing tuples that belong to them."""
    either: tuple[tuple[Span, ...], ...] = ()
    """Alternatives by rising values; in each of them all conditions hold."""
    accepts: And = And()
    """Selections of the stored tuples."""
    probes: And = And()
    """Selections of the probing tuples."""

    @property
    def index_name(self) -> tuple[str, tuple[str, ...], And]:
        """Name of the index: queries of the same name share it."""
        return self.kind, self.stored, self.accepts


class Edge(NamedTuple):
    """One end of the ranges of all probing tuples, as arguments of ``searchsorted``."""

    bounds: Column
    side: Literal["left", "right"]


Range: TypeAlias = tuple[list[Edge], list[Edge]]
"""One range per probing tuple: it begins at the last of the first edges, and ends at the first of
the second ones. Without an edge it is open.
"""


def access_of(predicate: Predicate, stream: str, window_us: int) -> Access:
    """Return the best way to the candidates of a predicate in the store of a stream."""
    parts = list(parts_of(predicate))
    selections = [part for part in parts if isinstance(part, Where)]
    compared: list[Predicate] = [part for part in parts if not isinstance(part, Where)]
    return _best(compared, stream, window_us)._replace(
        accepts=And(tuple(each for each in selections if each.stream == stream)),
        probes=And(tuple(each for each in selections if each.stream != stream)),
    )


def _best(parts: list[Predicate], stream: str, window_us: int) -> Access:
    """Return the best way for conditions that compare columns."""
    equal = {_columns(part, stream): None for part in parts if isinstance(part, Equi)}
    if equal:
        stored, probing = zip(*equal, strict=True)
        return Access(EQUAL, stored, probing)
    spans: dict[tuple[str, str], list[Span]] = {}
    either: dict[tuple[str, str], tuple[tuple[Span, ...], ...]] = {}
    for part in parts:
        if len(found := _spans(part, stream)) == 1:
            spans.setdefault(_columns(part, stream), []).extend(found)
        else:
            either.setdefault(_columns(part, stream), tuple((span,) for span in found))
    time = spans.pop((EVENT_TIME, EVENT_TIME), [])
    for (own, other), all_of in spans.items():
        if _is_closed(all_of):
            return Access(SORTED, (own,), (other,), (tuple(all_of),))
    for (own, other), all_of in spans.items():
        return Access(IN_TIME, (own,), (other,), (tuple(all_of),))
    for (own, other), alternatives in either.items():
        return Access(IN_TIME, (own,), (other,), alternatives)
    window = Span(-window_us, window_us)
    return Access(SORTED, (EVENT_TIME,), (EVENT_TIME,), ((window, *time),))


def _columns(part: Predicate, stream: str) -> tuple[str, str]:
    """Return the column of the stored tuples and that of the probing ones."""
    if isinstance(part, Ineq):
        r, s = part.left, part.right
    else:
        assert isinstance(part, Equi | Band | Apart | Between)
        r, s = part.column, part.other
    return (s, r) if stream == S else (r, s)


def _spans(part: Predicate, stream: str) -> tuple[Span, ...]:
    """Return what a condition asks of the values stored for a stream: one of these spans."""
    if isinstance(part, Band):
        return (Span(-part.eps, part.eps),)
    if isinstance(part, Apart):
        return Span(None, -part.eps, strict=True), Span(part.eps, None, strict=True)
    found: tuple[Span, ...]
    if isinstance(part, Between):
        found = (Span(part.low, part.high),)
    else:
        assert isinstance(part, Ineq)
        found = _INEQUALITIES[part.op]
    return found if stream == S else tuple(span.mirrored for span in reversed(found))


_INEQUALITIES: dict[str, tuple[Span, ...]] = {
    "<": (Span(0, None, strict=True),),
    "<=": (Span(0, None),),
    ">": (Span(None, 0, strict=True),),
    ">=": (Span(None, 0),),
    "!=": (Span(None, 0, strict=True), Span(0, None, strict=True)),
}
"""Spans of S for an operator between R and S."""


def _is_closed(spans: list[Span]) -> bool:
    """Return whether spans bound a value on both sides."""
    return all(any(span[end] is not None for span in spans) for end in (0, 1))


# ------------------------------------------------------------------------------------- ranges


def slab_width(window_us: int) -> int:
    """Return the length of a slab: a window touches one slab, or two that follow each other."""
    return min(2 * window_us + 1, 2 * FAR_US)


def in_slabs(slabs: Column, values: Column) -> Column:
    """Return complex numbers, which NumPy orders by their real and then by their imaginary part.

    Integers that float64 does not have become their neighbours, and keep their order.
    """
    both = np.empty(len(values), np.complex128)
    both.real, both.imag = slabs, values
    return both


def ranges(values: Column, access: Access) -> list[Range]:
    """Return the ranges to select from a run that is sorted by the stored column.

    ``values`` are those of the probing tuples.
    """
    found: list[Range] = []
    with np.errstate(over="ignore"):
        for spans in access.either:
            begins = [_begin(values, low, strict) for low, _, strict in spans if low is not None]
            ends = [_end(values, high, strict) for _, high, strict in spans if high is not None]
            if found:  # Ends that are too wide may overlap.
                begins += found[-1][1]
            found.append((begins, ends))
    return found


def ranges_in_time(values: Column, ts: Ints, access: Access, window_us: int) -> list[Range]:
    """Return the ranges to select from a run that is sorted by slab and then by the stored column.

    A range of values is one in each of the two slabs that the window may touch.
    """
    width_us, reach_us = slab_width(window_us), min(window_us, FAR_US)
    first = ((ts - reach_us) // width_us).astype(np.float64)
    last = ((ts + reach_us) // width_us).astype(np.float64)
    # If both are one slab, the second range is empty, because it ends before all rows.
    slabs = (first, first), (last, np.where(last > first, last, -inf))
    found: list[Range] = []
    for begins, ends in ranges(values, access):
        lows = begins or [Edge(np.full(len(ts), -inf), "left")]
        highs = ends or [Edge(np.full(len(ts), inf), "right")]
        for begin, end in slabs:
            low = [Edge(in_slabs(begin, each.bounds), each.side) for each in lows]
            found.append((low, [Edge(in_slabs(end, each.bounds), each.side) for each in highs]))
    return found


def _begin(values: Column, low: float, strict: bool) -> Edge:
    """Return where values begin that lie at least ``low`` above the given ones."""
    if values.dtype.kind == "i":
        return Edge(_sum(values, floor(low) + strict), "left")
    if not low:
        return Edge(values, "right" if strict else "left")
    # Wider than any rounding error, here and in the difference that decides.
    return Edge(np.nextafter(values + nextafter(low, -inf), -inf), "left")


def _end(values: Column, high: float, strict: bool) -> Edge:
    """Return where values end that lie at most ``high`` above the given ones."""
    if values.dtype.kind == "i":
        return Edge(_sum(values, ceil(high) - strict), "right")
    if not high:
        return Edge(values, "left" if strict else "right")
    return Edge(np.nextafter(values + nextafter(high, inf), inf), "right")


def _sum(values: Column, much: int) -> Ints:
    """Return sums of integers; instead of those that are too large, the largest ones."""
    wide, much = values.astype(np.int64), max(-_LARGEST, min(much, _LARGEST))
    if much < 0:
        return np.maximum(wide, -_LARGEST - much) + much
    return np.minimum(wide, _LARGEST - much) + much
