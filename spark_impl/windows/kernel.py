"""One task's way through one micro-batch (docs/slack.md, section 2), without Spark.

No loop over tuples. What a tuple does depends on the watermark, and that on how long the room's
rule waits. A *stretch* is a run of arrivals over which the rule knows its way, or guesses it and
looks afterwards: its work is on arrays.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from spark_impl.runtime.arrays import Ints, Records
from spark_impl.runtime.histories import require_later
from spark_impl.windows.arrivals import Plan, first_mistake, plan, reject, remember
from spark_impl.windows.ledger import Ledger
from spark_impl.windows.records import REJECTED, Output, Rows, TaskState, records
from spark_impl.windows.room import ConfigT, Room
from spark_impl.windows.rule import Path, Stretch

ROWS_AT_ONCE = 32_768
"""Arrivals planned together: bounds memory, and what a wrong plan costs. Changes no result."""


def process(
    room: Room[ConfigT],
    config: ConfigT,
    state: TaskState,
    keys: tuple[str, ...],
    rows: Rows,
    flush: bool,
    task: int = 0,
) -> tuple[TaskState, Output]:
    """Take one micro-batch of a task; ``rows`` in arrival order, ``rows.key`` indexes ``keys``.

    Raises ``ValueError`` when an arrival number does not exceed those of earlier batches.
    """
    run = _Run(room, config, state, keys, task)
    rejected = run.take(rows, keys)
    if flush:
        run.flush()
    return run.state(), run.output(rejected, flush)


class _Run:
    """The work on one micro-batch; lives as long as :func:`process` runs."""

    def __init__(
        self,
        room: Room[ConfigT],
        config: ConfigT,
        state: TaskState,
        keys: tuple[str, ...],
        task: int,
    ) -> None:
        self._asked = room.asked(config)
        self._clock = state.clock
        self._identities = state.identities
        self._accepted = 0
        # keys of state and batch numbered alike, in code point order
        self._keys = tuple(sorted({*state.keys, *keys})) if self._asked.keyed else ("",)
        moved = _positions(state.keys, self._keys)
        n_keys = max(len(self._keys), 1)
        self._ledger = Ledger(self._asked, _recoded(state.panes, moved), n_keys)
        self._rule = room.rule(config, task, n_keys, _moved(state.memory, moved))

    # -- arrivals ------------------------------------------------------------------------------

    def take(self, rows: Rows, keys: tuple[str, ...]) -> Records:
        """All arrivals of the batch; the rejected ones are returned."""
        self._check_order(rows)
        reason = reject(self._asked, rows)
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
        if self._asked.keyed:
            rows = rows._replace(key=_positions(keys, self._keys)[rows.key])
        else:
            rows = rows._replace(key=np.zeros(len(rows.seq), np.int64))
        start = 0
        while start < len(rows.seq):
            part = rows.take(slice(start, start + ROWS_AT_ONCE))
            start += self._follow(plan(self._asked, self._clock, self._identities, part))
        return rejected

    def _check_order(self, rows: Rows) -> None:
        seq = rows.seq[rows.flaw == 0]
        if not len(seq):
            return
        require_later(int(seq[0]), self._clock.seq)
        self._clock = self._clock._replace(seq=int(seq[-1]))

    def _follow(self, chosen: Plan) -> int:
        """Work on a plan to its end, or until it turns out wrong; how many arrivals that took."""
        self._rule.look(chosen.rows, chosen.t_max)
        start = 0
        while start < chosen.size:
            path = self._rule.path(start, self._clock.wm_us)
            wrong = first_mistake(chosen, path.wm, start)
            if wrong is not None:
                path = path.head(int(chosen.dropped_after[wrong]) - start)
            taken = self._attempt(chosen, path, start)
            start += taken
            if wrong is not None and taken == len(path.wm):
                self._remember(chosen, start)
                return int(chosen.dropped[wrong])
        self._remember(chosen, start)
        return start + len(chosen.dropped)

    def _remember(self, chosen: Plan, upto: int) -> None:
        self._accepted += upto
        self._identities = remember(self._asked, self._identities, chosen, upto, self._clock.wm_us)

    def _attempt(self, chosen: Plan, path: Path, start: int) -> int:
        """Work on a path, or on as much of it as was guessed right; how many arrivals that took."""
        mark = self._ledger.mark()
        right = self._rule.settle(self._stretch(chosen, path, start))
        if right is not None:
            self._ledger.back_to(mark)
            path = path.head(right)
            self._rule.settle(self._stretch(chosen, path, start))
        stop = start + len(path.wm)
        t_max = int(chosen.t_max[stop - 1])
        self._clock = self._clock._replace(t_max_us=t_max, wm_us=int(path.wm[-1]))
        return len(path.wm)

    def _stretch(self, chosen: Plan, path: Path, start: int) -> Stretch:
        """Route the arrivals of a stretch, then close windows."""
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
        until = np.minimum(last, still_open - 1)
        late = np.flatnonzero(until >= first)
        until = until[late]
        if len(late):
            self._ledger.miss(rows.take(late), first[late], until)
        closed = self._ledger.close(path)
        return Stretch(rows, first, late, until, self._clock.wm_us, path, closed)

    def flush(self) -> None:
        """Close every window that has received something."""
        clock, spec = self._clock, self._asked.windows
        if not clock.is_running:
            return
        wm = max(clock.wm_us, spec.last_end_us(clock.t_max_us) + self._asked.feedback_us)
        path = Path(np.array([self._rule.slack_us()]), np.array([wm]))
        none = np.empty(0, np.int64)
        nothing = Rows(none, none, none, none, np.empty(0), none, none)
        closed = self._ledger.close(path)
        self._rule.settle(Stretch(nothing, none, none, none, clock.wm_us, path, closed))
        self._clock = clock._replace(wm_us=wm)

    # -- the end -------------------------------------------------------------------------------

    def state(self) -> TaskState:
        """What the task remembers; keys that nothing refers to are forgotten."""
        wm = self._clock.wm_us
        panes, memory, keys = self._ledger.remains(), self._rule.memory(wm), self._keys
        if self._asked.keyed:
            used = np.unique(np.concatenate([each["key"] for each in _keyed((panes, *memory))]))
            keys = tuple(self._keys[code] for code in used.tolist())
            moved = np.searchsorted(used, np.arange(len(self._keys)))
            panes, memory = _recoded(panes, moved), _moved(memory, moved)
        identities = self._identities[self._identities["limit"] > wm]
        return TaskState(memory, self._clock, keys, panes, identities)

    def output(self, rejected: Records, flush: bool) -> Output:
        """What the micro-batch gave."""
        return Output(
            self._keys,
            {
                "result": np.concatenate(self._ledger.results),
                "late": np.concatenate(self._ledger.lates),
                "rejected": rejected,
                **self._rule.records(),
            },
            {**self._clock._asdict(), "slack_us": self._rule.slack_us(), **self._rule.progress()},
            active=self._accepted > 0 or (flush and self._clock.is_running),
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


def _keyed(parts: Iterable[Any]) -> list[Records]:
    """Those of some parts of a memory that are records with keys."""
    arrays = [part for part in parts if isinstance(part, np.ndarray)]
    return [each for each in arrays if "key" in (each.dtype.names or ())]


def _moved(memory: Any, codes: Ints) -> Any:
    """A memory with other numbers for its keys."""
    return memory._make(_recoded(part, codes) if _keyed([part]) else part for part in memory)
