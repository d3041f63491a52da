"""The whole protocol as a transition system: every order, every slack, every crash.

Source: docs/slack.md, sections 2, 6 and 7.

Rules of this file:

* It carries; it decides nothing: tasks (``machine``), corrections (``correction``) and their
  rules are the very ones that ``run`` uses.
* More is possible here than in ``run``: a correction may be due after any arrival and goes on
  beside the stream, one small step at a time; where ``any_slack`` is set, K may be any number from
  0 to the largest delay, which covers every controller.
* Values are powers of two, so that a sum tells which tuples it counts, and how often.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from model.slack.assumption import scored
from model.slack.control import Factor
from model.slack.machine import Task, TaskState
from model.slack.rules import Rules
from model.vocabulary import Event, SlackConfig, Step
from model.vocabulary.slack import Late, Result
from model.windows.correction import Answer, History, Pair, Plan, Store, Window, advance, due, plan

# ---------------------------------------------------------------------------------------- state


@dataclass(frozen=True, slots=True)
class Scope:
    """How much is explored: a few tuples of one task and key, each delivered in any order."""

    name: str
    event_times_us: tuple[int, ...]
    config: SlackConfig
    deliveries: int = 1
    """How often each tuple may be delivered; once at least."""
    crashes: int = 1
    early_flushes: int = 0
    """Flushes that may come before the end of the stream."""
    any_slack: bool = True

    @property
    def events(self) -> tuple[Event, ...]:
        """The tuples."""
        return tuple(
            Event(number, number, "", event_time_us, float(1 << number), event_time_us)
            for number, event_time_us in enumerate(self.event_times_us)
        )


class State(NamedTuple):
    """What the whole system looks like at one moment."""

    deliveries_left: tuple[int, ...]
    """Of each tuple."""
    crashes_left: int
    flushes_left: int
    is_flushed: bool = False
    task: TaskState = TaskState()
    results: tuple[tuple[Window, float], ...] = ()
    """What the stream answered, in its own time."""
    late: tuple[Pair, ...] = ()
    """Pairs that were late when their tuple first arrived."""
    answers: tuple[tuple[Window, Answer], ...] = ()
    pending: tuple[Pair, ...] = ()
    plan: Plan | None = None
    corrections: int = 0
    """Finished so far."""
    alarms: tuple[str, ...] = ()
    """What a single state would not show."""


STREAM_WROTE_AGAIN = "the stream wrote a window that it had answered or called late before"
LATE_TOO_EARLY = "a tuple was late for a window that the watermark had not reached"
WENT_BACK = "the watermark went back"

# -------------------------------------------------------------------------------------- actions


class Action(NamedTuple):
    """One thing that may happen."""

    what: str
    number: int = -1
    """Of the tuple that arrives."""
    slack_us: int = -1
    """K after it."""


ARRIVAL, FLUSH, END_OF_BATCH, SMALL_STEP, CRASH = (
    "a tuple arrives",
    "the stream is flushed",
    "a batch ends and a correction is due",
    "the correction goes one small step further",
    "the correction crashes",
)


class Protocol:
    """The actions of one scope under one set of rules."""

    def __init__(self, scope: Scope, rules: Rules) -> None:
        self.scope = scope
        self.rules = rules
        self.events = scope.events
        self.task = Task(scope.config, 0, rules)

    def initial(self) -> State:
        """Nothing has arrived."""
        scope = self.scope
        left = tuple(scope.deliveries for _ in self.events)
        return State(left, scope.crashes, scope.early_flushes)

    def actions(self, state: State) -> Iterator[tuple[Action, State]]:
        """Everything that may happen next, and where it leads."""
        for number, left in enumerate(state.deliveries_left):
            if left:
                yield from self._arrivals(state, number)
        everything_came = all(left < self.scope.deliveries for left in state.deliveries_left)
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
        """The tuple arrives, with every K that a controller may have chosen."""
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
        wm_us = task.wm_us
        steps = task.arrive(event, 0)
        left = list(state.deliveries_left)
        left[number] -= 1
        after = state._replace(deliveries_left=tuple(left), task=task.state())
        if after.task != state.task:
            after = after._replace(is_flushed=False)
        alarms = {WENT_BACK} if task.wm_us < wm_us else set()
        return self._record(after, steps, is_first, alarms)

    def _flush(self, state: State, everything_came: bool) -> State:
        self.task.rules = self.rules
        self.task.restore(state.task)
        steps = self.task.flush(0)
        after = state._replace(
            task=self.task.state(),
            is_flushed=True,
            flushes_left=state.flushes_left - (not everything_came),
        )
        after = self._record(after, steps, True, set())
        return self._without_controller(after) if self.scope.any_slack else after

    def _record(
        self, state: State, steps: Iterable[Step], is_first: bool, alarms: set[str]
    ) -> State:
        """Store what the stream emitted, and raise an alarm where it had no right to."""
        store = Store(state.answers, state.pending)
        results, late = dict(state.results), set(state.late)
        for step in steps:
            store.record(step)
            if isinstance(step, Result):
                window = Window(0, step.start_us, step.key)
                if window in results or any(pair.window == window for pair in late):
                    alarms.add(STREAM_WROTE_AGAIN)
                results[window] = step.value
            elif isinstance(step, Late):
                if step.start_us + self.scope.config.size_us > state.task.wm_us:
                    alarms.add(LATE_TOO_EARLY)
                if is_first:
                    late.add(Pair(*step[:5]))
        return _stored(
            state._replace(
                results=tuple(sorted(results.items())),
                late=tuple(sorted(late)),
                alarms=tuple(sorted(alarms.union(state.alarms))),
            ),
            store,
        )

    def _without_controller(self, state: State) -> State:
        """States that differ only in what a controller remembers are the same."""
        return state._replace(task=state.task._replace(slack_us=0, judged=0, factor=Factor()))

    def _end_of_batch(self, state: State) -> Iterator[tuple[Action, State]]:
        config = self.scope.config
        store = Store(state.answers, state.pending)
        reason = due(config, store, 0, state.task.wm_us, state.is_flushed, self.rules)
        if reason is not None:
            # In what order tuples came is no part of the state, so that correlations mean nothing.
            history = History(config)
            for source_id, _ in state.task.accepted:
                history.add(self.events[source_id])
            made = plan(config, store, history, 0, state.corrections + 1, reason, scored(config))
            yield Action(END_OF_BATCH), state._replace(plan=made)

    def _small_step(self, state: State, under_way: Plan) -> State:
        store = Store(state.answers, state.pending)
        left, _ = advance(under_way, store, self.rules)
        done = state.corrections + (left is None)
        return _stored(state._replace(plan=left, corrections=done), store)


def _with_slack(rules: Rules, slack_us: int) -> Rules:
    return replace(
        rules, slack_us=lambda _config, _alpha, max_delay_us: min(slack_us, max_delay_us)
    )


def _stored(state: State, store: Store) -> State:
    return state._replace(
        answers=tuple(sorted(store.answers.items())), pending=tuple(sorted(store.all_pending()))
    )
