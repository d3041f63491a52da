"""The values of tuples, retained until the last window that counted them is judged.

Rules of this file:

* A value is retained for a run of windows ``lo .. last``: those that counted its tuple, as received
  or as late. The last window of a pane is the last window of each of its tuples.
* Values lie in the order of their panes, so the values of a window are contiguous.
"""

from typing import NamedTuple

import numpy as np

from model.vocabulary import SlackConfig
from spark_impl.runtime.arrays import Bools, Floats, Ints, Records
from spark_impl.windows.records import fill_records

RETAINED = np.dtype([("key", "<i8"), ("pane", "<i8"), ("lo", "<i8"), ("n", "<i8")])
"""Number of values of a pane that the windows ``lo`` and later have counted."""


class Retained(NamedTuple):
    """Retained values; columns are replaced, never changed."""

    pane: Ints
    key: Ints
    lo: Ints
    value: Floats

    def take(self, rows: Ints | Bools | slice) -> "Retained":
        """Return the values at some positions, under a mask, or of a slice."""
        return Retained._make(column[rows] for column in self)


class RetainedValues:
    """The retained values of one task."""

    def __init__(self, config: SlackConfig, groups: Records, values: Floats) -> None:
        self._spec = config.windows
        pane, key, lo = (np.repeat(groups[name], groups["n"]) for name in ("pane", "key", "lo"))
        self.values = Retained(pane, key, lo, values)
        """The values now."""

    def add(self, key: Ints, event_time_us: Ints, lo: Ints, value: Floats) -> None:
        """Retain values for their windows from ``lo`` on, if ``lo`` is not behind their last."""
        pane = event_time_us // self._spec.pane_us
        counted = lo <= pane * self._spec.pane_us // self._spec.slide_us
        added = Retained(pane, key, lo, value).take(counted)
        every = Retained._make(map(np.concatenate, zip(self.values, added, strict=True)))
        self.values = every.take(np.argsort(every.pane, kind="stable"))

    def values_of(self, windows: Records) -> Floats:
        """Return the values of some windows, ordered by window and key, each largest first.

        ``windows`` must contain all keys of an index.
        """
        by_index = [self._values_at(j) for j in np.unique(windows["j"]).tolist()]
        return np.concatenate([np.empty(0), *(values for each in by_index for values in each)])

    def forget(self, unjudged_from: int) -> None:
        """Drop the values that no window from ``unjudged_from`` on has counted."""
        first = unjudged_from * self._spec.slide_us // self._spec.pane_us
        start = int(np.searchsorted(self.values.pane, first))
        self.values = self.values.take(slice(start, None))

    def to_records(self, unjudged_from: int) -> tuple[Records, Floats]:
        """Return one record for each (pane, key, lo), and the values that these count."""
        self.forget(unjudged_from)
        kept = self.values._replace(lo=np.maximum(self.values.lo, unjudged_from))
        pane, key, lo, value = kept.take(np.lexsort((kept.lo, kept.key, kept.pane)))
        new = np.ones(len(pane), np.bool_)
        new[1:] = (pane[1:] != pane[:-1]) | (key[1:] != key[:-1]) | (lo[1:] != lo[:-1])
        start = np.flatnonzero(new)
        n = np.diff(start, append=len(pane))
        groups = fill_records(RETAINED, len(n), pane=pane[start], key=key[start], lo=lo[start], n=n)
        return groups, value

    def _values_at(self, j: int) -> list[Floats]:
        first, end = (
            us // self._spec.pane_us for us in (self._spec.start_us(j), self._spec.end_us(j))
        )
        inside = self.values.take(slice(*np.searchsorted(self.values.pane, (first, end))))
        inside = inside.take(inside.lo <= j)
        if inside.key.max() == inside.key.min():
            return [np.sort(inside.value)[::-1]]
        order = np.argsort(inside.key, kind="stable")
        ends = np.flatnonzero(np.diff(inside.key[order])) + 1
        return [np.sort(values)[::-1] for values in np.split(inside.value[order], ends)]
