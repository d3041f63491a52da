"""One task as a transition system: every order of arrival, redeliveries, batches and flushes.

Source: docs/watermark.md, sections 2, 3 and 7.

Rules of this file:

* It carries; it decides nothing: the task (``machine``) is the very one that ``run`` uses.
* Corrections are left out: they are those of room ``slack``, whose explorer tries them under every
  watermark that there can be.
* Values are powers of two, so that a sum tells which tuples it counts, and how often.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from model.vocabulary import Event, Step, WatermarkConfig
from model.vocabulary.answers import Late, Result
from model.vocabulary.watermark import Clock
from model.watermark.machine import Task, TaskState
from model.watermark.rules import Rules

# ---------------------------------------------------------------------------------------- state


@dataclass(frozen=True, slots=True)
class Scope:
    """How much is explored: a few tuples of one task and key, each delivered in any order."""

    name: str
    event_times_us: tuple[int, ...]
    config: WatermarkConfig
    deliveries: int = 1
    """How often each tuple may be delivered; once at least."""
    early_flushes: int = 0
    """Flushes that may come before the end of the stream."""

    @property
    def events(self) -> tuple[Event, ...]:
        """The tuples."""
        return tuple(
            Event(number, number, "", event_time_us, float(1 << number), event_time_us)
            for number, event_time_us in enumerate(self.event_times_us)
        )


class Seen(NamedTuple):
    """The latest clock, beside the cluster that it is of."""

    cluster_us: tuple[int, ...]
    inv: int
    wait_us: int
    wm_us: int
    t_max_us: int


class State(NamedTuple):
    """What the task looks like at one moment, and what it has said."""

    deliveries_left: tuple[int, ...]
    """Of each tuple."""
    flushes_left: int
    is_flushed: bool = False
    was_flushed: bool = False
    in_batch: bool = False
    """Something has arrived since the last micro-batch ended."""
    task: TaskState = TaskState()
    arrived_us: tuple[int, ...] = ()
    """Event times of the last k accepted arrivals, by the explorer's own count."""
    seen: Seen | None = None
    results: tuple[tuple[int, float], ...] = ()
    """Start of a window, what the stream answered."""
    late: tuple[tuple[int, int], ...] = ()
    """Start of a window, tuple: pairs that were late at the first delivery."""
    alarms: tuple[str, ...] = ()
    """What a single state would not show."""


WROTE_AGAIN = "the stream wrote a window that it had answered or called late before"
LATE_TOO_EARLY = "a tuple was late for a window that the watermark had not reached"
WENT_BACK = "the watermark went back"
LESS_FOR_MORE = "more disorder made the wait shorter"

# -------------------------------------------------------------------------------------- actions


class Action(NamedTuple):
    """One thing that may happen."""

    what: str
    number: int = -1
    """Of the tuple that arrives."""


ARRIVAL, FLUSH, END_OF_BATCH = (
    "a tuple arrives",
    "the stream is flushed",
    "a micro-batch ends",
)


class Protocol:
    """The actions of one scope under one set of rules."""

    def __init__(self, scope: Scope, rules: Rules) -> None:
        self.scope = scope
        self.events = scope.events
        self.task = Task(scope.config, 0, rules)

    def initial(self) -> State:
        """Nothing has arrived."""
        return State(tuple(self.scope.deliveries for _ in self.events), self.scope.early_flushes)

    def actions(self, state: State) -> Iterator[tuple[Action, State]]:
        """Everything that may happen next, and where it leads."""
        for number, left in enumerate(state.deliveries_left):
            if left:
                yield Action(ARRIVAL, number), self._arrive(state, number)
        if state.in_batch:
            yield Action(END_OF_BATCH), self._end_batch(state)
        everything_came = all(left < self.scope.deliveries for left in state.deliveries_left)
        if not state.is_flushed and (everything_came or state.flushes_left):
            yield Action(FLUSH), self._flush(state, everything_came)

    def _arrive(self, state: State, number: int) -> State:
        task, event = self.task, self.events[number]
        task.restore(state.task)
        is_first = event.source_id not in task.accepted
        steps = task.arrive(event, 0)
        left = list(state.deliveries_left)
        left[number] -= 1
        after = state._replace(deliveries_left=tuple(left), task=task.state())
        clock = next((step for step in steps if isinstance(step, Clock)), None)
        if clock is None:
            return after
        arrived_us = (*state.arrived_us, event.event_time_us)[-self.scope.config.k :]
        seen = Seen(arrived_us, clock.inv, clock.wait_us, clock.wm_us, clock.t_max_us)
        after = after._replace(is_flushed=False, in_batch=True, arrived_us=arrived_us, seen=seen)
        alarms = {WENT_BACK} if task.wm_us < state.task.wm_us else set()
        if state.seen is not None and _waits_less_for_more(state.seen, seen):
            alarms.add(LESS_FOR_MORE)
        return self._record(after, steps, is_first, alarms)

    def _end_batch(self, state: State) -> State:
        self.task.restore(state.task)
        self.task.end_batch()
        return state._replace(in_batch=False, task=self.task.state())

    def _flush(self, state: State, everything_came: bool) -> State:
        self.task.restore(state.task)
        steps = self.task.flush(0)
        after = state._replace(
            task=self.task.state(),
            is_flushed=True,
            was_flushed=True,
            flushes_left=state.flushes_left - (not everything_came),
        )
        return self._record(after, steps, True, set())

    def _record(
        self, state: State, steps: Iterable[Step], is_first: bool, alarms: set[str]
    ) -> State:
        """Keep what the stream emitted, and raise an alarm where it had no right to."""
        results, late = dict(state.results), set(state.late)
        for step in steps:
            if isinstance(step, Result):
                if step.start_us in results or any(start == step.start_us for start, _ in late):
                    alarms.add(WROTE_AGAIN)
                results[step.start_us] = step.value
            elif isinstance(step, Late):
                if step.start_us + self.scope.config.size_us > state.task.wm_us:
                    alarms.add(LATE_TOO_EARLY)
                if is_first:
                    late.add((step.start_us, step.source_id))
        return state._replace(
            results=tuple(sorted(results.items())),
            late=tuple(sorted(late)),
            alarms=tuple(sorted(alarms.union(state.alarms))),
        )


def pairs_of(seen: Seen) -> int:
    """How many pairs a cluster has."""
    n = len(seen.cluster_us)
    return n * (n - 1) // 2


def inversions_of(seen: Seen) -> int:
    """Its pairs out of order, one by one."""
    return sum(
        earlier > later
        for n, later in enumerate(seen.cluster_us)
        for earlier in seen.cluster_us[:n]
    )


def _waits_less_for_more(before: Seen, after: Seen) -> bool:
    """Whether one of two clusters has more disorder than the other one and waits less."""
    if not pairs_of(before) or not pairs_of(after):
        return False
    more = inversions_of(after) * pairs_of(before) - inversions_of(before) * pairs_of(after)
    return more * (after.wait_us - before.wait_us) < 0
