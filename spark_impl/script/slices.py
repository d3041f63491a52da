"""Windows over one stream, folded from slices that they share (docs/script.md, 5 and 7).

Rules of this file:

* Tuples come in order of time: none is older than an earlier one.
* A slice is identified by its begin. No window begins or ends within a slice, so what holds for its
  begin holds for all of its tuples.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from model.vocabulary.script.config import END_US, MILLISECOND_US
from model.vocabulary.script.slices import Cutting, Span
from spark_impl.runtime.arrays import Floats, Ints
from spark_impl.script.arithmetic import (
    Folded,
    Integers,
    Scaled,
    aggregate,
    concat,
    cumulate,
    fold,
    narrow,
    widen,
)
from spark_impl.script.calendar import last_cuts, sizes

_NONE = np.empty(0, np.int64)
_NOTHING = Scaled(_NONE, 0)
NO_SLICES = Folded(_NONE, _NOTHING, _NOTHING, np.empty(0), np.empty(0))


class Slices(NamedTuple):
    """The slices of a stream that windows still need, ordered by begin."""

    starts: Ints = _NONE
    """Begins, in microseconds."""
    folded: Folded = NO_SLICES
    until_us: int = 0
    """All tuples before this stamp are in the slices."""


def add_tuples(
    slices: Slices, cutting: Cutting, ts: Ints, values: Floats, until_us: int, squares: bool
) -> Slices:
    """Return the slices with tuples that were not known before, in any order."""
    if not len(ts):
        return slices._replace(until_us=until_us)
    order = np.argsort(ts, kind="stable")
    # The slice of a tuple begins at the last cut before it.
    begins = np.maximum.reduce([last_cuts(comb, ts[order]) for comb in cutting])
    runs = np.concatenate(([0], np.flatnonzero(np.diff(begins)) + 1))
    return Slices(*_merged(slices, begins[runs], fold(values[order], runs, squares)), until_us)


def _merged(old: Slices, starts: Ints, new: Folded) -> tuple[Ints, Folded]:
    """Append later slices; the first of them may continue the last old one."""
    kept = old.folded
    both = Folded(
        np.concatenate((kept.n, new.n)),
        concat(kept.total, new.total),
        concat(kept.squares, new.squares),
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
    return np.add.reduceat(widen(integers, 2), runs) if len(integers) else integers


class Folds:
    """The windows over a stream that became known with the last tuples."""

    def __init__(self, slices: Slices, since_us: int) -> None:
        self._slices = slices
        self._since_us = since_us

    @cached_property
    def _running(self) -> tuple[Ints, Scaled, Scaled]:
        """Counts before each slice, their sums, and the sums of their squares."""
        folded = self._slices.folded
        n = np.concatenate(([0], np.cumsum(folded.n)))
        return n, cumulate(folded.total), cumulate(folded.squares)

    def windows(self, op: str, span: Span) -> tuple[Ints, Floats]:
        """Return stamps and values of the windows that are complete now and were not before.

        A value that is not finite is NaN.
        """
        ticks, length, slide = sizes(span)
        starts = self._slices.starts
        at = ticks.of(starts)
        since, until = ticks.of(np.array([self._since_us, self._slices.until_us]))
        first = np.maximum(at // slide, since // slide) + 1
        last = np.minimum((at + length) // slide, until // slide)
        ends = _union(first, last) * slide
        ends_us = ticks.us(ends)
        # Of several days that begin at a time, because some were skipped, the first one counts.
        is_first = np.diff(ends_us, prepend=-1) > 0
        ends, ends_us = ends[is_first], ends_us[is_first]
        low = np.searchsorted(starts, ticks.us(ends - length))
        high = np.searchsorted(starts, ends_us)
        return ends_us - MILLISECOND_US, aggregate(op, self._folded(op, low, high))

    def _folded(self, op: str, low: Ints, high: Ints) -> Folded:
        """Return the aggregates of the slices from low to high."""
        folded = self._slices.folded
        n, *sums = self._running
        total, squares = (
            Scaled(each.integers[high] - each.integers[low], each.unit)
            if len(each.integers) == len(n)
            else folded.squares  # no window needs it
            for each in sums
        )
        least, greatest = folded.least[:0], folded.greatest[:0]
        if op in ("max", "min"):
            bounds = np.stack((low, high), axis=1).ravel()
            least = _reduced(np.minimum, folded.least, bounds)
            greatest = _reduced(np.maximum, folded.greatest, bounds)
        return Folded(n[high] - n[low], total, squares, least, greatest)


def _reduced(least_or_greatest: np.ufunc, values: Floats, bounds: Ints) -> Floats:
    """Reduce the values between every two bounds."""
    padded = np.append(values, 0.0)  # a bound may be the end
    return np.asarray(least_or_greatest.reduceat(padded, bounds)[::2], np.float64)


def _union(first: Ints, last: Ints) -> Ints:
    """Return all numbers that lie in one of some ranges, both of whose ends never decrease."""
    if not len(first):
        return first
    before = np.concatenate((first[:1] - 1, np.maximum.accumulate(last)[:-1]))
    low = np.maximum(first, before + 1)
    sizes = np.maximum(last - low + 1, 0)
    skipped = np.cumsum(sizes) - sizes
    return np.repeat(low - skipped, sizes) + np.arange(int(sizes.sum()))


def prune(slices: Slices, windows: Sequence[Span]) -> Slices:
    """Return only the slices in some window that is not complete."""
    if not len(slices.starts):
        return slices
    last = np.zeros_like(slices.starts)
    for window in windows:
        ticks, length, slide = sizes(window)
        at = ticks.of(slices.starts)
        ends = (at + length) // slide * slide
        last = np.maximum(last, np.where(ends > at, ticks.us(ends), 0))
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


def known_until_us(window: Span, source_us: int) -> int:
    """Return the stamp until which a window is known, from that of its source (us)."""
    if source_us == END_US:
        return END_US
    ticks, _, slide = sizes(window)
    at = ticks.of(np.array([source_us]))
    return int(ticks.us((at // slide + 1) * slide)[0]) - MILLISECOND_US
