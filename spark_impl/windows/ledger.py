"""The windows of one task that are open: filled, closed, missed by late tuples.

Rules of this file:

* A window closes at the first step of the watermark *path* that reaches its end. A path is the
  watermark after each arrival of a stretch; it never decreases.
* Windows that nothing belongs to do not exist here.
"""

from typing import NamedTuple

import numpy as np

from spark_impl.runtime.arrays import Ints, Records
from spark_impl.windows import panes as pane_math
from spark_impl.windows.asked import Asked
from spark_impl.windows.records import LATE, RESULT, Rows, records
from spark_impl.windows.rule import Path


class Mark(NamedTuple):
    """A moment of a ledger; its arrays are replaced, never changed."""

    panes: Records
    results: int
    lates: int


class Ledger:
    """Open windows as panes, and what came out of them."""

    def __init__(self, asked: Asked, panes: Records, n_keys: int) -> None:
        self._asked = asked
        self._spec = asked.windows
        self._panes = panes
        self._n_keys = max(n_keys, 1)
        self.results: list[Records] = [np.empty(0, RESULT)]
        self.lates: list[Records] = [np.empty(0, LATE)]

    def open_from(self, wm: Ints) -> Ints:
        """The first window that each watermark has not closed."""
        return (wm - self._spec.size_us) // self._spec.slide_us + 1

    def join(self, rows: Rows, lo: Ints) -> None:
        """Tuples join their windows from ``lo`` on, at least one each."""
        added = pane_math.fill(
            self._asked, rows.key, rows.event_time_us, rows.value, lo, self._n_keys
        )
        self._panes = np.concatenate((self._panes, added))

    def miss(self, rows: Rows, first: Ints, until: Ints) -> None:
        """Tuples are late for their windows ``first .. until``, at least one each."""
        self.lates.append(
            records(
                LATE,
                len(first),
                key=rows.key,
                first=first,
                windows=until - first + 1,
                source_id=rows.source_id,
                event_time_us=rows.event_time_us,
            )
        )

    def close(self, path: Path) -> Records:
        """Close what the path has reached."""
        open_from = int(self.open_from(path.wm[-1:])[0])
        if not len(self._panes) or self._panes["lo"].min() >= open_from:
            return np.empty(0, RESULT)
        closed = pane_math.answers(self._asked, self._panes, open_from, self._n_keys)
        when = np.searchsorted(path.wm, closed.j * self._spec.slide_us + self._spec.size_us)
        results = records(
            RESULT,
            len(closed.j),
            key=closed.key,
            j=closed.j,
            value=closed.value,
            n_rcv=closed.n,
            slack_us=path.slack[when],
            wm_us=path.wm[when],
        )
        self.results.append(results)
        self._panes = self._panes[pane_math.last_window(self._asked, self._panes) >= open_from]
        self._panes["lo"] = np.maximum(self._panes["lo"], open_from)
        return results

    def mark(self) -> Mark:
        """Where the ledger stands, for :meth:`back_to`."""
        return Mark(self._panes, len(self.results), len(self.lates))

    def back_to(self, mark: Mark) -> None:
        """Undo everything since a mark."""
        self._panes = mark.panes
        del self.results[mark.results :]
        del self.lates[mark.lates :]

    def remains(self) -> Records:
        """Panes of open windows."""
        return pane_math.merge(self._asked, self._panes, self._n_keys)
