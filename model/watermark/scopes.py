"""Small scopes of one task, explored exhaustively: every order, redelivery, batch end and flush.

Source: docs/watermark.md, sections 2, 3 and 7.

Rules of this file:

* The transition system decides nothing: the task (``machine``) is the one that a run uses.
* Pairs out of order and waits are compared with Spark. Here, more disorder never makes a wait
  shorter.
* Corrections are left out: room ``slack`` has the same ones, and its scopes try them under every
  possible watermark.
* A claim computes windows and answers without the machine (``model/windows/scopes.py``). It names
  the cases that must occur, because without them it would say nothing.
* A path is written in sentences.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple, TypeAlias

from model.checking.explorer import StateClaim, always, no_deadlock, sometimes
from model.vocabulary import WatermarkConfig
from model.vocabulary.watermark import Clock
from model.watermark.machine import Task, TaskState
from model.watermark.rules import RULES, Rules
from model.windows.scopes import (
    FORGOTTEN,
    LATE,
    LATE_TOO_EARLY,
    MIXED,
    OVER,
    WENT_BACK,
    WROTE_AGAIN,
    Emissions,
    ScopeExplorer,
    WindowScope,
    emit,
    is_mixed,
    miscounted_windows,
    never,
)

# --------------------------------------------------------------------------------------- scopes

Scope: TypeAlias = WindowScope[WatermarkConfig]

_CONFIG = WatermarkConfig(4, 2, 6, k=3, feedback_us=0)

SCOPES: Mapping[str, Scope] = {
    scope.name: scope
    for scope in (
        Scope("small", (1, 3, 4, 4, 7, 9), _CONFIG),
        Scope("scaled", (1, 3, 4, 4, 9), replace(_CONFIG, reading="scaled")),
        Scope("redelivery", (1, 4, 6), _CONFIG, deliveries=2, early_flushes=1),
        Scope("large", (1, 2, 3, 4, 4, 7, 9), replace(_CONFIG, k=4), early_flushes=1),
    )
}

# ---------------------------------------------------------------------------------------- state


class ClusterClock(NamedTuple):
    """The clock after the latest accepted arrival, and the cluster it follows from."""

    cluster_us: tuple[int, ...]
    """Event times of the last k accepted arrivals, by the explorer's own count."""
    inv: int
    wait_us: int
    wm_us: int
    t_max_us: int

    @property
    def pairs(self) -> int:
        """Number of pairs in the cluster."""
        n = len(self.cluster_us)
        return n * (n - 1) // 2

    @property
    def inversions(self) -> int:
        """Number of pairs out of order, counted one by one."""
        return sum(
            earlier > later
            for n, later in enumerate(self.cluster_us)
            for earlier in self.cluster_us[:n]
        )


class State(NamedTuple):
    """The task at one moment, and what it has emitted."""

    deliveries_left: tuple[int, ...]
    """Number of deliveries left, by tuple."""
    flushes_left: int
    is_flushed: bool = False
    was_flushed: bool = False
    in_batch: bool = False
    """True if something has arrived since the last micro-batch ended."""
    task: TaskState = TaskState()
    clock: ClusterClock | None = None
    emitted: Emissions = Emissions()


LESS_FOR_MORE = "more disorder made the wait shorter"

# -------------------------------------------------------------------------------------- actions


class Action(NamedTuple):
    """A step of the transition system."""

    what: str
    """Arrival of a tuple, flush, or end of a micro-batch."""
    number: int = -1
    """Number of the tuple that arrives."""


ARRIVAL, FLUSH, END_OF_BATCH = (
    "a tuple arrives",
    "the stream is flushed",
    "a micro-batch ends",
)


class Transitions:
    """The actions of one scope under one set of rules."""

    def __init__(self, scope: Scope, rules: Rules) -> None:
        self.scope = scope
        self.events = scope.events
        self.task = Task(scope.config, 0, rules)

    def initial(self) -> State:
        """Return the state in which nothing has arrived."""
        return State(tuple(self.scope.deliveries for _ in self.events), self.scope.early_flushes)

    def actions(self, state: State) -> Iterator[tuple[Action, State]]:
        """Yield every action that is possible, with the state it leads to."""
        for number, left in enumerate(state.deliveries_left):
            if left:
                yield Action(ARRIVAL, number), self._arrive(state, number)
        if state.in_batch:
            yield Action(END_OF_BATCH), self._end_batch(state)
        everything_came = self.scope.everything_came(state.deliveries_left)
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
        recorded = next((step for step in steps if isinstance(step, Clock)), None)
        if recorded is None:
            return after
        arrived_us = () if state.clock is None else state.clock.cluster_us
        clock = ClusterClock(
            (*arrived_us, event.event_time_us)[-self.scope.config.k :],
            recorded.inv,
            recorded.wait_us,
            recorded.wm_us,
            recorded.t_max_us,
        )
        alarms = {WENT_BACK} if task.wm_us < state.task.stream.wm_us else set()
        if state.clock is not None and _waits_less_for_more(state.clock, clock):
            alarms.add(LESS_FOR_MORE)
        emitted = emit(self.scope, after.task.stream, state.emitted, steps, is_first, alarms)
        return after._replace(is_flushed=False, in_batch=True, clock=clock, emitted=emitted)

    def _end_batch(self, state: State) -> State:
        self.task.restore(state.task)
        self.task.end_batch(0, False)
        return state._replace(in_batch=False, task=self.task.state())

    def _flush(self, state: State, everything_came: bool) -> State:
        self.task.restore(state.task)
        steps = self.task.flush(0)
        saved = self.task.state()
        return state._replace(
            task=saved,
            is_flushed=True,
            was_flushed=True,
            flushes_left=state.flushes_left - (not everything_came),
            emitted=emit(self.scope, saved.stream, state.emitted, steps),
        )


def _waits_less_for_more(before: ClusterClock, after: ClusterClock) -> bool:
    """Return whether one of two clusters has more disorder than the other and waits less."""
    if not before.pairs or not after.pairs:
        return False
    more = after.inversions * before.pairs - before.inversions * after.pairs
    return more * (after.wait_us - before.wait_us) < 0


# --------------------------------------------------------------------------------------- guards

CALM = "a cluster is in order"
STORM = "a cluster is reversed"
HELD = "the watermark is held where it was"
EARLY = "a window is answered earlier than by a fixed watermark"


def _disorder(state: State) -> Fraction:
    clock = state.clock
    return Fraction(clock.inversions, clock.pairs) if clock and clock.pairs else Fraction(1)


def _is_storm(scope: Scope, state: State) -> bool:
    is_full = state.clock is not None and len(state.clock.cluster_us) == scope.config.k
    return is_full and _disorder(state) == 1


def _is_held(state: State) -> bool:
    clock = state.clock
    return clock is not None and clock.wm_us > clock.t_max_us - clock.wait_us


def _is_early(scope: Scope, state: State) -> bool:
    """Return whether a window is closed that a fixed watermark would have left open."""
    fixed_wm_us = state.task.stream.t_max_us - scope.config.max_wait_us
    return not state.was_flushed and any(
        window.start_us + scope.config.size_us > fixed_wm_us for window, _ in state.emitted.results
    )


def _is_over(scope: Scope, state: State) -> bool:
    is_done = state.is_flushed and not state.task.stream.open_windows
    return is_done and scope.everything_came(state.deliveries_left)


def _has_forgotten(state: State) -> bool:
    return state.task.stream.n_accepted > len(state.task.stream.accepted)


def _guards_of(scope: Scope) -> Iterator[StateClaim[State]]:
    """Yield the cases that must occur, because the scope would test nothing without them."""
    yield from (
        sometimes(LATE, lambda state: bool(state.emitted.late)),
        sometimes(MIXED, lambda state: is_mixed(scope, state.task.stream, state.emitted)),
        sometimes(CALM, lambda state: _disorder(state) == 0),
        sometimes(STORM, lambda state: _is_storm(scope, state)),
        sometimes(HELD, _is_held),
        sometimes(EARLY, lambda state: _is_early(scope, state)),
        sometimes(OVER, lambda state: _is_over(scope, state)),
    )
    if scope.deliveries > 1:
        yield sometimes(FORGOTTEN, _has_forgotten)


# --------------------------------------------------------------------------------------- claims


def claims_of(scope: Scope) -> tuple[StateClaim[State], ...]:
    """Return the guards and claims of a scope."""
    return *_guards_of(scope), *_promises_of(scope)


def _promises_of(scope: Scope) -> tuple[StateClaim[State], ...]:
    guards = (LATE, MIXED, CALM, STORM, HELD, EARLY, *((FORGOTTEN,) * (scope.deliveries > 1)))
    return (
        always(
            "each pair once",
            lambda state: not any(miscounted_windows(scope, state.task.stream, state.emitted)),
            guards=guards,
            explain=lambda state: _explain_miscounted(scope, state),
        ),
        *(
            never(alarm, lambda state: state.emitted, guards)
            for alarm in (WROTE_AGAIN, LATE_TOO_EARLY, WENT_BACK, LESS_FOR_MORE)
        ),
        no_deadlock("nothing is left undone", lambda state: _is_over(scope, state), guards=(OVER,)),
    )


def _explain_miscounted(scope: Scope, state: State) -> str:
    window = min(miscounted_windows(scope, state.task.stream, state.emitted))
    return f"window [{window.start_us}, ...) is miscounted"


# ---------------------------------------------------------------------------------- descriptions


def describe_action(scope: Scope, action: Action) -> str:
    """Return a phrase for an action."""
    return action.what if action.what != ARRIVAL else scope.describe_arrival(action.number)


def describe_state(scope: Scope, state: State) -> str:
    """Return a phrase for a state."""
    clock, emitted = state.clock, state.emitted
    if clock is None:
        return "nothing has arrived"
    disorder = f"{clock.inv} of {clock.pairs} pairs are out of order"
    parts = [f"{disorder}, the wait is {clock.wait_us}, the watermark {state.task.stream.wm_us}"]
    parts += [f"{scope.name_of(window)} = {value:g}" for window, value in emitted.results]
    parts += [f"#{pair.source_id} late for {scope.name_of(pair.window)}" for pair in emitted.late]
    return ", ".join(parts)


# ----------------------------------------------------------------------------------- exploration


EXPLORER = ScopeExplorer(SCOPES, RULES, Transitions, claims_of, describe_action, describe_state)
explore = EXPLORER.explore
