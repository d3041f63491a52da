"""Selection of candidates in a store: one long sorted run, and a short one with recent rows.

There is a kind of index for each shape of predicate. Each one selects a range of one number:

* ``key``: equal keys, and by time within a key;
* ``value``: equal or near values;
* ``time``: near times, for all other predicates.

Rows that left the store stay in the runs until the runs are merged.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from model.vocabulary.join import PREDICATES, And, Band, Equi, Predicate
from spark_impl.runtime.arrays import Bools, Column, Floats, Ints

KEY, VALUE, TIME = "key", "value", "time"
_PREFERENCE = (KEY, VALUE, TIME)
_FAR_US = 1 << 62
"""A limit: no sum or difference of two such numbers overflows."""
_SHORT = 512
_SHORT_PART = 32
"""The short run is merged when it is longer than both ``_SHORT`` and this part of the long run."""
_TIME_BITS = 42
"""Most bits for the time in a number for key and time; 20 bits are left for the key."""


def index_kind(predicate: Predicate) -> str:
    """Return the kind of index that selects best for a predicate."""
    if isinstance(predicate, And):
        kinds = [index_kind(part) for part in predicate.parts]
        return min(kinds, key=_PREFERENCE.index, default=TIME)
    if isinstance(predicate, Equi) and predicate.column == predicate.other in (KEY, VALUE):
        return predicate.column
    if isinstance(predicate, Band) and predicate.column == predicate.other == VALUE:
        return VALUE
    if isinstance(predicate, PREDICATES):
        return TIME
    msg = f"{predicate!r} is no predicate that a chain knows"
    raise TypeError(msg)


def reach(predicate: Predicate) -> float:
    """Return how far apart values may be that an index of the kind ``value`` must select."""
    if isinstance(predicate, And):
        parts = [part for part in predicate.parts if index_kind(part) == VALUE]
        return min(map(reach, parts), default=0.0)
    return predicate.eps if isinstance(predicate, Band) else 0.0


class Searched(NamedTuple):
    """The columns that indexes use, with one element per tuple."""

    ts: Ints
    value: Floats
    code: Ints
    """A number of 62 bits that is the same for equal keys."""

    def take(self, which: slice | Ints) -> "Searched":
        """Return the chosen tuples."""
        return Searched(self.ts[which], self.value[which], self.code[which])


class Index:
    """Rows of a store, sorted by one number each."""

    def __init__(self, kind: str, window_us: int) -> None:
        self._kind = kind
        self._window_us = min(window_us, _FAR_US)
        self._long: Column = np.empty(0, np.int64)
        self._short: Column = np.empty(0, np.int64)
        self._rows = np.empty(0, np.int64)
        """Rows of the long run, then rows of the short one."""
        self._base_us = 0
        self._time_bits = -1
        self._end = 0

    def update(self, stored: Searched, held: Bools) -> None:
        """Take in the rows that were added since the last call; ``held`` marks the rows in use."""
        fresh = np.flatnonzero(held[self._end :]) + self._end
        self._end = len(held)
        if not len(fresh):
            return
        numbers = self._numbers(stored.take(fresh))
        if numbers is None:
            self._choose_base(stored.ts[: len(held)][held])
            self._long, self._short = self._long[:0], self._short[:0]
            self._rows, fresh = self._rows[:0], np.flatnonzero(held)
            numbers = self._numbers(stored.take(fresh))
            assert numbers is not None
        long = len(self._long)
        numbers = np.concatenate([self._short, numbers]) if len(self._short) else numbers
        rows = np.concatenate([self._rows[long:], fresh])
        order = np.argsort(numbers, kind="stable")
        self._short, rows = numbers[order], rows[order]
        self._rows = np.concatenate([self._rows[:long], rows])
        if len(rows) > max(_SHORT, long // _SHORT_PART):
            self._merge(held)

    def renumber(self, to: Ints) -> None:
        """Renumber rows: row i is now ``to[i]``, or gone if that is negative."""
        long = len(self._long)
        rows = to[self._rows]
        here = rows >= 0
        self._long, self._short = self._long[here[:long]], self._short[here[long:]]
        self._rows = rows[here]
        self._end = int(np.count_nonzero(to[: self._end] >= 0))

    def candidates(
        self, probing: Searched, reach: float, pairs_max: int
    ) -> Iterator[tuple[Ints, Ints]]:
        """Yield candidates: positions of probing tuples, and the rows that they may match.

        About ``pairs_max`` candidates come at a time.
        """
        low, high = self._bounds(probing, reach)
        runs = (0, self._long), (len(self._long), self._short)
        left = np.concatenate([begin + np.searchsorted(run, low) for begin, run in runs])
        right = np.concatenate([begin + np.searchsorted(run, high, "right") for begin, run in runs])
        counts = np.maximum(right - left, 0)
        some = np.flatnonzero(counts)
        left, counts = left[some], counts[some]
        one = some % len(probing.ts)
        ends = np.cumsum(counts)
        total = int(ends[-1]) if len(ends) else 0
        cuts = np.searchsorted(ends, np.arange(pairs_max, total, pairs_max)).tolist()
        begin = 0
        for end in sorted({*cuts, len(some)} - {0}) if total else ():
            part = slice(begin, end)
            begin = end
            own = counts[part]
            before = np.cumsum(own) - own
            places = np.repeat(left[part] - before, own)
            places += np.arange(len(places))
            yield np.repeat(one[part], own), self._rows[places]

    def _merge(self, held: Bools) -> None:
        """Merge both runs and leave out rows that are gone."""
        long = len(self._long)
        here = held[self._rows]
        old, new = self._long[here[:long]], self._short[here[long:]]
        old_rows, new_rows = self._rows[:long][here[:long]], self._rows[long:][here[long:]]
        places = np.searchsorted(old, new, "right") + np.arange(len(new))
        is_old = np.ones(len(old) + len(new), np.bool_)
        is_old[places] = False
        self._long = np.empty(len(is_old), new.dtype)
        self._rows = np.empty(len(is_old), np.int64)
        self._long[is_old], self._long[places] = old, new
        self._rows[is_old], self._rows[places] = old_rows, new_rows
        self._short = self._short[:0]

    def _numbers(self, rows: Searched) -> Column | None:
        """Return the sort numbers of rows; ``None`` if times do not fit into these numbers."""
        if self._kind == TIME:
            return rows.ts
        if self._kind == VALUE:
            return rows.value
        since = rows.ts - self._base_us
        if self._time_bits < 0 or (
            self._time_bits and (int(since.min()) < 0 or int(since.max()) >> self._time_bits)
        ):
            return None
        return self._with_time(rows.code, since)

    def _with_time(self, code: Ints, since: Ints) -> Ints:
        if self._time_bits <= 0:
            return code
        return ((code >> self._time_bits) << self._time_bits) + since

    def _choose_base(self, ts: Ints) -> None:
        """Make room for four times the present span of times, or sort by keys alone."""
        base_us = int(ts.min())
        span_us = max(int(ts.max()) - base_us, 1 << 10)
        bits = (4 * span_us).bit_length()
        self._time_bits = bits if bits <= _TIME_BITS else 0
        self._base_us = base_us - span_us // 2 if self._time_bits else 0

    def _bounds(self, probing: Searched, reach: float) -> tuple[Column, Column]:
        """Return the least and the greatest number to select for every probing tuple."""
        if self._kind == TIME:
            return probing.ts - self._window_us, probing.ts + self._window_us
        if self._kind == VALUE:
            # Wider than any rounding error, here and in the difference that decides.
            with np.errstate(over="ignore"):
                wide, value = np.nextafter(reach, np.inf), probing.value
                return np.nextafter(value - wide, -np.inf), np.nextafter(value + wide, np.inf)
        last = (1 << max(self._time_bits, 0)) - 1
        since = np.clip(probing.ts - self._base_us, -_FAR_US, last)
        low = self._with_time(probing.code, np.clip(since - self._window_us, 0, last))
        high = self._with_time(probing.code, np.clip(since + self._window_us, 0, last))
        return low, high
