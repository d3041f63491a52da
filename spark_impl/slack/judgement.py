"""Judges the closed windows of one task (docs/slack.md, sections 2 and 4).

Rules of this file:

* A window is judged at the first step of the watermark path that reaches its end + L.
* Windows without tuples have no record here.
"""

from typing import NamedTuple

import numpy as np

from model.vocabulary import SlackConfig
from spark_impl.runtime.arrays import Floats, Ints, NumbersT, Records
from spark_impl.slack import control_laws, requirement
from spark_impl.slack.retained_values import RetainedValues
from spark_impl.windows.panes import expand, group_by_window
from spark_impl.windows.records import fill_records, join_records
from spark_impl.windows.room import Stretch

WINDOW = np.dtype(
    [("key", "<i8"), ("j", "<i8"), ("n_rcv", "<i8"), ("n_late", "<i8"), ("negative", "<i8")]
)
"""A window that is not judged yet; ``negative`` is above 0 if one of its values is below."""

JUDGED = np.dtype(
    [
        ("order", "<i8"),
        ("key", "<i8"),
        ("j", "<i8"),
        ("n_rcv", "<i8"),
        ("n_late", "<i8"),
        ("n_req", "<i8"),
        ("miss", "?"),
        ("alpha", "<f8"),
    ]
)
"""A judgement: the window, its counts, whether it missed its requirement, and alpha after it."""


class Moments(NamedTuple):
    """Number, sum and sum of squares of all accepted values, after each arrival."""

    n: Ints
    s1: Floats
    s2: Floats


class Mark(NamedTuple):
    """A snapshot of the windows; arrays are replaced, never changed."""

    windows: Records
    judgements: int
    retained: Records


class Judgement:
    """The unjudged windows of a task and the judgements made so far."""

    def __init__(
        self,
        config: SlackConfig,
        windows: Records,
        n_keys: int,
        retained: Records,
    ) -> None:
        self._config = config
        self._spec = config.windows
        self._windows = windows
        self._n_keys = n_keys
        self._retained = RetainedValues(config, retained)
        self.judgements: list[Records] = []

    def unjudged_from(self, wm: NumbersT) -> NumbersT:
        """Return the first window whose judgement each watermark has not reached."""
        return (wm - self._config.feedback - self._spec.size_us) // self._spec.slide_us + 1

    def next_us(self, wm: int) -> int:
        """Return the next watermark at which a window may be judged."""
        lead = self._spec.size_us + self._config.feedback
        return ((wm - lead) // self._spec.slide_us + 1) * self._spec.slide_us + lead

    def count(self, done: Stretch) -> None:
        """Add the windows that a stretch closed, and the tuples late for unjudged windows."""
        rows = done.rows
        if self._config.needs_values:
            # a tuple counts for those of its windows that the watermark before it had not judged
            lo = np.maximum(done.first, self.unjudged_from(done.before(np.arange(done.size))))
            self._retained.add(rows.key, rows.event_time_us, lo, rows.value)
        if requirement.needs_positive_values(self._config):
            self._note_negative(done)
        if len(done.late):
            lo = np.maximum(done.first[done.late], self.unjudged_from(done.before(done.late)))
            row, j = expand(lo, done.until)
            j, key, position = group_by_window(j, rows.key[done.late][row], self._n_keys)
            n_late = np.bincount(position, minlength=len(j))
            self._append(fill_records(WINDOW, len(j), key=key, j=j, n_late=n_late))
        closed = done.closed
        if len(closed):
            self._append(
                fill_records(
                    WINDOW, len(closed), key=closed["key"], j=closed["j"], n_rcv=closed["n_rcv"]
                )
            )

    def _note_negative(self, done: Stretch) -> None:
        """Note the unjudged windows of the negative values of a stretch."""
        at = np.flatnonzero(done.rows.value < 0)
        if not len(at):
            return
        last = done.rows.event_time_us[at] // self._spec.slide_us
        lo = np.maximum(done.first[at], self.unjudged_from(done.before(at)))
        # Runs of windows with the same end contain one another: the longest is enough.
        hi, key, position = group_by_window(last, done.rows.key[at], self._n_keys)
        longest = hi + 1
        np.minimum.at(longest, position, lo)
        row, j = expand(longest, hi)
        self._append(fill_records(WINDOW, len(j), key=key[row], j=j, negative=1))

    def judge(self, wm: Ints, moments: Moments, law: control_laws.Law) -> control_laws.Law:
        """Judge the windows that a path has reached, by (end, key); return the law after them.

        ``wm`` and ``moments`` hold the watermark and the moments after each arrival of the path.
        """
        unjudged_from = self.unjudged_from(int(wm[-1]))
        due = self._windows["j"] < unjudged_from
        if not due.any():
            return law
        windows = self._merged(self._windows[due])
        self._windows = self._windows[~due]
        end = windows["j"] * self._spec.slide_us + self._spec.size_us
        when = np.searchsorted(wm, end + self._config.feedback)
        total = windows["n_rcv"] + windows["n_late"]
        cv2 = requirement.squared_cv(moments.n[when], moments.s1[when], moments.s2[when])
        values = self._retained.values_of(windows) if self._config.needs_values else None
        self._retained.forget(unjudged_from)
        n_req = requirement.required_tuples(
            self._config, total, cv2, values, has_negative=windows["negative"] > 0
        )
        miss = windows["n_rcv"] < n_req
        alphas, after = control_laws.judge(self._config, law, windows["n_rcv"], total, n_req, miss)
        self.judgements.append(
            fill_records(
                JUDGED,
                len(windows),
                order=law.judged + np.arange(len(windows)),
                key=windows["key"],
                j=windows["j"],
                n_rcv=windows["n_rcv"],
                n_late=windows["n_late"],
                n_req=n_req,
                miss=miss,
                alpha=np.array(alphas),
            )
        )
        return after

    def mark(self) -> Mark:
        """Return a snapshot for :meth:`undo_to`."""
        return Mark(self._windows, len(self.judgements), self._retained.values)

    def since(self, mark: Mark) -> Records:
        """Return the judgements made since ``mark``, in order."""
        return join_records(JUDGED, self.judgements[mark.judgements :])

    def undo_to(self, mark: Mark) -> None:
        """Undo all changes since ``mark``."""
        self._windows = mark.windows
        del self.judgements[mark.judgements :]
        self._retained.values = mark.retained

    def retained(self) -> Records:
        """Return the values that windows which are not judged yet have counted."""
        return self._retained.values

    def unjudged(self) -> Records:
        """Return what is known of the windows that are not judged yet."""
        return self._merged(self._windows)

    def _append(self, windows: Records) -> None:
        self._windows = join_records(WINDOW, (self._windows, windows))

    def _merged(self, windows: Records) -> Records:
        """Return one record for each (window, key), in that order."""
        j, key, position = group_by_window(windows["j"], windows["key"], self._n_keys)
        counts = {
            name: np.bincount(position, weights=windows[name], minlength=len(j))
            for name in ("n_rcv", "n_late", "negative")
        }
        return fill_records(WINDOW, len(j), key=key, j=j, **counts)
