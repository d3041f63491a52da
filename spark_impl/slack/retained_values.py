"""The values of tuples, retained until the last window that counted them is judged.

Rules of this file:

* A value is retained for a run of windows ``lo .. last``: those that counted its tuple, as received
  or as late. The last window of a pane is the last window of each of its tuples.
* Values lie in the order of their panes, so the values of a window are contiguous.
"""

import numpy as np

from model.vocabulary import SlackConfig
from spark_impl.runtime.arrays import Floats, Ints, Records
from spark_impl.windows.records import fill_records, join_records

RETAINED = np.dtype([("key", "<i8"), ("pane", "<i8"), ("lo", "<i8"), ("value", "<f8")])
"""A value of a pane that the windows ``lo`` and later have counted."""


class RetainedValues:
    """The retained values of one task."""

    def __init__(self, config: SlackConfig, values: Records) -> None:
        self._spec = config.windows
        self.values = values
        """The values now; the array is replaced, never changed."""

    def add(self, key: Ints, event_time_us: Ints, lo: Ints, value: Floats) -> None:
        """Retain values for their windows from ``lo`` on, if ``lo`` is not behind their last."""
        pane = event_time_us // self._spec.pane_us
        counted = lo <= pane * self._spec.pane_us // self._spec.slide_us
        added = fill_records(RETAINED, len(pane), key=key, pane=pane, lo=lo, value=value)[counted]
        every = join_records(RETAINED, (self.values, added))
        self.values = every[np.argsort(every["pane"], kind="stable")]

    def values_of(self, windows: Records) -> Floats:
        """Return the values of some windows, ordered by window and key, each largest first.

        ``windows`` must contain all keys of an index.
        """
        by_index = [self._values_at(j) for j in np.unique(windows["j"]).tolist()]
        return np.concatenate([np.empty(0), *(values for each in by_index for values in each)])

    def forget(self, unjudged_from: int) -> None:
        """Drop the values that no window from ``unjudged_from`` on has counted."""
        first = unjudged_from * self._spec.slide_us // self._spec.pane_us
        self.values = self.values[int(np.searchsorted(self.values["pane"], first)) :]

    def _values_at(self, j: int) -> list[Floats]:
        first, end = (
            us // self._spec.pane_us for us in (self._spec.start_us(j), self._spec.end_us(j))
        )
        inside = self.values[slice(*np.searchsorted(self.values["pane"], (first, end)))]
        inside = inside[inside["lo"] <= j]
        order = np.argsort(inside["key"], kind="stable")
        ends = np.flatnonzero(np.diff(inside["key"][order])) + 1
        return [np.sort(values)[::-1] for values in np.split(inside["value"][order], ends)]
