"""The values of tuples, retained until the last window that counted them is judged.

Rules of this file:

* A value is retained for a run of windows ``lo .. last``: those that counted its tuple, as received
  or as late. The last window of a pane is the last window of each of its tuples.
* Values lie in the order of their panes, so the values of a window are contiguous. New values are
  appended without order until sorting them pays.
"""

from typing import NamedTuple

import numpy as np

from model.vocabulary import SlackConfig
from spark_impl.runtime.arrays import Bools, Floats, Ints, Records
from spark_impl.windows.records import fill_records

RETAINED = np.dtype([("key", "<i8"), ("pane", "<i8"), ("lo", "<i8"), ("n", "<i8")])
"""Number of values of a pane that the windows ``lo`` and later have counted."""
_RECENT = 4096
"""Number of unordered values that are never worth sorting."""


class _Columns(NamedTuple):
    pane: Ints
    key: Ints
    lo: Ints
    value: Floats

    def take(self, rows: Ints | Bools | slice) -> "_Columns":
        return _Columns._make(column[rows] for column in self)


class RetainedMark(NamedTuple):
    """A snapshot of retained values; arrays are replaced, never changed."""

    ordered: _Columns
    recent: tuple[_Columns, ...]


class RetainedValues:
    """The retained values of one task."""

    def __init__(self, config: SlackConfig, groups: Records, values: Floats) -> None:
        self._spec = config.windows
        pane, key, lo = (np.repeat(groups[name], groups["n"]) for name in ("pane", "key", "lo"))
        self._ordered = _Columns(pane, key, lo, values)
        self._recent: list[_Columns] = []

    def add(self, key: Ints, event_time_us: Ints, lo: Ints, value: Floats) -> None:
        """Retain values for their windows from ``lo`` on, if ``lo`` is not behind their last."""
        pane = event_time_us // self._spec.pane_us
        counted = lo <= pane * self._spec.pane_us // self._spec.slide_us
        self._recent.append(_Columns(pane, key, lo, value).take(counted))

    def values_of(self, windows: Records) -> Floats:
        """Return the values of some windows, ordered by window and key, each largest first.

        ``windows`` must contain all keys of an index.
        """
        if self._recent:
            self._recent = [_concatenated(self._recent)]
        by_index = [self._values_at(j) for j in np.unique(windows["j"]).tolist()]
        return np.concatenate([np.empty(0), *(values for each in by_index for values in each)])

    def forget(self, unjudged_from: int) -> None:
        """Drop the values that no window from ``unjudged_from`` on has counted."""
        recent = sum(len(each.pane) for each in self._recent)
        if recent > max(_RECENT, len(self._ordered.pane) // 8):
            self._order(unjudged_from)

    def mark(self) -> RetainedMark:
        """Return a snapshot for :meth:`undo_to`."""
        return RetainedMark(self._ordered, tuple(self._recent))

    def undo_to(self, mark: RetainedMark) -> None:
        """Undo all changes since ``mark``."""
        self._ordered, self._recent = mark.ordered, list(mark.recent)

    def to_records(self, unjudged_from: int) -> tuple[Records, Floats]:
        """Return one record for each (pane, key, lo), and the values that these count."""
        self._order(unjudged_from)
        pane, key, lo, value = self._ordered.take(
            np.lexsort((self._ordered.lo, self._ordered.key, self._ordered.pane))
        )
        new = np.ones(len(pane), np.bool_)
        new[1:] = (pane[1:] != pane[:-1]) | (key[1:] != key[:-1]) | (lo[1:] != lo[:-1])
        start = np.flatnonzero(new)
        n = np.diff(start, append=len(pane))
        groups = fill_records(RETAINED, len(n), pane=pane[start], key=key[start], lo=lo[start], n=n)
        return groups, value

    def _values_at(self, j: int) -> list[Floats]:
        spec = self._spec
        first = spec.start_us(j) // spec.pane_us
        end = spec.end_us(j) // spec.pane_us
        start, stop = np.searchsorted(self._ordered.pane, (first, end))
        parts = [self._ordered.take(slice(start, stop))]
        parts.extend(each.take((each.pane >= first) & (each.pane < end)) for each in self._recent)
        inside = _concatenated(parts)
        inside = inside.take(inside.lo <= j)
        if inside.key.max() == inside.key.min():
            return [np.sort(inside.value)[::-1]]
        order = np.argsort(inside.key, kind="stable")
        ends = np.flatnonzero(np.diff(inside.key[order])) + 1
        return [np.sort(values)[::-1] for values in np.split(inside.value[order], ends)]

    def _order(self, unjudged_from: int) -> None:
        every = _concatenated([self._ordered, *self._recent])
        first = unjudged_from * self._spec.slide_us // self._spec.pane_us
        every = every.take(every.pane >= first)
        every = every._replace(lo=np.maximum(every.lo, unjudged_from))
        self._ordered = every.take(np.argsort(every.pane, kind="stable"))
        self._recent = []


def _concatenated(parts: list[_Columns]) -> _Columns:
    return _Columns._make(np.concatenate(columns) for columns in zip(*parts, strict=True))
