"""Values of tuples, held until the last window that they were counted for is judged.

Rules of this file:

* A value is held for a run of windows ``lo .. last``: those that counted its tuple, as received or
  as late. The last window of a pane is the last window of each of its tuples.
* Values lie in the order of their panes, so that those of a window are one stretch; what has just
  come lies behind, unordered, until there is enough of it to be worth an ordering.
"""

from typing import Any, NamedTuple

import numpy as np

from model.vocabulary import SlackConfig
from spark_impl.runtime.arrays import Floats, Ints, Records
from spark_impl.slack.records import HELD
from spark_impl.windows.records import records

_RECENT = 4096


class _Columns(NamedTuple):
    pane: Ints
    key: Ints
    lo: Ints
    value: Floats

    def take(self, which: Any) -> "_Columns":
        return _Columns._make(column[which] for column in self)


class HeldMark(NamedTuple):
    """A moment of held values; arrays are replaced, never changed."""

    ordered: _Columns
    recent: tuple[_Columns, ...]


class Held:
    """The values of one task."""

    def __init__(self, config: SlackConfig, groups: Records, values: Floats) -> None:
        self._spec = config.windows
        pane, key, lo = (np.repeat(groups[name], groups["n"]) for name in ("pane", "key", "lo"))
        self._ordered = _Columns(pane, key, lo, values)
        self._recent: list[_Columns] = []

    def add(self, key: Ints, event_time_us: Ints, lo: Ints, value: Floats) -> None:
        """Hold values for the windows from ``lo`` on; for none where ``lo`` lies behind them."""
        pane = event_time_us // self._spec.pane_us
        counted = lo <= pane * self._spec.pane_us // self._spec.slide_us
        self._recent.append(_Columns(pane, key, lo, value).take(counted))

    def of(self, windows: Records) -> Floats:
        """Values of some windows, ordered by window and key: each window's from the largest down.

        All windows of an index must be there.
        """
        if self._recent:
            self._recent = [_joined(self._recent)]
        found = [self._of(j) for j in np.unique(windows["j"]).tolist()]
        return np.concatenate([np.empty(0), *(values for each in found for values in each)])

    def forget(self, unjudged_from: int) -> None:
        """Drop the values that no window from ``unjudged_from`` on counted."""
        recent = sum(len(each.pane) for each in self._recent)
        if recent > max(_RECENT, len(self._ordered.pane) // 8):
            self._order(unjudged_from)

    def mark(self) -> HeldMark:
        """Where the values stand, for :meth:`back_to`."""
        return HeldMark(self._ordered, tuple(self._recent))

    def back_to(self, mark: HeldMark) -> None:
        """Undo everything since a mark."""
        self._ordered, self._recent = mark.ordered, list(mark.recent)

    def remains(self, unjudged_from: int) -> tuple[Records, Floats]:
        """The values as a state keeps them: one record for each (pane, key, lo), and the values."""
        self._order(unjudged_from)
        pane, key, lo, value = self._ordered.take(
            np.lexsort((self._ordered.lo, self._ordered.key, self._ordered.pane))
        )
        new = np.ones(len(pane), np.bool_)
        new[1:] = (pane[1:] != pane[:-1]) | (key[1:] != key[:-1]) | (lo[1:] != lo[:-1])
        start = np.flatnonzero(new)
        n = np.diff(start, append=len(pane))
        return records(HELD, len(n), pane=pane[start], key=key[start], lo=lo[start], n=n), value

    def _of(self, j: int) -> list[Floats]:
        spec = self._spec
        first = spec.start_us(j) // spec.pane_us
        end = spec.end_us(j) // spec.pane_us
        start, stop = np.searchsorted(self._ordered.pane, (first, end))
        parts = [self._ordered.take(slice(start, stop))]
        parts.extend(each.take((each.pane >= first) & (each.pane < end)) for each in self._recent)
        inside = _joined(parts)
        inside = inside.take(inside.lo <= j)
        if inside.key.max() == inside.key.min():
            return [np.sort(inside.value)[::-1]]
        order = np.argsort(inside.key, kind="stable")
        ends = np.flatnonzero(np.diff(inside.key[order])) + 1
        return [np.sort(values)[::-1] for values in np.split(inside.value[order], ends)]

    def _order(self, unjudged_from: int) -> None:
        together = _joined([self._ordered, *self._recent])
        first = unjudged_from * self._spec.slide_us // self._spec.pane_us
        together = together.take(together.pane >= first)
        together = together._replace(lo=np.maximum(together.lo, unjudged_from))
        self._ordered = together.take(np.argsort(together.pane, kind="stable"))
        self._recent = []


def _joined(parts: list[_Columns]) -> _Columns:
    return _Columns._make(np.concatenate(columns) for columns in zip(*parts, strict=True))
