"""Selecting candidates in a store: one sorted run, and a rest that is compared with everything.

There is a kind of index for each shape of predicate; each selects by one range of one number:

* ``key``: equal keys, and within a key by time;
* ``value``: equal or near values;
* ``time``: near times, for everything else.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from model.vocabulary.join import And, Band, Equi, Predicate

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
KEY, VALUE, TIME = "key", "value", "time"
_PREFERENCE = (KEY, VALUE, TIME)
_FAR_US = 1 << 62
"""No sum or difference of two such numbers wraps around."""


def index_kind(predicate: Predicate) -> str:
    """The kind of index that selects best for a predicate."""
    if isinstance(predicate, And):
        kinds = [index_kind(part) for part in predicate.parts]
        return min(kinds, key=_PREFERENCE.index, default=TIME)
    if isinstance(predicate, Equi):
        return predicate.column
    return VALUE if isinstance(predicate, Band) else TIME


def reach(predicate: Predicate) -> float:
    """How far apart values may be that an index of the kind ``value`` has to select."""
    if isinstance(predicate, And):
        parts = [part for part in predicate.parts if index_kind(part) == VALUE]
        return min(map(reach, parts), default=0.0)
    return predicate.eps if isinstance(predicate, Band) else 0.0


class Searched(NamedTuple):
    """What indexes look at, a number a tuple each."""

    ts: Integers
    value: Floats
    code: Integers
    """The same for the same key."""


class Index:
    """Rows of a store, sorted by one number each."""

    def __init__(self, kind: str, window_us: int) -> None:
        self._kind = kind
        self._window_us = min(window_us, _FAR_US)
        self._numbers: npt.NDArray[Any] = np.empty(0, np.int64)
        self._order = np.empty(0, np.int64)
        self._base_us = 0
        self._span_us = 0
        self._codes = 0
        self.sorted_to = 0
        """Rows from here on are not in the run."""

    def sort(self, stored: Searched, kept: Integers, to: int) -> None:
        """Sort the kept ones among the rows before ``to``."""
        if self._kind == TIME:
            numbers: npt.NDArray[Any] = stored.ts[kept]
        elif self._kind == VALUE:
            numbers = stored.value[kept]
        else:
            numbers = self._by_key_and_time(stored.ts[kept], stored.code[kept])
        order = np.argsort(numbers, kind="stable")
        self._numbers, self._order, self.sorted_to = numbers[order], kept[order], to

    def candidates(
        self, probing: Searched, stored: Searched, rest: range, reach: float, pairs_max: int
    ) -> Iterator[tuple[Integers, Integers]]:
        """Candidates for probing tuples: their positions, and rows as many.

        ``rest`` are the rows that may be alive behind the run; about ``pairs_max`` pairs are looked
        at together.
        """
        low, high = self._bounds(*probing, reach)
        left = np.searchsorted(self._numbers, low, "left")
        counts = np.maximum(np.searchsorted(self._numbers, high, "right") - left, 0)
        ends = np.cumsum(counts)
        cuts = np.searchsorted(ends, np.arange(pairs_max, int(counts.sum()), pairs_max))
        everything = np.arange(len(probing.ts))
        for part in np.split(everything, np.unique(cuts)):
            own = counts[part]
            if own.sum():
                one = np.repeat(part, own)
                offsets = np.arange(len(one)) - np.repeat(np.cumsum(own) - own, own)
                yield one, self._order[np.repeat(left[part], own) + offsets]
        if len(rest):
            step = max(1, pairs_max // len(rest))
            for begin in range(0, len(everything), step):
                some = slice(begin, begin + step)
                one, here = self._compare(probing, stored, some, rest, reach)
                yield one + begin, here + rest.start

    def _compare(
        self, probing: Searched, stored: Searched, some: slice, rest: range, reach: float
    ) -> tuple[Integers, Integers]:
        """Candidates among some probing tuples and all rows of the rest."""
        rows = slice(rest.start, rest.stop)
        if self._kind == KEY:
            near = probing.code[some, None] == stored.code[None, rows]
        elif self._kind == TIME:
            apart_us = probing.ts[some, None] - stored.ts[None, rows]
            near = np.abs(apart_us) <= self._window_us
        else:
            with np.errstate(over="ignore"):
                near = np.abs(probing.value[some, None] - stored.value[None, rows]) <= reach
        one, here = np.nonzero(near)
        return one, here

    def _bounds(
        self, ts: Integers, value: Floats, codes: Integers, reach: float
    ) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Least and greatest number to select, for every probing tuple."""
        if self._kind == TIME:
            return ts - self._window_us, ts + self._window_us
        if self._kind == VALUE:
            # wider than any rounding of this difference or of the one that decides
            with np.errstate(over="ignore"):
                wide = np.nextafter(reach, np.inf)
                return np.nextafter(value - wide, -np.inf), np.nextafter(value + wide, np.inf)
        if not self._span_us:
            return codes, codes
        last = self._span_us - 1
        since = np.clip(ts - self._window_us - self._base_us, 0, last)
        until = np.clip(ts + self._window_us - self._base_us, 0, last)
        known = np.where(codes < self._codes, codes, 0)
        low, high = known * self._span_us + since, known * self._span_us + until
        return low, np.where(codes < self._codes, high, low - 1)

    def _by_key_and_time(self, ts: Integers, codes: Integers) -> Integers:
        """One number for key and time, or for the key alone where both do not fit."""
        self._span_us = 0
        if not len(ts):
            return codes
        base_us, count = int(ts.min()), int(codes.max()) + 1
        span_us = int(ts.max()) - base_us + 1
        if span_us * count > _FAR_US:
            return codes
        self._base_us, self._span_us, self._codes = base_us, span_us, count
        return codes * span_us + (ts - base_us)
