"""Windows over one stream, folded from slices of it that they share (docs/script.md, 5 and 7).

Rules of this file:

* Tuples come when they are known: none is older than what was taken before.
* A slice is called by where it begins. No window begins or ends within one, so what holds for its
  begin holds for all of its tuples.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property, lru_cache, reduce
from itertools import chain
from math import gcd
from typing import NamedTuple

import numpy as np

from model.vocabulary.script import END_US, MILLISECOND_US
from spark_impl.runtime.arrays import Floats, Ints
from spark_impl.script.arithmetic import (
    Folded,
    Integers,
    Scaled,
    finished,
    fold,
    joined,
    narrow,
    roomy,
    running,
)
from spark_impl.script.graph import HOUR_MS, Node


class Comb(NamedTuple):
    """Cuts at all stamps ``offset_ms + k every_ms``."""

    every_ms: int
    offset_ms: int


class Cutting(NamedTuple):
    """The combs of a stream, and what both ways would cost in steps an hour."""

    combs: tuple[Comb, ...]
    panes_cost: Fraction
    edges_cost: Fraction

    @property
    def is_panes(self) -> bool:
        """Whether all slices are equally long."""
        return self.panes_cost <= self.edges_cost


def cut(windows: Sequence[Node], per_hour: Fraction) -> Cutting:
    """The cheaper way to cut a stream of so many tuples an hour."""
    # Windows of the same length and slide fold the same slices.
    panes, edges = _ways(tuple(sorted({(w.length_ms, w.slide_ms) for w in windows})))
    panes_cost, edges_cost = (way.cost(per_hour) for way in (panes, edges))
    cheaper = panes if panes_cost <= edges_cost else edges
    return Cutting(cheaper.combs, panes_cost, edges_cost)


class _Way(NamedTuple):
    combs: tuple[Comb, ...]
    cuts_in_an_hour: Fraction
    spans_in_an_hour: Fraction
    """How many hours of slices windows fold in an hour."""

    def cost(self, per_hour: Fraction) -> Fraction:
        slices = min(self.cuts_in_an_hour, per_hour)
        return per_hour * len(self.combs) + self.spans_in_an_hour * slices


@lru_cache(maxsize=1024)  # most streams have windows as others have
def _ways(spans: tuple[tuple[int, int], ...]) -> tuple[_Way, _Way]:
    """Panes, and cuts at edges."""
    panes = (Comb(reduce(gcd, chain.from_iterable(spans)), 0),)
    folded = sum((Fraction(length, slide) for length, slide in spans), Fraction())

    def way(combs: tuple[Comb, ...]) -> _Way:
        cuts = sum((Fraction(HOUR_MS, comb.every_ms) for comb in combs), Fraction())
        return _Way(combs, cuts, folded)

    return way(panes), way(_edges(spans))


def _edges(spans: Sequence[tuple[int, int]]) -> tuple[Comb, ...]:
    """A comb for all begins and one for all ends of each window, without those that add no cut."""
    found: list[Comb] = []
    offsets = {(slide, offset) for length, slide in spans for offset in (0, -length % slide)}
    for every, offset in sorted(offsets):  # a comb lies within one that is not wider
        within = (
            every % comb.every_ms == 0 and (offset - comb.offset_ms) % comb.every_ms == 0
            for comb in found
        )
        if not any(within):
            found.append(Comb(every, offset))
    return tuple(found)


_NONE = np.empty(0, np.int64)
_NOTHING = Scaled(_NONE, 0)
NO_SLICES = Folded(_NONE, _NOTHING, _NOTHING, np.empty(0), np.empty(0))


class Slices(NamedTuple):
    """The slices of a stream that windows still need, by where they begin."""

    starts: Ints = _NONE
    """Microseconds."""
    folded: Folded = NO_SLICES
    until_us: int = 0
    """All tuples before are in them."""


def added(
    slices: Slices, combs: Sequence[Comb], ts: Ints, values: Floats, until_us: int, squares: bool
) -> Slices:
    """The slices with tuples that were not known before, in any order."""
    if not len(ts):
        return slices._replace(until_us=until_us)
    order = np.argsort(ts, kind="stable")
    begins = _begins(combs, ts[order])
    runs = np.concatenate(([0], np.flatnonzero(np.diff(begins)) + 1))
    return Slices(*_merged(slices, begins[runs], fold(values[order], runs, squares)), until_us)


def _begins(combs: Sequence[Comb], ts: Ints) -> Ints:
    """Where the slices of some tuples begin: at the last cut before."""
    found = [
        ts - (ts - offset * MILLISECOND_US) % (every * MILLISECOND_US) for every, offset in combs
    ]
    return np.asarray(np.maximum.reduce(found), np.int64)


def _merged(old: Slices, starts: Ints, new: Folded) -> tuple[Ints, Folded]:
    """Slices and later ones; the last of the former may go on as the first of the latter."""
    kept = old.folded
    both = Folded(
        np.concatenate((kept.n, new.n)),
        joined(kept.total, new.total),
        joined(kept.squares, new.squares),
        np.concatenate((kept.least, new.least)),
        np.concatenate((kept.greatest, new.greatest)),
    )
    seam = len(old.starts)
    if not seam or old.starts[-1] != starts[0]:
        return np.concatenate((old.starts, starts)), both
    runs = np.delete(np.arange(len(both.n)), seam)
    total, squares = (
        Scaled(_added_up(part.integers, runs), part.unit) for part in (both.total, both.squares)
    )
    least, greatest = (
        np.minimum.reduceat(both.least, runs),
        np.maximum.reduceat(both.greatest, runs),
    )
    n = np.add.reduceat(both.n, runs)
    return np.concatenate((old.starts, starts[1:])), Folded(n, total, squares, least, greatest)


def _added_up(integers: Integers, runs: Ints) -> Integers:
    return np.add.reduceat(roomy(integers, 2), runs) if len(integers) else integers


class Folds:
    """The windows over a stream between two stamps until which it was known."""

    def __init__(self, slices: Slices, since_us: int) -> None:
        self._slices = slices
        self._since_us = since_us

    @cached_property
    def _running(self) -> tuple[Ints, Scaled, Scaled]:
        """How many there are before each slice, their sums, and the sums of their squares."""
        folded = self._slices.folded
        n = np.concatenate(([0], np.cumsum(folded.n)))
        return n, running(folded.total), running(folded.squares)

    def windows(self, window: Node) -> tuple[Ints, Floats]:
        """Stamps of the windows that are complete now and were not before, and their values.

        A value that is not finite is NaN.
        """
        slide_us, length_us = window.slide_ms * MILLISECOND_US, window.length_ms * MILLISECOND_US
        starts = self._slices.starts
        first = np.maximum(starts // slide_us, self._since_us // slide_us) + 1
        last = np.minimum((starts + length_us) // slide_us, self._slices.until_us // slide_us)
        ends = _union(first, last) * slide_us
        low, high = np.searchsorted(starts, ends - length_us), np.searchsorted(starts, ends)
        return ends - MILLISECOND_US, finished(window.op, self._folded(window.op, low, high))

    def _folded(self, op: str, low: Ints, high: Ints) -> Folded:
        """Slices from low to high, together."""
        folded = self._slices.folded
        n, *sums = self._running
        total, squares = (
            Scaled(each.integers[high] - each.integers[low], each.unit)
            if len(each.integers) == len(n)
            else folded.squares  # which nobody asks for
            for each in sums
        )
        least, greatest = folded.least[:0], folded.greatest[:0]
        if len(low) and op in ("max", "min"):
            bounds = np.stack((low, high), axis=1).ravel()
            least = _reduced(np.minimum, folded.least, bounds)
            greatest = _reduced(np.maximum, folded.greatest, bounds)
        return Folded(n[high] - n[low], total, squares, least, greatest)


def _reduced(least_or_greatest: np.ufunc, values: Floats, bounds: Ints) -> Floats:
    """Of the values between every two bounds."""
    padded = np.append(values, 0.0)  # a bound may be the end
    return np.asarray(least_or_greatest.reduceat(padded, bounds)[::2], np.float64)


def _union(first: Ints, last: Ints) -> Ints:
    """All numbers that lie in one of some ranges, both of whose ends never go back."""
    if not len(first):
        return first
    before = np.concatenate((first[:1] - 1, np.maximum.accumulate(last)[:-1]))
    low = np.maximum(first, before + 1)
    sizes = np.maximum(last - low + 1, 0)
    skipped = np.cumsum(sizes) - sizes
    return np.repeat(low - skipped, sizes) + np.arange(int(sizes.sum()))


def needed(slices: Slices, windows: Sequence[Node]) -> Slices:
    """Only those slices that lie in a window which is not complete."""
    if not len(slices.starts):
        return slices
    last = np.zeros_like(slices.starts)
    for window in windows:
        slide_us, length_us = window.slide_ms * MILLISECOND_US, window.length_ms * MILLISECOND_US
        ends = (slices.starts + length_us) // slide_us * slide_us
        last = np.maximum(last, np.where(ends > slices.starts, ends, 0))
    keep = last > slices.until_us
    if keep.all():
        return slices
    folded = slices.folded
    total, squares = (
        Scaled(narrow(part.integers[keep]), part.unit) if len(part.integers) else part
        for part in (folded.total, folded.squares)
    )
    kept = Folded(folded.n[keep], total, squares, folded.least[keep], folded.greatest[keep])
    return slices._replace(starts=slices.starts[keep], folded=kept)


def known_until_us(window: Node, source_us: int) -> int:
    """Until when a window is known, by when its source is."""
    if source_us == END_US:
        return END_US
    slide_us = window.slide_ms * MILLISECOND_US
    return (source_us // slide_us + 1) * slide_us - MILLISECOND_US
