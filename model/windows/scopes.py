"""Small scopes of windowed rooms: the common part of their transition systems and claims.

Rules of this file:

* Values are powers of two, so that a sum tells which tuples it counts, and how often.
* Claims are independent of the machine: windows of a tuple, closed windows and right answers are
  computed here from the accepted tuples.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

from model.checking.explorer import Exploration, Machine, StateClaim, always
from model.checking.explorer import explore as search
from model.vocabulary import Event, Step
from model.vocabulary.windows import Late, Result, WindowQuery
from model.windows.machine import SavedStream
from model.windows.state import Pair, Window

QueryT_co = TypeVar("QueryT_co", bound=WindowQuery, covariant=True)
S = TypeVar("S", bound=Hashable)
A = TypeVar("A")
A_co = TypeVar("A_co", covariant=True)
ScopeT = TypeVar("ScopeT")
RulesT = TypeVar("RulesT")

# ---------------------------------------------------------------------------------------- state


@dataclass(frozen=True)
class WindowScope(Generic[QueryT_co]):
    """Bounds of an exploration: a few tuples of one task and key, delivered in any order."""

    name: str
    event_times_us: tuple[int, ...]
    config: QueryT_co
    deliveries: int = 1
    """Most deliveries of each tuple; at least 1."""
    early_flushes: int = 0
    """Number of flushes that may come before the end of the stream."""

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

    def name_of(self, window: Window) -> str:
        """Return a readable name of a window."""
        return f"[{window.start_us}, {window.start_us + self.config.size_us})"

    def describe_arrival(self, number: int) -> str:
        """Return a phrase for the arrival of a tuple."""
        return f"tuple #{number} (event time {self.event_times_us[number]}) arrives"


class Emissions(NamedTuple):
    """Results and late pairs that the stream side has emitted so far."""

    results: tuple[tuple[Window, float], ...] = ()
    late: tuple[Pair, ...] = ()
    """Pairs that were late when their tuple first arrived."""
    alarms: tuple[str, ...] = ()
    """Errors that a single state would not show."""


WROTE_AGAIN = "the stream wrote a window that it had answered or called late before"
LATE_TOO_EARLY = "a tuple was late for a window that the watermark had not reached"
WENT_BACK = "the watermark went back"


def emit(
    scope: WindowScope[WindowQuery],
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


# --------------------------------------------------------------------------------------- claims

LATE = "a tuple is late"
MIXED = "a tuple is late for one window and in time for another"
OVER = "everything is over"
FORGOTTEN = "a forgotten tuple is delivered again"


def right_sums(scope: WindowScope[WindowQuery], task: SavedStream) -> dict[Window, int]:
    """Return the sum of the accepted tuples of every window that has one."""
    right: dict[Window, int] = {}
    size_us, slide_us = scope.config.size_us, scope.config.slide_us
    for number, event_time_us in task.accepted:
        first = (event_time_us - size_us) // slide_us + 1
        for index in range(first, event_time_us // slide_us + 1):
            window = Window(0, index * slide_us, "")
            right[window] = right.get(window, 0) + (1 << number)
    return right


def miscounted_windows(
    scope: WindowScope[WindowQuery], task: SavedStream, emitted: Emissions
) -> Iterator[Window]:
    """Yield closed windows whose first answer and late pairs are not all tuples, each once."""
    counted = {window: int(value) for window, value in emitted.results}
    for pair in emitted.late:
        counted[pair.window] = counted.get(pair.window, 0) + (1 << pair.source_id)
    for window, right in right_sums(scope, task).items():
        if scope.is_closed(window, task) and counted.get(window, 0) != right:
            yield window


def is_mixed(scope: WindowScope[WindowQuery], task: SavedStream, emitted: Emissions) -> bool:
    """Return whether a tuple was late for one of its windows and in time for another."""
    late = [pair.source_id for pair in emitted.late]
    return any(
        0 < late.count(number) < len(scope.config.windows.indices(event_time_us))
        for number, event_time_us in task.accepted
    )


def never(
    alarm: str, emitted_of: Callable[[S], Emissions], guards: tuple[str, ...]
) -> StateClaim[S]:
    """Claim that no state has raised an alarm."""
    return always(
        f"never: {alarm}", lambda state: alarm not in emitted_of(state).alarms, guards=guards
    )


# ----------------------------------------------------------------------------------- exploration


class TransitionSystem(Protocol[S, A_co]):
    """The actions of one scope under one set of rules."""

    def initial(self) -> S:
        """Return the state in which nothing has arrived."""

    def actions(self, state: S) -> Iterator[tuple[A_co, S]]:
        """Yield every action that is possible, with the state it leads to."""


@dataclass(frozen=True, slots=True)
class ScopeExplorer(Generic[ScopeT, S, A, RulesT]):
    """The scopes of a room, and how each is explored."""

    scopes: Mapping[str, ScopeT]
    rules: RulesT
    system_of: Callable[[ScopeT, RulesT], TransitionSystem[S, A]]
    claims_of: Callable[[ScopeT], Sequence[StateClaim[S]]]
    describe_action: Callable[[ScopeT, A], str]
    describe_state: Callable[[ScopeT, S], str]

    def explore(self, scope: str, rules: RulesT | None = None) -> Exploration[S, A]:
        """Search a scope, by the right rules unless others are given.

        Raise ``KeyError`` for an unknown name.
        """
        chosen = self.scopes[scope]
        system = self.system_of(chosen, self.rules if rules is None else rules)
        machine = Machine(
            (system.initial(),),
            system.actions,
            lambda action: self.describe_action(chosen, action),
            lambda state: self.describe_state(chosen, state),
        )
        return search(machine, self.claims_of(chosen))
