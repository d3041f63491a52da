"""Processes one micro-batch of one task (docs/slack.md, section 2), without Spark.

There is no loop over tuples. The effect of a tuple depends on the watermark, which depends on how
long the room's rule waits. A *stretch* is a run of arrivals whose path the rule knows, or guesses
and checks afterwards. The work on a stretch is on arrays.

Rules of this file:

* A window closes at the first step of the watermark *path* that reaches its end. A path is the
  watermark after each arrival of a stretch; it never decreases.
* A tuple joins those of its windows that are open when it arrives, and is late for the others: it
  is recorded in the table ``late``, from which ``correction`` takes it; without corrections it is
  a side output.
* Windows without tuples have no record here.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from spark_impl.runtime.arrays import Bools, Ints, NumbersT, Records
from spark_impl.runtime.histories import require_later
from spark_impl.windows import panes as pane_math
from spark_impl.windows.arrival_files import has_windows, owners
from spark_impl.windows.arrivals import Plan, first_mistake, plan, reject, remember
from spark_impl.windows.records import (
    INSERTED,
    LATE,
    NO_CLOCK,
    PANE,
    REJECTED,
    RESULT,
    Memory,
    Output,
    Rows,
    Taken,
    TaskState,
    fill_records,
    join_records,
)
from spark_impl.windows.room import ConfigT, Path, Stretch, WindowRoom, WindowSettings

ROWS_AT_ONCE = 32_768
"""Arrivals planned together: bounds memory and the cost of a wrong plan. Changes no result."""


def process(
    room: WindowRoom[ConfigT],
    config: ConfigT,
    state: TaskState,
    keys: tuple[str, ...],
    rows: Rows,
    flush: bool,
    task: int,
) -> tuple[TaskState, Output]:
    """Process one micro-batch of a task; return its state afterwards and its output.

    ``rows`` are in arrival order, ``rows.key`` indexes ``keys``. With operators upstream they are
    the arrivals of all tasks. Raise ``ValueError`` if an arrival number does not exceed those of
    earlier micro-batches.
    """
    batch = _MicroBatch(room, config, state, keys, task)
    rejected = batch.take(rows, keys)
    if flush:
        batch.flush()
    return batch.state(), batch.output(rejected, flush)


class _MicroBatch:
    """The work on one micro-batch; lives as long as :func:`process` runs."""

    def __init__(
        self,
        room: WindowRoom[ConfigT],
        config: ConfigT,
        state: TaskState,
        keys: tuple[str, ...],
        task: int,
    ) -> None:
        self._settings = room.settings(config)
        self._clock = state.clock
        self._identities = state.identities
        self._taken = Taken(opened=-_tuples(state.panes))
        # keys of state and batch numbered alike, in code point order
        self._task = task
        self._keys = tuple(sorted({*state.keys, *keys})) if self._settings.keyed else ("",)
        moved = _positions(state.keys, self._keys)
        n_keys = len(self._keys)
        self._open = OpenWindows(self._settings, _recoded(state.panes, moved), n_keys)
        self._rule = room.rule(config, task, n_keys, _recoded_memory(state.memory, moved))

    # -- arrivals ------------------------------------------------------------------------------

    def take(self, rows: Rows, keys: tuple[str, ...]) -> Records:
        """Process all arrivals of the micro-batch; return the rejected ones of the task."""
        self._check_order(rows)
        reason = reject(rows)
        bad = reason > 0
        told = bad & self._mine(rows, keys) if self._settings.upstreams else bad
        rejected = self._rejected(rows.take(told), reason[told], keys)
        rows = self._received(rows.take(~bad) if bad.any() else rows, keys)
        start = 0
        while start < len(rows.seq):
            part = rows.part(start, start + ROWS_AT_ONCE)
            start += self._follow(plan(self._settings, self._clock, self._identities, part))
        return rejected

    def _rejected(self, rows: Rows, reason: Ints, keys: tuple[str, ...]) -> Records:
        """Return the records of rejected arrivals."""
        known = has_windows(rows)
        return fill_records(
            REJECTED,
            len(reason),
            seq=rows.seq,
            source_id=rows.source_id,
            reason=reason,
            key=_positions(keys, self._keys)[rows.key] if self._settings.keyed else 0,
            event_time_us=np.where(known, rows.event_time_us, NO_CLOCK),
            value=rows.value,
        )

    def _mine(self, rows: Rows, keys: tuple[str, ...]) -> Bools:
        """Return which of the arrivals of all tasks belong to this one."""
        mine: Bools = owners(keys, self._settings.tasks)[rows.key] == self._task
        return mine

    def _received(self, rows: Rows, keys: tuple[str, ...]) -> Rows:
        """Return the rows of the task; their keys are positions among all keys that it knows."""
        if self._settings.keyed:
            key = _positions(keys, self._keys)[rows.key]
        else:
            key = np.zeros(len(rows.seq), np.int64)
        received = rows._replace(key=key)
        if not self._settings.upstreams:
            return received
        operator = owners(keys, self._settings.upstreams)[rows.key]
        return self._rule.receive(received, operator, self._mine(rows, keys))

    def _check_order(self, rows: Rows) -> None:
        seq = rows.seq[rows.flaw == 0]
        if not len(seq):
            return
        require_later(int(seq[0]), self._clock.seq)
        self._clock = self._clock._replace(seq=int(seq[-1]))

    def _follow(self, chosen: Plan) -> int:
        """Follow a plan until it ends or proves wrong; return the number of arrivals done."""
        self._rule.look(chosen.rows, chosen.t_max)
        start = 0
        while start < chosen.size:
            path = self._rule.path(start, self._clock.wm_us)
            wrong = first_mistake(chosen, path.wm, start)
            if wrong is not None:
                path = path.head(int(chosen.dropped_after[wrong]) - start)
            done = self._attempt(chosen, path, start)
            start += done
            if wrong is not None and done == len(path.wm):
                self._remember(chosen, start, wrong)
                return int(chosen.dropped[wrong])
        self._remember(chosen, start, len(chosen.dropped))
        return start + len(chosen.dropped)

    def _remember(self, chosen: Plan, upto: int, dropped: int) -> None:
        """Count arrivals that are done, and remember the identities of the accepted ones."""
        wm_us, before = self._clock.wm_us, self._taken
        own = chosen.rows.key[:upto] != INSERTED
        has_window = chosen.first[:upto] <= chosen.last[:upto]
        self._taken = before._replace(
            accepted=before.accepted + int(np.count_nonzero(own & has_window)),
            unasked=before.unasked + int(np.count_nonzero(own & ~has_window)),
            redelivered=before.redelivered + dropped,
        )
        self._identities = remember(self._settings, self._identities, chosen, upto, wm_us)

    def _attempt(self, chosen: Plan, path: Path, start: int) -> int:
        """Process the correct part of a guessed path; return the number of arrivals done."""
        mark = self._open.mark()
        right = self._rule.settle(self._stretch(chosen, path, start))
        if right is not None:
            self._open.undo_to(mark)
            path = path.head(right)
            self._rule.settle(self._stretch(chosen, path, start))
        stop = start + len(path.wm)
        t_max = int(chosen.t_max[stop - 1])
        self._clock = self._clock._replace(t_max_us=t_max, wm_us=int(path.wm[-1]))
        return len(path.wm)

    def _stretch(self, chosen: Plan, path: Path, start: int) -> Stretch:
        """Route the arrivals of a stretch, then close windows."""
        stop = start + len(path.wm)
        rows = chosen.rows.part(start, stop)
        first, last = chosen.first[start:stop], chosen.last[start:stop]
        still_open = self._open.first_open(path.wm)
        lo = np.maximum(first, still_open)
        joins = lo <= last
        if joins.all():
            self._open.join(rows, lo)
        else:
            self._open.join(rows.take(joins), lo[joins])
        until = np.minimum(last, still_open - 1)
        late = np.flatnonzero(until >= first)
        until = until[late]
        if len(late):
            self._open.note_late(rows.take(late), first[late], until)
        closed = self._open.close(path)
        return Stretch(rows, first, late, until, self._clock.wm_us, path, closed)

    def flush(self) -> None:
        """Close every window that has received something."""
        clock, spec = self._clock, self._settings.windows
        if not clock.is_running:
            return
        wm = max(clock.wm_us, spec.last_end_us(clock.t_max_us) + self._settings.feedback)
        path = Path(np.array([self._rule.slack_us()]), np.array([wm]))
        none = np.empty(0, np.int64)
        no_rows = Rows(none, none, none, none, np.empty(0), none, none)
        closed = self._open.close(path)
        self._rule.settle(Stretch(no_rows, none, none, none, clock.wm_us, path, closed))
        self._clock = clock._replace(wm_us=wm)

    # -- the end -------------------------------------------------------------------------------

    def state(self) -> TaskState:
        """Return the task's state, without keys to which nothing refers."""
        panes, memory, keys = self._open.panes(), self._rule.memory(), self._keys
        if self._settings.keyed:
            used = np.unique(np.concatenate([each["key"] for each in _keyed((panes, *memory))]))
            keys = tuple(self._keys[code] for code in used.tolist())
            moved = np.searchsorted(used, np.arange(len(self._keys)))
            panes, memory = _recoded(panes, moved), _recoded_memory(memory, moved)
        identities = self._identities[self._identities["limit"] > self._clock.wm_us]
        return TaskState(memory, self._clock, keys, panes, identities)

    def output(self, rejected: Records, flush: bool) -> Output:
        """Return the output of the micro-batch."""
        late, took = join_records(LATE, self._open.lates), self._taken
        ends = late["event_time_us"] // self._settings.slide_us - late["first"] + 1
        taken = took._replace(
            opened=took.opened + _tuples(self._open.panes()),
            late=int(np.count_nonzero(late["windows"] == ends)),
        )
        return Output(
            self._keys,
            {
                "result": join_records(RESULT, self._open.results),
                "late": late,
                "rejected": rejected,
                **self._rule.records(),
            },
            {**self._clock._asdict(), "slack_us": self._rule.slack_us(), **self._rule.progress()},
            active=taken.accepted + taken.unasked > 0 or (flush and self._clock.is_running),
            taken=taken,
        )


def _tuples(panes: Records) -> int:
    """Return the number of tuples in some panes."""
    return int(panes["n"].sum())


def _positions(keys: tuple[str, ...], among: tuple[str, ...]) -> Ints:
    number = {key: code for code, key in enumerate(among)}
    return np.array([number[key] for key in keys], np.int64)


def _recoded(table: Records, codes: Ints) -> Records:
    """Return the table with other numbers for its keys; ``codes[old]`` is the new number."""
    out = table.copy()
    if len(out):
        out["key"] = codes[table["key"]]
    return out


def _keyed(parts: Iterable[object]) -> list[Records]:
    """Return those parts of a memory that are records with keys."""
    arrays = [part for part in parts if isinstance(part, np.ndarray)]
    return [each for each in arrays if "key" in (each.dtype.names or ())]


def _recoded_memory(memory: Memory, codes: Ints) -> Memory:
    return memory._make(_recoded(part, codes) if _keyed([part]) else part for part in memory)


class Mark(NamedTuple):
    """A snapshot of open windows; arrays are replaced, never changed."""

    panes: Records
    results: int
    lates: int


class OpenWindows:
    """The open windows of one task, as panes, and the results and late pairs so far."""

    def __init__(self, settings: WindowSettings, panes: Records, n_keys: int) -> None:
        self._settings = settings
        self._spec = settings.windows
        self._panes = panes
        self._n_keys = n_keys
        self.results: list[Records] = []
        self.lates: list[Records] = []

    def first_open(self, wm: NumbersT) -> NumbersT:
        """Return the first window that each watermark leaves open."""
        return (wm - self._spec.size_us) // self._spec.slide_us + 1

    def join(self, rows: Rows, lo: Ints) -> None:
        """Add tuples to their windows from ``lo`` on, at least one window each."""
        added = pane_math.fill(
            self._settings, rows.key, rows.event_time_us, rows.value, lo, self._n_keys
        )
        self._panes = join_records(PANE, (self._panes, added))

    def note_late(self, rows: Rows, first: Ints, until: Ints) -> None:
        """Record tuples as late for their windows ``first .. until``, at least one window each."""
        self.lates.append(
            fill_records(
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
        """Close the windows that a path has reached; return their results."""
        first_open = self.first_open(int(path.wm[-1]))
        if not len(self._panes) or self._panes["lo"].min() >= first_open:
            return np.empty(0, RESULT)
        closed = pane_math.answers(self._settings, self._panes, first_open, self._n_keys)
        when = np.searchsorted(path.wm, closed.j * self._spec.slide_us + self._spec.size_us)
        results = fill_records(
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
        self._panes = self._panes[pane_math.last_window(self._settings, self._panes) >= first_open]
        self._panes["lo"] = np.maximum(self._panes["lo"], first_open)
        return results

    def mark(self) -> Mark:
        """Return a snapshot for :meth:`undo_to`."""
        return Mark(self._panes, len(self.results), len(self.lates))

    def undo_to(self, mark: Mark) -> None:
        """Undo all changes since ``mark``."""
        self._panes = mark.panes
        del self.results[mark.results :]
        del self.lates[mark.lates :]

    def panes(self) -> Records:
        """Return the panes of open windows."""
        return pane_math.merge(self._settings, self._panes, self._n_keys)
