"""One task of a windowed room in time: what it is given when, and what is seen of it.

Rules of this file:

* The model's machines decide everything; here is only when they are called.
* A task sees its tuples in the order of the workload. The end of a batch is a mark behind them.
* A correction is due, planned and carried out on the state of the task at its mark, as in the
  model.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Generic, NamedTuple, TypeVar, cast

import numpy as np

from model.vocabulary import Event, Step, Workload
from model.vocabulary.answers import Final, Late, Result
from model.vocabulary.trace import StepT
from model.windows.correction import History, Plan, Scored, Store, advance, due, plan
from model.windows.passage import Passing
from model.windows.pipeline import AnyTask
from model.windows.query import Query
from sim.columns import columns_of
from sim.disorder import IntArray
from sim.distributions import FloatArray
from sim.windows.line import Line, line_of


class State(NamedTuple):
    """A task's machine as it was at one moment, before anything happened then."""

    is_streaming: bool
    """Whether it has accepted something and has not been flushed."""
    wait_us: int
    wm_us: int
    share: float


TaskT = TypeVar("TaskT", bound=AnyTask)


class Seen(NamedTuple, Generic[StepT]):
    """Steps of one kind, in order of time."""

    at_us: FloatArray
    """When each was taken."""
    rows: IntArray
    """The number of the accepted tuple that caused it or, at the end of a batch, came last."""
    steps: Sequence[StepT]


NOTHING: Seen[Step] = Seen(np.empty(0), np.empty(0, dtype=np.int64), ())


@dataclass(frozen=True, slots=True)
class Rule(Generic[TaskT]):
    """A room: its query, its tasks, and what is to be seen of them."""

    config: Query
    task: Callable[[int], TaskT]
    """The task of that number."""
    ended: Callable[[TaskT, int, bool], Iterable[Step]]
    """What it says of its clock after a batch in which it accepted something, or a flush."""
    scored: Scored | None
    """What corrections record beside revisions; without it nothing is corrected."""
    quick: Callable[[TaskT, Sequence[Event]], Passing]
    """How to give a task its arrivals."""
    wait_us: Callable[[TaskT], int]
    """How long it waits."""
    share: Callable[[TaskT], float]
    """Of the longest wait: what the wait follows from."""


class TimedTask(Generic[TaskT]):
    """A task of the model on a worker."""

    __slots__ = (
        "_accepted_before",
        "_at_ends",
        "_is_flushed",
        "_kept",
        "_passing",
        "_recorded",
        "_rule",
        "accepted",
        "clocks",
        "events",
        "history",
        "line",
        "planned",
        "rows",
        "seen",
        "served_us",
        "states",
        "store",
        "task",
        "waits_us",
    )

    def __init__(self, rule: Rule[TaskT], number: int) -> None:
        self.task = rule.task(number)
        self.history = History(rule.config)
        """What was accepted until the last correction."""
        self.store = Store((), ())
        self.events: Sequence[Event] = ()
        """What arrives."""
        self.accepted: Sequence[Event] = ()
        self.rows: IntArray = np.empty(0, dtype=np.int64)
        """Which of the workload's arrivals those are."""
        self.served_us: FloatArray = np.empty(0)
        """When each accepted tuple was served."""
        self.waits_us: Sequence[int] = ()
        """How long it waited after each accepted tuple."""
        self.seen: dict[type[Step], Seen[Step]] = {}
        """Steps by their kind, all but those of the clock, whose times nobody asks for."""
        self.clocks: list[Step] = []
        self.planned: list[tuple[float, Plan]] = []
        """Corrections, with the time at which they were due."""
        self.states: list[State] = []
        """At each moment that was asked for, and at the end."""
        self.line: Line = line_of((), (), 1.0)
        self._passing: Passing = rule.quick(self.task, ())
        self._rule = rule
        self._at_ends: list[tuple[float, int, Step]] = []
        """Steps at the ends of batches, as :class:`Seen` has them."""
        self._accepted_before = 0  # this batch
        self._is_flushed = False
        self._kept = 0  # of the events, in the history
        self._recorded = 0  # of the steps that the events caused

    def run(
        self,
        workload: Workload,
        rows: IntArray,
        ends: IntArray,
        line: Line,
        sample_at_us: Sequence[float],
    ) -> None:
        """Go through everything, each item of the line when its service ends.

        Items are the tuples of a batch and then its mark, batch by batch, and that of the flush.
        ``rows`` are those of the workload's arrivals that come here, ``ends`` the numbers of them
        before each mark.
        """
        events = [workload.arrivals[row] for row in rows.tolist()]
        self.events, self.line = events, line
        marks = ends + np.arange(len(ends))
        served_us, marks_us = np.delete(line.ended_us, marks), line.ended_us[marks].tolist()
        passing = self._passing = self._rule.quick(self.task, events)
        # How many items are over before each moment, the next one last.
        looks = [inf, *np.searchsorted(line.ended_us, sample_at_us)[::-1].tolist()]
        for batch, (end, now_us) in enumerate(zip(ends.tolist(), marks_us, strict=True)):
            while looks[-1] <= end + batch:
                passing.until(looks.pop() - batch, batch)
                self.states.append(self._state())
            passing.until(end, batch)
            is_flush = workload.flush and batch == len(ends) - 1
            self._end_batch(batch, end, now_us, is_flush=is_flush)
        self.states += [self._state()] * len(looks)
        left_out, self.waits_us = passing.passage.left_out, passing.passage.waits_us
        self.accepted = self._accepted(0, len(events))
        self.rows = np.delete(rows, left_out)
        self.served_us = np.delete(served_us, left_out)
        self.clocks += passing.passage.clocks
        self.seen = self._all_seen(served_us)

    def of(self, kind: type[StepT]) -> Seen[StepT]:
        """What was seen of one kind."""
        return cast("Seen[StepT]", self.seen.get(kind, NOTHING))

    def finals(self) -> list[Final]:
        """The answer of every window that has one."""
        return self.store.final(self.of(Result).steps)

    def _accepted(self, begin: int, end: int) -> Sequence[Event]:
        """Those that were accepted of these events."""
        events, left_out = self.events[begin:end], self._passing.passage.left_out
        if not left_out:
            return events
        gone = set(left_out)
        return [event for position, event in enumerate(events, begin) if position not in gone]

    def _state(self) -> State:
        rule, task = self._rule, self.task
        is_streaming = task.n_accepted > 0 and not self._is_flushed
        return State(is_streaming, rule.wait_us(task), task.wm_us, rule.share(task))

    def _all_seen(self, served_us: FloatArray) -> dict[type[Step], Seen[Step]]:
        """By kind, what events caused and what ends of batches caused, served at these times."""
        passage = self._passing.passage
        positions = np.array([position for position, _ in passage.steps], dtype=np.int64)
        rows = positions - np.searchsorted(passage.left_out, positions, side="right")
        ends_us, end_rows = columns_of([each[:2] for each in self._at_ends], np.float64, np.int64)
        at_us = np.concatenate((served_us[positions], ends_us))
        rows = np.concatenate((rows, end_rows))
        steps = [step for _, step in passage.steps] + [step for _, _, step in self._at_ends]
        places: dict[type[Step], list[int]] = defaultdict(list)
        for place, step in enumerate(steps):
            places[type(step)].append(place)
        return {
            kind: Seen(at_us[of_it], rows[of_it], [steps[place] for place in of_it])
            for kind, of_it in places.items()
        }

    def _record(self, steps: Iterable[Step], now_us: float) -> None:
        """Steps at the end of a batch."""
        row = self.task.n_accepted - 1
        self._at_ends += [(now_us, row, step) for step in steps]

    def _record_late(self) -> None:
        """Pairs that have come late since this was done last are pending now."""
        steps = self._passing.passage.steps
        if len(steps) > self._recorded:
            for _, step in steps[self._recorded :]:
                if isinstance(step, Late):
                    self.store.record(step)
            self._recorded = len(steps)

    def _end_batch(self, batch: int, end: int, now_us: float, *, is_flush: bool) -> None:
        task, rule = self.task, self._rule
        self._record_late()
        if is_flush:
            self._is_flushed = True
            self._record(task.flush(batch), now_us)
        if task.n_accepted > (0 if is_flush else self._accepted_before):
            self.clocks += rule.ended(task, batch, is_flush)
        self._accepted_before = task.n_accepted
        if rule.scored is None:
            return
        reason = due(rule.config, self.store, task.number, task.wm_us, is_flush)
        if reason is not None:
            self.history.extend(self._accepted(self._kept, end))
            self._kept = end
            self._correct(batch, reason, rule.scored, now_us)

    def _correct(self, batch: int, reason: str, scored: Scored, now_us: float) -> None:
        under_way: Plan | None
        under_way = plan(
            self._rule.config, self.store, self.history, self.task.number, batch, reason, scored
        )
        self.planned.append((now_us, under_way))
        while under_way is not None:
            under_way, steps = advance(under_way, self.store)
            self._record(steps, now_us)
