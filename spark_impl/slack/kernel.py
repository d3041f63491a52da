"""One task's way through one micro-batch (docs/slack.md, sections 2 to 4), without Spark.

No loop over tuples. ``t_max`` and ``k`` do not depend on alpha, so they are running maxima over
many arrivals. Alpha changes at judgements only. A *stretch* is a run of arrivals over which alpha
is known, or guessed and then checked (:mod:`spark_impl.slack.foresight`): its work is on arrays.
"""

import numpy as np

from model.vocabulary import SlackConfig
from spark_impl.slack import quality
from spark_impl.slack.arrivals import Plan, first_mistake, plan, reject, remember
from spark_impl.slack.foresight import Foresight, Turn
from spark_impl.slack.held import Held
from spark_impl.slack.ledger import Ledger, Path
from spark_impl.slack.records import REJECTED, Ints, Output, Records, Rows, TaskState, records

ROWS_AT_ONCE = 32_768
"""Arrivals planned together: bounds memory, and what a wrong plan costs. Changes no result."""


def process(
    config: SlackConfig,
    state: TaskState,
    keys: tuple[str, ...],
    rows: Rows,
    flush: bool,
    task: int = 0,
) -> tuple[TaskState, Output]:
    """Take one micro-batch of a task; ``rows`` in arrival order, ``rows.key`` indexes ``keys``.

    Raises ``ValueError`` when an arrival number does not exceed those of earlier batches.
    """
    run = _Run(config, state, keys, task)
    rejected = run.take(rows, keys)
    if flush:
        run.flush()
    return run.state(), run.output(rejected, flush)


class _Run:
    """The work on one micro-batch; lives as long as :func:`process` runs."""

    def __init__(
        self, config: SlackConfig, state: TaskState, keys: tuple[str, ...], task: int
    ) -> None:
        self._config = config
        self._adaptive = quality.is_adaptive(config)
        self._clock = state.clock
        self._identities = state.identities
        self._accepted = 0
        # keys of state and batch numbered alike, in code point order
        self._keys = tuple(sorted({*state.keys, *keys})) if config.keyed else ("",)
        moved = _positions(state.keys, self._keys)
        self._ledger = Ledger(
            config,
            _recoded(state.panes, moved),
            _recoded(state.windows, moved),
            len(self._keys),
            task,
            Held(config, _recoded(state.held, moved), state.values)
            if config.needs_values
            else None,
        )
        self._foresight = Foresight(config, max(len(self._keys), 1))

    # -- arrivals ------------------------------------------------------------------------------

    def take(self, rows: Rows, keys: tuple[str, ...]) -> Records:
        """All arrivals of the batch; the rejected ones are returned."""
        self._check_order(rows)
        reason = reject(self._config, rows)
        bad = reason > 0
        rejected = records(
            REJECTED,
            int(bad.sum()),
            seq=rows.seq[bad],
            source_id=rows.source_id[bad],
            reason=reason[bad],
        )
        if len(rejected):
            rows = rows.take(~bad)
        if self._config.keyed:
            rows = rows._replace(key=_positions(keys, self._keys)[rows.key])
        else:
            rows = rows._replace(key=np.zeros(len(rows.seq), np.int64))
        start = 0
        while start < len(rows.seq):
            part = rows.take(slice(start, start + ROWS_AT_ONCE))
            start += self._follow(plan(self._config, self._clock, self._identities, part))
        return rejected

    def _check_order(self, rows: Rows) -> None:
        seq = rows.seq[rows.flaw == 0]
        if not len(seq):
            return
        if seq[0] <= self._clock.seq:
            msg = (
                f"arrival number {seq[0]} comes after {self._clock.seq}: the files of a history"
                " are taken by modification time and must number arrivals in that order"
            )
            raise ValueError(msg)
        self._clock = self._clock._replace(seq=int(seq[-1]))

    def _follow(self, chosen: Plan) -> int:
        """Work on a plan to its end, or until it turns out wrong; how many arrivals that took."""
        start = 0
        while start < chosen.size:
            path, turns = self._draw(chosen, start)
            wrong = first_mistake(chosen, path.wm, start)
            if wrong is not None:
                path = path.head(int(chosen.dropped_after[wrong]) - start)
            taken = self._attempt(chosen, path, turns, start)
            start += taken
            if wrong is not None and taken == len(path.wm):
                self._remember(chosen, start)
                return int(chosen.dropped[wrong])
        self._remember(chosen, start)
        return start + len(chosen.dropped)

    def _remember(self, chosen: Plan, upto: int) -> None:
        self._accepted += upto
        self._identities = remember(self._config, self._identities, chosen, upto, self._clock.wm_us)

    def _draw(self, chosen: Plan, start: int) -> tuple[Path, list[Turn]]:
        """The path of the stretch that begins at ``start``, and what it takes for granted."""
        if self._adaptive:
            return self._foresight.draw(self._ledger, self._clock, chosen, start)
        slack = quality.slack_us(self._config, 1.0, chosen.max_delay[start:])
        wm = np.maximum(np.maximum.accumulate(chosen.t_max[start:] - slack), self._clock.wm_us)
        return Path(slack, wm, chosen.n[start:], chosen.s1[start:], chosen.s2[start:]), []

    def _attempt(self, chosen: Plan, path: Path, turns: list[Turn], start: int) -> int:
        """Work on a path, or on as much of it as was guessed right; how many arrivals that took."""
        clock, mark = self._clock, self._ledger.mark()
        self._stretch(chosen, path, start)
        taken = [turn for turn in turns if turn.at < len(path.wm) - 1]
        wrong = self._foresight.check(taken, clock.alpha, self._ledger.judged_since(mark))
        if wrong is not None:
            self._clock = clock
            self._ledger.back_to(mark)
            path = path.head(wrong.at + 1)
            self._stretch(chosen, path, start)
        return len(path.wm)

    def _stretch(self, chosen: Plan, path: Path, start: int) -> None:
        """Route the arrivals of a stretch, then close and judge windows."""
        stop = start + len(path.wm)
        rows = chosen.rows.take(slice(start, stop))
        first, last = chosen.first[start:stop], chosen.last[start:stop]
        still_open = self._ledger.open_from(path.wm)
        lo = np.maximum(first, still_open)
        joins = lo <= last
        if joins.all():
            self._ledger.join(rows, lo)
        else:
            self._ledger.join(rows.take(joins), lo[joins])
        if self._config.needs_values:
            before = np.concatenate(([self._clock.wm_us], path.wm[:-1]))
            self._ledger.hold(rows, first, before)
        until = np.minimum(last, still_open - 1)
        late = np.flatnonzero(until >= first)
        if len(late):
            before = np.where(late > 0, path.wm[late - 1], self._clock.wm_us)
            self._ledger.miss(rows.take(late), first[late], until[late], before)
        self._clock = self._clock._replace(
            t_max_us=int(chosen.t_max[stop - 1]),
            max_delay_us=int(chosen.max_delay[stop - 1]),
            n=int(path.n[-1]),
            s1=float(path.s1[-1]),
            s2=float(path.s2[-1]),
        )
        self._advance(path)

    # -- windows -------------------------------------------------------------------------------

    def _advance(self, path: Path) -> None:
        """Close, then judge, what the path has reached."""
        clock = self._clock
        self._ledger.close(path)
        law = self._ledger.judge(path, quality.Law(clock.alpha, clock.err_prev, clock.judged))
        self._clock = clock._replace(wm_us=int(path.wm[-1]), **law._asdict())

    def flush(self) -> None:
        """Close and judge every window that has received something."""
        clock, spec = self._clock, self._config.windows
        if not clock.n:
            return
        last_end = clock.t_max_us // spec.slide_us * spec.slide_us + spec.size_us
        slack = quality.slack_us(self._config, clock.alpha, np.array([clock.max_delay_us]))
        wm = max(clock.wm_us, last_end + self._config.feedback)
        moments = (np.array([each]) for each in (clock.n, clock.s1, clock.s2))
        self._advance(Path(slack, np.array([wm]), *moments))

    # -- the end -------------------------------------------------------------------------------

    def state(self) -> TaskState:
        """What the task remembers; keys that nothing refers to are forgotten."""
        panes, windows = self._ledger.remains()
        held, values = self._ledger.held(self._clock.wm_us)
        keys = self._keys
        if self._config.keyed:
            used = np.unique(np.concatenate((panes["key"], windows["key"])))
            keys = tuple(self._keys[code] for code in used.tolist())
            moved = np.searchsorted(used, np.arange(len(self._keys)))
            panes, windows, held = (_recoded(each, moved) for each in (panes, windows, held))
        identities = self._identities[self._identities["limit"] > self._clock.wm_us]
        return TaskState(self._clock, keys, panes, windows, identities, held, values)

    def output(self, rejected: Records, flush: bool) -> Output:
        """What the micro-batch gave."""
        return Output(
            self._keys,
            np.concatenate(self._ledger.results),
            np.concatenate(self._ledger.lates),
            np.concatenate(self._ledger.judgements),
            rejected,
            active=self._accepted > 0 or (flush and self._clock.n > 0),
        )


def _positions(keys: tuple[str, ...], among: tuple[str, ...]) -> Ints:
    number = {key: code for code, key in enumerate(among)}
    return np.array([number.get(key, 0) for key in keys], np.int64)


def _recoded(table: Records, codes: Ints) -> Records:
    """The table with other numbers for its keys; ``codes`` holds the new number of each."""
    out = table.copy()
    if len(out):
        out["key"] = codes[table["key"]]
    return out
