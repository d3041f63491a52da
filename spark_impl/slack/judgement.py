"""The windows of one task that wait for their judgement (docs/slack.md, sections 2 and 4).

Rules of this file:

* A window is judged at the first step of the watermark path that reaches its end + L.
* Windows that nothing belongs to do not exist here.
"""

from typing import NamedTuple

import numpy as np

from model.vocabulary import SlackConfig
from spark_impl.runtime.arrays import Floats, Ints, Records
from spark_impl.slack import quality, requirement
from spark_impl.slack.held import Held, HeldMark
from spark_impl.slack.records import HELD, JUDGED, WINDOW
from spark_impl.windows import panes as pane_math
from spark_impl.windows.records import records
from spark_impl.windows.rule import Stretch


class Moments(NamedTuple):
    """Number, sum and sum of squares of the values accepted so far, after each arrival."""

    n: Ints
    s1: Floats
    s2: Floats


class Mark(NamedTuple):
    """A moment of the windows; arrays are replaced, never changed."""

    windows: Records
    judgements: int
    held: HeldMark | None


class Judgement:
    """Closed windows that are not judged yet, and what the judgements were.

    ``held`` is there if the requirement depends on values.
    """

    def __init__(
        self,
        config: SlackConfig,
        windows: Records,
        n_keys: int,
        task: int = 0,
        held: Held | None = None,
    ) -> None:
        self._config = config
        self._spec = config.windows
        self._windows = windows
        self._n_keys = n_keys
        self._task = task
        self._held = held
        self.judgements: list[Records] = [np.empty(0, JUDGED)]

    def unjudged_from(self, wm: Ints) -> Ints:
        """The first window whose judgement each watermark has not reached."""
        return (wm - self._config.feedback - self._spec.size_us) // self._spec.slide_us + 1

    def next_us(self, wm: int) -> int:
        """The watermark at which a window may be judged next."""
        lead = self._spec.size_us + self._config.feedback
        return ((wm - lead) // self._spec.slide_us + 1) * self._spec.slide_us + lead

    def count(self, done: Stretch) -> None:
        """Take note of what a stretch closed, and of what came late for windows not judged yet."""
        rows = done.rows
        if self._held is not None and done.size:
            # the windows of a tuple that the watermark before it had not judged count it
            lo = np.maximum(done.first, self.unjudged_from(done.before(np.arange(done.size))))
            self._held.add(rows.key, rows.event_time_us, lo, rows.value)
        if len(done.late):
            lo = np.maximum(done.first[done.late], self.unjudged_from(done.before(done.late)))
            row, j = pane_math.expand(lo, done.until)
            j, key, position = pane_math.by_window(j, rows.key[done.late][row], self._n_keys)
            n_late = np.bincount(position, minlength=len(j))
            self._wait(records(WINDOW, len(j), key=key, j=j, n_late=n_late))
        closed = done.closed
        self._wait(
            records(WINDOW, len(closed), key=closed["key"], j=closed["j"], n_rcv=closed["n_rcv"])
        )

    def judge(self, wm: Ints, moments: Moments, law: quality.Law) -> quality.Law:
        """Judge what a path has reached, in the order (end, key); what that makes of the law.

        ``wm`` and ``moments`` are those after each of its arrivals.
        """
        unjudged_from = int(self.unjudged_from(wm[-1:])[0])
        due = self._windows["j"] < unjudged_from
        if not due.any():
            return law
        windows = self._merged(self._windows[due])
        self._windows = self._windows[~due]
        end = windows["j"] * self._spec.slide_us + self._spec.size_us
        when = np.searchsorted(wm, end + self._config.feedback)
        total = windows["n_rcv"] + windows["n_late"]
        cv2 = requirement.squared_cv(
            self._config, moments.n[when], moments.s1[when], moments.s2[when]
        )
        values = None
        if self._held is not None:
            values = self._held.of(windows)
            self._held.forget(unjudged_from)
        n_req = requirement.required(self._config, total, cv2, values, self._task, order=law.judged)
        miss = windows["n_rcv"] < n_req
        alphas, after = quality.judge(self._config, law, windows["n_rcv"], total, n_req, miss)
        self.judgements.append(
            records(
                JUDGED,
                len(windows),
                order=law.judged + np.arange(len(windows)),
                key=windows["key"],
                j=windows["j"],
                n_rcv=windows["n_rcv"],
                n_late=windows["n_late"],
                n_req=n_req,
                miss=miss,
                alpha=alphas,
            )
        )
        return after

    def mark(self) -> Mark:
        """Where the windows stand, for :meth:`back_to`."""
        held = None if self._held is None else self._held.mark()
        return Mark(self._windows, len(self.judgements), held)

    def since(self, mark: Mark) -> Records:
        """What was judged since a mark, in order."""
        return np.concatenate([np.empty(0, JUDGED), *self.judgements[mark.judgements :]])

    def back_to(self, mark: Mark) -> None:
        """Undo everything since a mark."""
        self._windows = mark.windows
        del self.judgements[mark.judgements :]
        if self._held is not None and mark.held is not None:
            self._held.back_to(mark.held)

    def held(self, wm_us: int) -> tuple[Records, Floats]:
        """The values that windows not judged by a watermark counted, as a memory keeps them."""
        if self._held is None:
            return np.empty(0, HELD), np.empty(0)
        return self._held.remains(int(self.unjudged_from(np.array([wm_us]))[0]))

    def remains(self) -> Records:
        """Closed windows that are not judged yet."""
        return self._merged(self._windows)

    def _wait(self, windows: Records) -> None:
        self._windows = np.concatenate((self._windows, windows))

    def _merged(self, windows: Records) -> Records:
        """One record for each (window, key), in that order."""
        j, key, position = pane_math.by_window(windows["j"], windows["key"], self._n_keys)
        n_rcv, n_late = (
            np.bincount(position, weights=windows[name], minlength=len(j))
            for name in ("n_rcv", "n_late")
        )
        return records(WINDOW, len(j), key=key, j=j, n_rcv=n_rcv, n_late=n_late)
