"""Selection of candidates in a store: one long sorted run, and a short one with recent rows.

With n rows in a store, a search takes O(log n) steps for each probing tuple, range and run, and one
for each candidate. New rows are sorted into the short run; merging it passes over both runs, which
makes about 32 steps for each row. All steps are NumPy's. A row is one kind of index:

* ``equal``: candidates have equal values, or equal hashes, and event times within the window.
* ``sorted``: they lie within the range of values, whatever their event time. Those that lie outside
  the window are looked at for nothing; a store has few of them if its watermark moves.
* ``in time``: they lie within the range of values, in the one or two slabs of time that the window
  touches. Two slabs are twice as long as the window on both sides, so at a steady rate half of
  the candidates or more lie within it. Texts have no slabs, and lie as in ``sorted``.

Candidates may have left the store. They leave a run when it is merged, which the number of rows
that left causes, too.
"""

from collections.abc import Iterator, Sequence
from functools import reduce

import numpy as np

from model.vocabulary.join import And
from spark_impl.join.access import (
    EQUAL,
    IN_TIME,
    Access,
    Edge,
    Range,
    in_slabs,
    ranges,
    ranges_in_time,
    slab_width,
)
from spark_impl.join.conditions import holds, known
from spark_impl.join.matching import Chosen, Tuples
from spark_impl.runtime.arrays import Column, Ints, Unsigned

GONE = -1
"""Mark of a row that left the store, in place of the number of a block."""
_FAR_US = 1 << 62
"""A limit: no sum or difference of two such numbers overflows."""
SHORT = 512
_SHORT_PART = 32
"""Runs are merged when rows have come, or have gone, that are more than both ``SHORT`` and this
part of the long run.
"""
_TIME_BITS = 42
"""Most bits for the time in a number for values and time; 20 bits are left for the values."""


class Index:
    """Rows of the store of a stream, sorted by one number each."""

    def __init__(self, access: Access, window_us: int) -> None:
        self._kind, self._columns, self._accepts = access.index_name
        self._window_us = window_us
        self._long: Column = np.empty(0, np.int64)
        self._short: Column = np.empty(0, np.int64)
        self._rows = np.empty(0, np.int64)
        """Rows of the long run, then rows of the short one."""
        self._base_us = 0
        self._time_bits = -1
        self._end = 0
        self._gone = 0

    def update(self, stored: Tuples, marks: Ints, gone: int) -> None:
        """Take in the rows that were added since the last call.

        ``marks`` has a mark for each row; ``gone`` is the number of rows that ever left the store.
        """
        fresh = (marks[self._end :] != GONE).nonzero()[0] + self._end
        self._end = len(marks)
        if len(fresh):
            self._take_in(stored, fresh, marks)
        rows, long = len(self._rows), len(self._long)
        if max(rows - long, gone - self._gone) > max(SHORT, long // _SHORT_PART):
            self._merge(marks)
            self._gone = gone

    def renumber(self, to: Ints) -> None:
        """Renumber rows: row i is now ``to[i]``, or gone if that is negative."""
        long = len(self._long)
        rows = to[self._rows]
        here = rows >= 0
        self._long, self._short = self._long[here[:long]], self._short[here[long:]]
        self._rows = rows[here]
        self._end = int(np.count_nonzero(to[: self._end] >= 0))

    def candidates(
        self, probing: Tuples, access: Access, pairs_max: int
    ) -> Iterator[tuple[Ints, Ints]]:
        """Yield candidates: positions of probing tuples, and the rows that they may match.

        No two candidates are equal. About ``pairs_max`` of them come at a time.
        """
        everybody = np.arange(len(probing))
        columns, who = _of_use(probing, everybody, access.probing, access.probes)
        if not len(who):
            return
        parts = self._ranges(columns, probing.ts[who], access)
        runs = self._long, self._short
        found = [_find(run, part, len(who)) for run in runs for part in parts]
        left = np.concatenate([each for each, _ in found])
        counts = np.concatenate([each for _, each in found]) - left
        left[len(left) // 2 :] += len(self._long)
        some = (counts > 0).nonzero()[0]
        if not len(some):
            return
        left, counts = left[some], counts[some]
        one = who[some % len(who)]
        ends = counts.cumsum()
        cuts = {len(some)}
        if ends[-1] > pairs_max:
            cuts.update(ends.searchsorted(np.arange(pairs_max, ends[-1], pairs_max)).tolist())
        begin = 0
        for end in sorted(cuts - {0}):
            part = slice(begin, end)
            begin = end
            own = counts[part]
            places = (left[part] - own.cumsum() + own).repeat(own)
            places += np.arange(len(places))
            yield one[part].repeat(own), self._rows[places]

    def _take_in(self, stored: Tuples, fresh: Ints, marks: Ints) -> None:
        """Add rows to the short run."""
        columns, rows = self._searched(stored, fresh)
        if not len(rows):
            return
        numbers = self._numbers(columns, stored.ts[rows])
        if numbers is None:
            held = np.flatnonzero(marks != GONE)
            self._choose_base(stored.ts[held])
            self._long, self._short, self._rows = self._long[:0], self._short[:0], self._rows[:0]
            columns, rows = self._searched(stored, held)
            numbers = self._numbers(columns, stored.ts[rows])
            assert numbers is not None
        long = len(self._long)
        numbers = np.concatenate([self._short, numbers]) if len(self._short) else numbers
        rows = np.concatenate([self._rows[long:], rows])
        order = numbers.argsort(kind="stable")
        self._short = numbers[order]
        self._rows = np.concatenate([self._rows[:long], rows[order]])

    def _searched(self, stored: Tuples, which: Ints) -> tuple[list[Column], Ints]:
        """Return the columns of the rows that a search may find, and these rows."""
        return _of_use(stored, which, self._columns, self._accepts)

    def _merge(self, marks: Ints) -> None:
        """Merge both runs and leave out rows that are gone."""
        long = len(self._long)
        here = marks[self._rows] != GONE
        old, new = self._long[here[:long]], self._short[here[long:]]
        old_rows, new_rows = self._rows[:long][here[:long]], self._rows[long:][here[long:]]
        places = np.searchsorted(old, new, "right") + np.arange(len(new))
        is_old = np.ones(len(old) + len(new), np.bool_)
        is_old[places] = False
        self._long = np.empty(len(is_old), self._short.dtype)
        self._rows = np.empty(len(is_old), np.int64)
        self._long[is_old], self._long[places] = old, new
        self._rows[is_old], self._rows[places] = old_rows, new_rows
        self._short = self._short[:0]

    # ------------------------------------------------------------------------ numbers and ranges

    def _numbers(self, columns: Sequence[Column], ts: Ints) -> Column | None:
        """Return the sort numbers of rows; ``None`` if times do not fit into these numbers."""
        if self._kind == EQUAL:
            since = ts - self._base_us
            if self._time_bits < 0 or (
                self._time_bits and (int(since.min()) < 0 or int(since.max()) >> self._time_bits)
            ):
                return None
            return self._with_time(_codes(columns), since)
        (values,) = columns
        if self._kind == IN_TIME and not _is_text(values):
            return in_slabs(ts // slab_width(self._window_us), values)
        return values

    def _ranges(self, columns: Sequence[Column], ts: Ints, access: Access) -> list[Range]:
        """Return the ranges to select, for every probing tuple."""
        if self._kind == EQUAL:
            return [self._within_window(_codes(columns), ts)]
        (values,) = columns
        if self._kind == IN_TIME and not _is_text(values):
            return ranges_in_time(values, ts, access, self._window_us)
        return ranges(values, access)

    def _within_window(self, code: Ints, ts: Ints) -> Range:
        last = (1 << max(self._time_bits, 0)) - 1
        since = np.minimum(np.maximum(ts - self._base_us, -_FAR_US), last)
        window_us = min(self._window_us, _FAR_US)
        low = self._with_time(code, np.maximum(since - window_us, 0))
        high = self._with_time(code, np.minimum(np.maximum(since + window_us, 0), last))
        return [Edge(low, "left")], [Edge(high, "right")]

    def _with_time(self, code: Ints, since: Ints) -> Ints:
        if self._time_bits <= 0:
            return code
        return ((code >> self._time_bits) << self._time_bits) + since

    def _choose_base(self, ts: Ints) -> None:
        """Make room for four times the present span of times, or sort by values alone."""
        base_us = int(ts.min())
        span_us = max(int(ts.max()) - base_us, 1 << 10)
        bits = (4 * span_us).bit_length()
        self._time_bits = bits if bits <= _TIME_BITS else 0
        self._base_us = base_us - span_us // 2 if self._time_bits else 0


def _find(run: Column, part: Range, probes: int) -> tuple[Ints, Ints]:
    """Return where the ranges of probing tuples begin and end; an empty one may end before that."""
    left = [run.searchsorted(*edge) for edge in part[0]]
    right = [run.searchsorted(*edge) for edge in part[1]]
    return (
        reduce(np.maximum, left) if left else np.zeros(probes, np.int64),
        reduce(np.minimum, right) if right else np.full(probes, len(run)),
    )


def _of_use(
    tuples: Tuples, which: Ints, names: Sequence[str], selections: And
) -> tuple[list[Column], Ints]:
    """Return some columns of the tuples that may be in a pair, and which tuples these are.

    A tuple may be in a pair if it satisfies the selections and has a value in each of the columns.
    ``which`` are the tuples that come into question.
    """
    if selections.parts:
        chosen = Chosen(tuples, which)
        which = which[holds(selections, chosen, chosen)]  # these look at one of the two alone
    columns = [tuples.column(name)[which] for name in names]
    good = known(names, columns)
    return (columns, which) if good is None else ([each[good] for each in columns], which[good])


def _is_text(column: Column) -> bool:
    return column.dtype.kind == "O"


def _codes(columns: Sequence[Column]) -> Ints:
    """Return numbers of 62 bits that are the same for equal values."""
    # Imported here because chains without such an index need not wait for it.
    import pandas as pd

    def hashes(column: Column) -> Unsigned:
        # Both zeros are equal. Every process computes the same hashes, whatever it hashed before.
        values = column + 0.0 if column.dtype.kind == "f" else column
        return np.asarray(pd.util.hash_array(values, categorize=False))

    codes = reduce(lambda codes, more: codes * np.uint64(31) + more, map(hashes, columns))
    return (codes >> np.uint64(2)).astype(np.int64)
