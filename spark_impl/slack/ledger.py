"""The windows of one task: filled, closed, missed by late tuples, judged.

Rules of this file:

* A window closes at the first step of the watermark *path* that reaches its end, and is judged at
  the first that reaches end + L. A path is the watermark after each arrival of a stretch; it never
  decreases.
* Windows that nothing belongs to do not exist here.
"""

from typing import NamedTuple

import numpy as np

from model.vocabulary import SlackConfig
from spark_impl.slack import panes as pane_math
from spark_impl.slack import quality, requirement
from spark_impl.slack.held import Held, HeldMark
from spark_impl.slack.records import (
    HELD,
    JUDGED,
    LATE,
    RESULT,
    WINDOW,
    Floats,
    Ints,
    Records,
    Rows,
    records,
)


class Path(NamedTuple):
    """K, watermark and moments after each arrival of a stretch."""

    slack: Ints
    wm: Ints
    n: Ints
    s1: Floats
    s2: Floats

    def head(self, size: int) -> "Path":
        """The path up to an arrival."""
        return Path._make(column[:size] for column in self)


class Mark(NamedTuple):
    """A moment of a ledger; its arrays are replaced, never changed."""

    panes: Records
    windows: Records
    results: int
    lates: int
    judgements: int
    held: HeldMark | None


class Ledger:
    """Open windows as panes, closed ones that wait for their judgement, and what came out.

    ``held`` is there if the requirement depends on values.
    """

    def __init__(
        self,
        config: SlackConfig,
        panes: Records,
        windows: Records,
        n_keys: int,
        task: int = 0,
        held: Held | None = None,
    ) -> None:
        self._config = config
        self._spec = config.windows
        self._panes = panes
        self._windows = windows
        self._n_keys = max(n_keys, 1)
        self._task = task
        self._held = held
        self.results: list[Records] = [np.empty(0, RESULT)]
        self.lates: list[Records] = [np.empty(0, LATE)]
        self.judgements: list[Records] = [np.empty(0, JUDGED)]

    def open_from(self, wm: Ints) -> Ints:
        """The first window that each watermark has not closed."""
        return (wm - self._spec.size_us) // self._spec.slide_us + 1

    def unjudged_from(self, wm: Ints) -> Ints:
        """The first window whose judgement each watermark has not reached."""
        return self.open_from(wm - self._config.feedback)

    def next_judgement_us(self, wm: int) -> int:
        """The watermark at which a window may be judged next."""
        lead = self._spec.size_us + self._config.feedback
        return ((wm - lead) // self._spec.slide_us + 1) * self._spec.slide_us + lead

    def join(self, rows: Rows, lo: Ints) -> None:
        """Tuples join their windows from ``lo`` on, at least one each."""
        added = pane_math.fill(
            self._config, rows.key, rows.event_time_us, rows.value, lo, self._n_keys
        )
        self._panes = np.concatenate((self._panes, added))

    def miss(self, rows: Rows, first: Ints, until: Ints, wm_before: Ints) -> None:
        """Tuples are late for their windows ``first .. until``, at least one each.

        ``wm_before`` is the watermark before each; what had been reached by it is judged no more.
        """
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
        row, j = pane_math.expand(np.maximum(first, self.unjudged_from(wm_before)), until)
        j, key, position = pane_math.by_window(j, rows.key[row], self._n_keys)
        n_late = np.bincount(position, minlength=len(j))
        self._wait(records(WINDOW, len(j), key=key, j=j, n_late=n_late))

    def hold(self, rows: Rows, first: Ints, wm_before: Ints) -> None:
        """Keep the values of tuples for the windows that count them, where values are needed.

        These are the windows from ``first`` on that the watermark before the tuple had not judged.
        """
        if self._held is not None:
            lo = np.maximum(first, self.unjudged_from(wm_before))
            self._held.add(rows.key, rows.event_time_us, lo, rows.value)

    def close(self, path: Path) -> None:
        """Close what the path has reached."""
        open_from = int(self.open_from(path.wm[-1:])[0])
        if not len(self._panes) or self._panes["lo"].min() >= open_from:
            return
        closed = pane_math.answers(self._config, self._panes, open_from, self._n_keys)
        when = np.searchsorted(path.wm, closed.j * self._spec.slide_us + self._spec.size_us)
        self.results.append(
            records(
                RESULT,
                len(closed.j),
                key=closed.key,
                j=closed.j,
                value=closed.value,
                n_rcv=closed.n,
                slack_us=path.slack[when],
                wm_us=path.wm[when],
            )
        )
        self._wait(records(WINDOW, len(closed.j), key=closed.key, j=closed.j, n_rcv=closed.n))
        self._panes = self._panes[pane_math.last_window(self._config, self._panes) >= open_from]
        self._panes["lo"] = np.maximum(self._panes["lo"], open_from)

    def judge(self, path: Path, law: quality.Law) -> quality.Law:
        """Judge what the path has reached, in the order (end, key); what that makes of the law."""
        unjudged_from = int(self.unjudged_from(path.wm[-1:])[0])
        due = self._windows["j"] < unjudged_from
        if not due.any():
            return law
        windows = self._merged(self._windows[due])
        self._windows = self._windows[~due]
        end = windows["j"] * self._spec.slide_us + self._spec.size_us
        when = np.searchsorted(path.wm, end + self._config.feedback)
        total = windows["n_rcv"] + windows["n_late"]
        cv2 = requirement.squared_cv(self._config, path.n[when], path.s1[when], path.s2[when])
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
        """Where the ledger stands, for :meth:`back_to`."""
        written = (len(self.results), len(self.lates), len(self.judgements))
        held = None if self._held is None else self._held.mark()
        return Mark(self._panes, self._windows, *written, held)

    def judged_since(self, mark: Mark) -> Records:
        """What was judged since a mark, in order."""
        return np.concatenate([np.empty(0, JUDGED), *self.judgements[mark.judgements :]])

    def back_to(self, mark: Mark) -> None:
        """Undo everything since a mark."""
        self._panes, self._windows = mark.panes, mark.windows
        del self.results[mark.results :]
        del self.lates[mark.lates :]
        del self.judgements[mark.judgements :]
        if self._held is not None and mark.held is not None:
            self._held.back_to(mark.held)

    def held(self, wm: int) -> tuple[Records, Floats]:
        """The values that windows not judged by ``wm`` counted, as a state keeps them."""
        if self._held is None:
            return np.empty(0, HELD), np.empty(0)
        return self._held.remains(int(self.unjudged_from(np.array([wm]))[0]))

    def remains(self) -> tuple[Records, Records]:
        """Panes of open windows, and closed windows that are not judged yet."""
        panes = pane_math.merge(self._config, self._panes, self._n_keys)
        return panes, self._merged(self._windows)

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
