"""The whole protocol as a transition system: every order, every slack, every crash.

Source: docs/slack.md, sections 2, 6 and 7.

Rules of this file:

* This file decides nothing: tasks (``machine``), corrections (``model/windows/correction.py``) and
  their rules are those that a run uses.
* More is possible here than in a run: a correction may be due after any arrival and goes on beside
  the stream, one small step at a time. With ``any_slack``, K may be any number from 0 to the
  largest delay, which covers every controller, and the waits of room ``watermark`` as well.
* Values are powers of two, so that a sum tells which tuples it counts, and how often.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from model.slack.machine import Task, TaskState
from model.slack.rules import Factor, Rules
from model.vocabulary import Event, SlackConfig, Step
from model.vocabulary.windows import Late, Result
from model.windows.correction import advance, due, plan
from model.windows.machine import SavedStream
from model.windows.state import Answer, History, Pair, Plan, Store, Window

# ---------------------------------------------------------------------------------------- state


@dataclass(frozen=True, slots=True)
class Scope:
    """Bounds of an exploration: a few tuples of one task and key, delivered in any order."""

    name: str
    event_times_us: tuple[int, ...]
    config: SlackConfig
    deliveries: int = 1
    """Most deliveries of each tuple; at least 1."""
    early_flushes: int = 0
    """Number of flushes that may come before the end of the stream."""
    crashes: int = 1
    any_slack: bool = True

    @property
    def events(self) -> tuple[Event, ...]:
        """The tuples of the scope."""
        return tuple(
            Event(number, number, "", event_time_us, float(1 << number), event_time_us)
            for number, event_time_us in enumerate(self.event_times_us)
        )

    def everything_came(self, deliveries_left: Iterable[int]) -> bool:
        """Return whether every tuple was delivered at least once."""
        return all(left < self.deliveries for left in deliveries_left)

    def is_closed(self, window: Window, task: SavedStream) -> bool:
        """Return whether the watermark has reached the end of the window."""
        return window.start_us + self.config.size_us <= task.wm_us


class Emissions(NamedTuple):
    """Results and late pairs that the stream side has emitted so far."""

    results: tuple[tuple[Window, float], ...] = ()
    late: tuple[Pair, ...] = ()
    """Pairs that were late when their tuple first arrived."""
    alarms: tuple[str, ...] = ()
    """Errors that a single state would not show."""


class State(NamedTuple):
    """The whole system at one moment."""

    deliveries_left: tuple[int, ...]
    """Number of deliveries left, by tuple."""
    crashes_left: int
    flushes_left: int
    is_flushed: bool = False
    task: TaskState = TaskState()
    emitted: Emissions = Emissions()
    answers: tuple[tuple[Window, Answer], ...] = ()
    pending: tuple[Pair, ...] = ()
    plan: Plan | None = None
    corrections: int = 0
    """Number of corrections finished so far."""


# ------------------------------------------------------------------------------------- emissions

WROTE_AGAIN = "the stream wrote a window that it had answered or called late before"
LATE_TOO_EARLY = "a tuple was late for a window that the watermark had not reached"
WENT_BACK = "the watermark went back"


def _emit(
    scope: Scope,
    task: SavedStream,
    emitted: Emissions,
    steps: Iterable[Step],
    is_first: bool = True,
    alarms: Iterable[str] = (),
) -> Emissions:
    """Add steps of the stream, and an alarm for each step that it must not take.

    ``task`` is the task after these steps. ``is_first`` tells whether a tuple arrived for the first
    time; other late pairs are not kept.
    """
    results, late = dict(emitted.results), set(emitted.late)
    raised = {*emitted.alarms, *alarms}
    for step in steps:
        if isinstance(step, Result):
            window = Window(0, step.start_us, step.key)
            if window in results or any(pair.window == window for pair in late):
                raised.add(WROTE_AGAIN)
            results[window] = step.value
        elif isinstance(step, Late):
            pair = Pair(*step[:5])
            if not scope.is_closed(pair.window, task):
                raised.add(LATE_TOO_EARLY)
            if is_first:
                late.add(pair)
    return Emissions(tuple(sorted(results.items())), tuple(sorted(late)), tuple(sorted(raised)))


# -------------------------------------------------------------------------------------- actions


class Action(NamedTuple):
    """A possible action."""

    what: str
    number: int = -1
    """Number of the tuple that arrives."""
    slack_us: int = -1
    """K after the arrival."""


ARRIVAL, FLUSH, END_OF_BATCH, SMALL_STEP, CRASH = (
    "a tuple arrives",
    "the stream is flushed",
    "a batch ends and a correction is due",
    "the correction goes one small step further",
    "the correction crashes",
)


class Transitions:
    """The actions of one scope under one set of rules."""

    def __init__(self, scope: Scope, rules: Rules) -> None:
        self.scope = scope
        self.rules = rules
        self.events = scope.events
        self.task = Task(scope.config, 0, rules)

    def initial(self) -> State:
        """Return the state in which nothing has arrived."""
        scope = self.scope
        left = tuple(scope.deliveries for _ in self.events)
        return State(left, scope.crashes, scope.early_flushes)

    def actions(self, state: State) -> Iterator[tuple[Action, State]]:
        """Yield every action that is possible, with the state it leads to."""
        for number, left in enumerate(state.deliveries_left):
            if left:
                yield from self._arrivals(state, number)
        everything_came = self.scope.everything_came(state.deliveries_left)
        if not state.is_flushed and (everything_came or state.flushes_left):
            yield Action(FLUSH), self._flush(state, everything_came)
        if state.plan is None:
            yield from self._end_of_batch(state)
        else:
            yield Action(SMALL_STEP), self._small_step(state, state.plan)
            if state.crashes_left:
                crashed = state._replace(plan=None, crashes_left=state.crashes_left - 1)
                yield Action(CRASH), crashed

    def _arrivals(self, state: State, number: int) -> Iterator[tuple[Action, State]]:
        """Yield the arrival of a tuple, once for every K that a controller may have chosen."""
        if not self.scope.any_slack:
            after = self._arrive(state, number, self.rules)
            yield Action(ARRIVAL, number, after.task.slack_us), after
            return
        slack_us = 0
        while True:
            after = self._arrive(state, number, _with_slack(self.rules, slack_us))
            yield Action(ARRIVAL, number, slack_us), self._without_controller(after)
            if slack_us >= after.task.max_delay_us or after.task == state.task:
                return
            slack_us += 1

    def _arrive(self, state: State, number: int, rules: Rules) -> State:
        task, event = self.task, self.events[number]
        task.rules = rules
        task.restore(state.task)
        is_first = event.source_id not in task.accepted
        store = Store(state.answers, state.pending)
        steps = task.arrive(event, 0)
        for step in steps:
            store.record(step)
        left = list(state.deliveries_left)
        left[number] -= 1
        saved = task.state()
        alarms = {WENT_BACK} if saved.stream.wm_us < state.task.stream.wm_us else ()
        after = state._replace(
            deliveries_left=tuple(left),
            is_flushed=state.is_flushed and saved == state.task,
            task=saved,
            emitted=_emit(self.scope, saved.stream, state.emitted, steps, is_first, alarms),
        )
        return _with_store(after, store)

    def _flush(self, state: State, everything_came: bool) -> State:
        self.task.rules = self.rules
        self.task.restore(state.task)
        store = Store(state.answers, state.pending)
        steps = self.task.flush(0)
        for step in steps:
            store.record(step)
        saved = self.task.state()
        after = state._replace(
            task=saved,
            is_flushed=True,
            flushes_left=state.flushes_left - (not everything_came),
            emitted=_emit(self.scope, saved.stream, state.emitted, steps),
        )
        after = _with_store(after, store)
        return self._without_controller(after) if self.scope.any_slack else after

    def _without_controller(self, state: State) -> State:
        """Return the state without the memory of a controller, so that fewer states differ."""
        return state._replace(task=state.task._replace(slack_us=0, judged=0, factor=Factor()))

    def _end_of_batch(self, state: State) -> Iterator[tuple[Action, State]]:
        config = self.scope.config
        store = Store(state.answers, state.pending)
        reason = due(config, store, 0, state.task.stream.wm_us, state.is_flushed, self.rules)
        if reason is not None:
            history = History(config)
            for source_id, _ in state.task.stream.accepted:
                history.add(self.events[source_id])
            made = plan(config, store, history, 0, state.corrections + 1, reason)
            yield Action(END_OF_BATCH), state._replace(plan=made)

    def _small_step(self, state: State, under_way: Plan) -> State:
        store = Store(state.answers, state.pending)
        left, _ = advance(under_way, store, self.rules)
        done = state.corrections + (left is None)
        return _with_store(state._replace(plan=left, corrections=done), store)


def _with_slack(rules: Rules, slack_us: int) -> Rules:
    return replace(
        rules, slack_us=lambda _config, _alpha, max_delay_us: min(slack_us, max_delay_us)
    )


def _with_store(state: State, store: Store) -> State:
    return state._replace(
        answers=tuple(sorted(store.answers.items())), pending=tuple(sorted(store.all_pending()))
    )
