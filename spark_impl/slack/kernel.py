"""One task's way through one micro-batch (docs/slack.md, sections 2 to 4), without Spark.

Rules of this file:

* No loop over tuples. ``t_max`` and ``k`` do not depend on alpha, so they are running maxima over
  the whole batch. Alpha changes at judgements only: a *stretch* is a run of arrivals up to the
  next judgement (all arrivals where alpha is constant), and is worked on as arrays.
* What an arrival does to a window follows from the watermark *path* alone: the watermark after
  each arrival of the stretch, which never decreases. A window closes at the first arrival whose
  watermark reaches its end, and is judged at the first that reaches end + L.
* A redelivery is dropped, or handled as a new tuple when its identity was forgotten, depending on
  the watermark before it. A stretch assumes that nothing is forgotten on the way, checks that
  against its path, and ends early at the first redelivery for which it was wrong.
"""

from typing import NamedTuple

import numpy as np

from model.vocabulary import SlackConfig
from model.vocabulary.slack import REASON_FUTURE, REASON_NEGATIVE, REASON_NOT_FINITE
from spark_impl.slack import panes as pane_math
from spark_impl.slack import quality
from spark_impl.slack.records import (
    IDENTITY,
    JUDGED,
    LATE,
    NO_CLOCK,
    REJECTED,
    RESULT,
    WINDOW,
    Floats,
    Ints,
    Output,
    Records,
    Rows,
    TaskState,
    records,
)

REASONS = (REASON_NOT_FINITE, REASON_NEGATIVE, REASON_FUTURE)
ROWS_AT_ONCE = 65_536
"""Longest stretch; bounds the memory of a stretch, changes no result."""
_FIRST_LOOK = 64


class _Plan(NamedTuple):
    """Arrivals that are taken as accepted, and what of their clock does not depend on alpha."""

    rows: Rows
    first: Ints
    last: Ints
    t_max: Ints
    max_delay: Ints
    n: Ints
    s1: Floats
    s2: Floats
    dropped: Ints
    """Positions among all arrivals of those taken as redeliveries."""
    dropped_after: Ints
    """How many accepted arrivals come before each of them."""
    dropped_limit: Ints
    """The watermark at which the earlier delivery is forgotten."""


class _Path(NamedTuple):
    """K, watermark and moments after each arrival of a stretch."""

    slack: Ints
    wm: Ints
    n: Ints
    s1: Floats
    s2: Floats


def reject(config: SlackConfig, rows: Rows) -> Ints:
    """For every arrival 0, or 1 + the position in :data:`REASONS` of the first that applies."""
    out = np.zeros(len(rows.seq), np.int64)
    if config.max_future_us is not None:
        out[rows.event_time_us > rows.arrival_us + config.max_future_us] = 3
    if config.needs_positive_values:
        out[rows.value < 0] = 2
    out[~np.isfinite(rows.value)] = 1
    nulls = rows.flaw > 0
    out[nulls] = len(REASONS) + rows.flaw[nulls]
    return out


def process(
    config: SlackConfig, state: TaskState, keys: tuple[str, ...], rows: Rows, flush: bool
) -> tuple[TaskState, Output]:
    """Take one micro-batch of a task; ``rows`` in arrival order, ``rows.key`` indexes ``keys``.

    Raises ``ValueError`` when an arrival number does not exceed those of earlier batches.
    """
    run = _Run(config, state, keys, rows)
    run.take(run.rows)
    if flush and run.clock.n:
        run.flush()
    return run.state(), run.output(flush)


class _Run:
    """The work on one micro-batch; lives as long as :func:`process` runs."""

    def __init__(
        self, config: SlackConfig, state: TaskState, keys: tuple[str, ...], rows: Rows
    ) -> None:
        self.config = config
        self.spec = config.windows
        self.adaptive = quality.is_adaptive(config)
        self.clock = state.clock
        self.identities = state.identities
        self.look = _FIRST_LOOK
        self.accepted = 0
        self.results: list[Records] = [np.empty(0, RESULT)]
        self.lates: list[Records] = [np.empty(0, LATE)]
        self.judgements: list[Records] = [np.empty(0, JUDGED)]
        self._adopt_keys(state, keys, rows)
        self._check_order(rows)
        reason = reject(config, self.rows)
        bad = reason > 0
        self.rejected = records(
            REJECTED,
            int(bad.sum()),
            seq=rows.seq[bad],
            source_id=rows.source_id[bad],
            reason=reason[bad],
        )
        if len(self.rejected):
            self.rows = self.rows.take(~bad)

    def _adopt_keys(self, state: TaskState, keys: tuple[str, ...], rows: Rows) -> None:
        """Number the keys of state and batch alike, in code point order."""
        if not self.config.keyed:
            self.keys: tuple[str, ...] = ("",)
            self.panes, self.windows = state.panes, state.windows
            self.rows = rows._replace(key=np.zeros(len(rows.seq), np.int64))
            return
        self.keys = tuple(sorted({*state.keys, *keys}))
        number = {key: code for code, key in enumerate(self.keys)}
        moved = np.array([number[key] for key in state.keys], np.int64)
        self.panes = _recoded(state.panes, moved)
        self.windows = _recoded(state.windows, moved)
        codes = np.array([number[key] for key in keys], np.int64)
        self.rows = rows._replace(key=codes[rows.key] if len(keys) else rows.key)

    def _check_order(self, rows: Rows) -> None:
        whole = rows.seq[rows.flaw == 0]
        if not len(whole):
            return
        if whole[0] <= self.clock.seq:
            msg = (
                f"arrival number {whole[0]} comes after {self.clock.seq}: the files of a history"
                " are taken by modification time and must number arrivals in that order"
            )
            raise ValueError(msg)
        self.clock = self.clock._replace(seq=int(whole[-1]))

    @property
    def n_keys(self) -> int:
        return max(len(self.keys), 1)

    # -- arrivals ------------------------------------------------------------------------------

    def take(self, rows: Rows) -> None:
        """All arrivals that were not rejected."""
        start = 0
        while start < len(rows.seq):
            start += self._follow(self._plan(rows.tail(start)))

    def _plan(self, rows: Rows) -> _Plan:
        dropped = np.empty(0, np.int64)
        limit = dropped
        if self.config.dedup:
            known = self._known_limit(rows)
            is_dropped = known > self.clock.wm_us
            dropped = np.flatnonzero(is_dropped)
            limit = known[dropped]
            if len(dropped):
                rows = rows.take(~is_dropped)
        clock, ts = self.clock, rows.event_time_us
        t_max = np.maximum(np.maximum.accumulate(ts), clock.t_max_us)
        max_delay = np.maximum(np.maximum.accumulate(t_max - ts), clock.max_delay_us)
        return _Plan(
            rows,
            (ts - self.spec.size_us) // self.spec.slide_us + 1,
            ts // self.spec.slide_us,
            t_max,
            max_delay,
            clock.n + np.arange(1, len(ts) + 1),
            _running_sum(clock.s1, rows.value),
            _running_sum(clock.s2, rows.value * rows.value),
            dropped,
            dropped - np.arange(len(dropped)),
            limit,
        )

    def _known_limit(self, rows: Rows) -> Ints:
        """For every arrival the limit of the earlier delivery, NO_CLOCK if there is none."""
        ids = rows.source_id
        out = np.full(len(ids), NO_CLOCK, np.int64)
        order = np.argsort(ids, kind="stable")
        sorted_ids = ids[order]
        again = np.flatnonzero(sorted_ids[1:] == sorted_ids[:-1]) + 1
        if len(again):  # position in sorted order of the first delivery within this batch
            start = np.arange(len(ids))
            start[again] = 0
            start = np.maximum.accumulate(start)
            out[order[again]] = self._limit(rows.event_time_us[order[start[again]]])
        if len(self.identities):
            place = np.searchsorted(self.identities["source_id"], ids)
            place[place == len(self.identities)] = 0
            known = self.identities["source_id"][place] == ids
            out[known] = self.identities["limit"][place[known]]
        return out

    def _limit(self, ts: Ints) -> Ints:
        spec = self.spec
        limit: Ints = ts // spec.slide_us * spec.slide_us + spec.size_us + self.config.feedback
        return limit

    def _follow(self, plan: _Plan) -> int:
        """Work on the plan until its end, or until it turns out wrong; arrivals consumed."""
        start, size = 0, len(plan.rows.seq)
        while start < size:
            path = self._path(plan, start)
            stop = start + len(path.wm)
            wrong = self._first_forgotten(plan, path, start, stop)
            if wrong is not None:
                stop = int(plan.dropped_after[wrong])
                path = _Path(*(column[: stop - start] for column in path))
            self._stretch(plan, path, start, stop)
            if wrong is not None:
                self._remember(plan, stop)
                return int(plan.dropped[wrong])
            start = stop
        self._remember(plan, size)
        return size + len(plan.dropped)

    def _path(self, plan: _Plan, start: int) -> _Path:
        """The path of the stretch that begins at ``start``."""
        stop = min(start + ROWS_AT_ONCE, len(plan.t_max))
        if self.adaptive:
            stop, slack = self._next_judgement(plan, start, stop)
        else:
            slack = quality.slack_us(self.config, 1.0, plan.max_delay[start:stop])
        wm = np.maximum(np.maximum.accumulate(plan.t_max[start:stop] - slack), self.clock.wm_us)
        here = slice(start, stop)
        return _Path(slack, wm, plan.n[here], plan.s1[here], plan.s2[here])

    def _next_judgement(self, plan: _Plan, start: int, stop: int) -> tuple[int, Ints]:
        """Where the next judgement may happen (just behind that arrival), and K up to there."""
        lead = self.spec.size_us + self.config.feedback
        window = (self.clock.wm_us - lead) // self.spec.slide_us + 1
        at = window * self.spec.slide_us + lead
        end = min(start + 2 * self.look, stop)
        while True:
            slack = quality.slack_us(self.config, self.clock.alpha, plan.max_delay[start:end])
            reached = plan.t_max[start:end] - slack >= at
            hit = int(reached.argmax())
            if reached[hit]:
                end = start + hit + 1
                slack = slack[: hit + 1]
                break
            if end == stop:
                break
            end = min(start + 4 * (end - start), stop)
        self.look = max(end - start, _FIRST_LOOK)
        return end, slack

    def _first_forgotten(self, plan: _Plan, path: _Path, start: int, stop: int) -> int | None:
        """The first arrival dropped as a redelivery although its identity is forgotten by then."""
        if not len(plan.dropped):
            return None
        lo, hi = np.searchsorted(plan.dropped_after, (start + 1, stop + 1))
        before = path.wm[plan.dropped_after[lo:hi] - start - 1]
        wrong = np.flatnonzero(plan.dropped_limit[lo:hi] <= before)
        return int(lo + wrong[0]) if len(wrong) else None

    def _stretch(self, plan: _Plan, path: _Path, start: int, stop: int) -> None:
        """Route the arrivals of a stretch, then close and judge windows."""
        here = slice(start, stop)
        rows = plan.rows
        ts, key = rows.event_time_us[here], rows.key[here]
        first, last = plan.first[here], plan.last[here]
        still_open = self._open_from(path.wm)
        lo = np.maximum(first, still_open)
        joins = lo <= last
        if joins.all():
            added = pane_math.fill(self.config, key, ts, rows.value[here], lo, self.n_keys)
        else:
            added = pane_math.fill(
                self.config,
                key[joins],
                ts[joins],
                rows.value[here][joins],
                lo[joins],
                self.n_keys,
            )
        self.panes = np.concatenate((self.panes, added))
        late_until = np.minimum(last, still_open - 1)
        late = np.flatnonzero(late_until >= first)
        if len(late):
            self._late(rows.take(here), late, first[late], late_until[late], path)
        self.accepted += stop - start
        self.clock = self.clock._replace(
            t_max_us=int(plan.t_max[stop - 1]),
            max_delay_us=int(plan.max_delay[stop - 1]),
            n=int(path.n[-1]),
            s1=float(path.s1[-1]),
            s2=float(path.s2[-1]),
        )
        self._settle(path)

    def _late(self, rows: Rows, late: Ints, first: Ints, until: Ints, path: _Path) -> None:
        """Late pairs of the arrivals at positions ``late`` of the stretch."""
        key = rows.key[late]
        self.lates.append(
            records(
                LATE,
                len(late),
                key=key,
                first=first,
                windows=until - first + 1,
                source_id=rows.source_id[late],
                event_time_us=rows.event_time_us[late],
            )
        )
        before = np.where(late > 0, path.wm[late - 1], self.clock.wm_us)
        row, j = pane_math.expand(np.maximum(first, self._unjudged_from(before)), until)
        j, key, position = pane_math.by_window(j, key[row], self.n_keys)
        n_late = np.bincount(position, minlength=len(j))
        self._add_windows(records(WINDOW, len(j), key=key, j=j, n_late=n_late))

    def _remember(self, plan: _Plan, upto: int) -> None:
        if not self.config.dedup or not upto:
            return
        ids, ts = plan.rows.source_id[:upto], plan.rows.event_time_us[:upto]
        new = records(IDENTITY, upto, source_id=ids, limit=self._limit(ts))
        both = np.concatenate((self.identities, new))
        both = both[both["limit"] > self.clock.wm_us]
        _, where = np.unique(both["source_id"], return_index=True)  # the first of each
        self.identities = both[where]

    # -- windows -------------------------------------------------------------------------------

    def _open_from(self, wm: Ints) -> Ints:
        """The first window that each watermark has not closed."""
        return (wm - self.spec.size_us) // self.spec.slide_us + 1

    def _unjudged_from(self, wm: Ints) -> Ints:
        """The first window whose judgement each watermark has not reached."""
        return self._open_from(wm - self.config.feedback)

    def _add_windows(self, windows: Records) -> None:
        self.windows = np.concatenate((self.windows, windows))

    def flush(self) -> None:
        """Close and judge every window that has received something."""
        clock, spec = self.clock, self.spec
        last_end = clock.t_max_us // spec.slide_us * spec.slide_us + spec.size_us
        wm = max(clock.wm_us, last_end + self.config.feedback)
        self._settle(
            _Path(
                quality.slack_us(self.config, clock.alpha, np.array([clock.max_delay_us])),
                np.array([wm]),
                np.array([clock.n]),
                np.array([clock.s1]),
                np.array([clock.s2]),
            )
        )

    def _settle(self, path: _Path) -> None:
        """Close, then judge, what the path has reached."""
        wm = path.wm[-1:]
        open_from = int(self._open_from(wm)[0])
        if len(self.panes) and self.panes["lo"].min() < open_from:
            self._close(path, open_from)
        unjudged_from = int(self._unjudged_from(wm)[0])
        if len(self.windows) and self.windows["j"].min() < unjudged_from:
            self._judge(path, unjudged_from)
        self.clock = self.clock._replace(wm_us=int(wm[0]))

    def _close(self, path: _Path, open_from: int) -> None:
        closed = pane_math.answers(self.config, self.panes, open_from, self.n_keys)
        when = np.searchsorted(path.wm, closed.j * self.spec.slide_us + self.spec.size_us)
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
        self._add_windows(
            records(WINDOW, len(closed.j), key=closed.key, j=closed.j, n_rcv=closed.n)
        )
        self.panes = self.panes[pane_math.last_window(self.config, self.panes) >= open_from]
        self.panes["lo"] = np.maximum(self.panes["lo"], open_from)

    def _judge(self, path: _Path, unjudged_from: int) -> None:
        due = self.windows["j"] < unjudged_from
        windows = self._merged(self.windows[due])
        self.windows = self.windows[~due]
        end = windows["j"] * self.spec.slide_us + self.spec.size_us
        when = np.searchsorted(path.wm, end + self.config.feedback)
        total = windows["n_rcv"] + windows["n_late"]
        cv2 = quality.squared_cv(self.config, path.n[when], path.s1[when], path.s2[when])
        n_req = quality.required(self.config, total, cv2)
        miss = windows["n_rcv"] < n_req
        alphas, law = quality.alphas(
            self.config,
            quality.Alpha(self.clock.alpha, self.clock.err_prev),
            windows["n_rcv"],
            total,
            n_req,
            miss,
        )
        self.judgements.append(
            records(
                JUDGED,
                len(windows),
                order=self.clock.judged + np.arange(len(windows)),
                key=windows["key"],
                j=windows["j"],
                n_rcv=windows["n_rcv"],
                n_late=windows["n_late"],
                n_req=n_req,
                miss=miss,
                alpha=alphas,
            )
        )
        self.clock = self.clock._replace(
            judged=self.clock.judged + len(windows), alpha=law.alpha, err_prev=law.err_prev
        )

    def _merged(self, windows: Records) -> Records:
        """One record for each (window, key), in that order."""
        j, key, position = pane_math.by_window(windows["j"], windows["key"], self.n_keys)
        counts = {
            name: np.bincount(position, weights=windows[name], minlength=len(j))
            for name in ("n_rcv", "n_late")
        }
        return records(WINDOW, len(j), j=j, key=key, **counts)

    # -- the end -------------------------------------------------------------------------------

    def state(self) -> TaskState:
        """What the task remembers; keys that nothing refers to are forgotten."""
        panes = pane_math.merge(self.config, self.panes, self.n_keys)
        windows = self._merged(self.windows)
        keys = self.keys
        if self.config.keyed:
            used = np.unique(np.concatenate((panes["key"], windows["key"])))
            keys = tuple(self.keys[code] for code in used.tolist())
            panes = _recoded(panes, np.searchsorted(used, np.arange(self.n_keys)))
            windows = _recoded(windows, np.searchsorted(used, np.arange(self.n_keys)))
        identities = self.identities[self.identities["limit"] > self.clock.wm_us]
        return TaskState(self.clock, keys, panes, windows, identities)

    def output(self, flush: bool) -> Output:
        """What the micro-batch gave."""
        return Output(
            self.keys,
            np.concatenate(self.results),
            np.concatenate(self.lates),
            np.concatenate(self.judgements),
            self.rejected,
            self.accepted > 0 or (flush and self.clock.n > 0),
        )


def _running_sum(start: float, values: Floats) -> Floats:
    """start + v0, (start + v0) + v1, ...: float64 additions in arrival order."""
    sums: Floats = np.cumsum(np.concatenate(([start], values)))[1:]
    return sums


def _recoded(table: Records, codes: Ints) -> Records:
    """The table with other numbers for its keys; ``codes`` holds the new number of each."""
    out = table.copy()
    out["key"] = codes[table["key"]]
    return out
