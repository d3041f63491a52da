"""Small scopes of one task, explored exhaustively: state counts, verdicts, shortest paths.

Rules of this file:

* A claim counts for itself: what is right is computed here from the tuples that were accepted, not
  asked of the machine. Every claim names the cases without which it would be empty.
* A path is sentences.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction

from model.checking.explorer import Exploration, Machine, StateClaim, always, no_deadlock, sometimes
from model.checking.explorer import explore as search
from model.vocabulary import WatermarkConfig
from model.watermark.protocol import (
    ARRIVAL,
    LATE_TOO_EARLY,
    LESS_FOR_MORE,
    WENT_BACK,
    WROTE_AGAIN,
    Action,
    Protocol,
    Scope,
    State,
    inversions_of,
    pairs_of,
)
from model.watermark.rules import RULES
from model.watermark.variants import VARIANTS

MAX_STATES = 20_000_000

# --------------------------------------------------------------------------------------- scopes

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

# ------------------------------------------------------------------------------ what is counted


def _right(scope: Scope, state: State) -> dict[int, int]:
    """By the start of a window the sum of its accepted tuples; see the powers of two."""
    right: dict[int, int] = {}
    config = scope.config
    for number, event_time_us in state.task.accepted:
        first = (event_time_us - config.size_us) // config.slide_us + 1
        for index in range(first, event_time_us // config.slide_us + 1):
            start_us = index * config.slide_us
            right[start_us] = right.get(start_us, 0) + (1 << number)
    return right


def _miscounted(scope: Scope, state: State) -> Iterator[int]:
    """Closed windows for which the stream's answer and the late tuples are not all, each once."""
    counted = {start_us: int(value) for start_us, value in state.results}
    for start_us, number in state.late:
        counted[start_us] = counted.get(start_us, 0) + (1 << number)
    for start_us, right in _right(scope, state).items():
        is_closed = start_us + scope.config.size_us <= state.task.wm_us
        if is_closed and counted.get(start_us, 0) != right:
            yield start_us


def _is_over(scope: Scope, state: State) -> bool:
    everything_came = all(left < scope.deliveries for left in state.deliveries_left)
    return everything_came and state.is_flushed and not state.task.open_windows


def _is_mixed(scope: Scope, state: State) -> bool:
    late = [number for _, number in state.late]
    return any(
        0 < late.count(number) < len(scope.config.windows.indices(event_time_us))
        for number, event_time_us in state.task.accepted
    )


def _disorder(state: State) -> Fraction:
    seen = state.seen
    return Fraction(inversions_of(seen), pairs_of(seen)) if seen and pairs_of(seen) else Fraction(1)


def _is_of_reading(scope: Scope, state: State) -> bool:
    factor = 2 if scope.config.reading == "scaled" else 1
    share = min(Fraction(1), factor * _disorder(state))
    wait_us = scope.config.max_wait_us * share.numerator // share.denominator
    return state.seen is None or state.seen.wait_us == wait_us


def _is_near(scope: Scope, state: State) -> bool:
    if state.seen is None or state.was_flushed:
        return True
    return 0 <= state.seen.t_max_us - state.seen.wm_us <= scope.config.max_wait_us


def _is_early(scope: Scope, state: State) -> bool:
    """A window is closed that a watermark M behind would have left open."""
    return not state.was_flushed and any(
        start_us + scope.config.size_us > state.task.t_max_us - scope.config.max_wait_us
        for start_us, _ in state.results
    )


# --------------------------------------------------------------------------------------- claims

LATE = "a tuple is late"
MIXED = "a tuple is late for one window and in time for another"
CALM = "a cluster is in order"
STORM = "a cluster is reversed"
HELD = "the watermark is held where it was"
EARLY = "a window is answered earlier than by a fixed watermark"
OVER = "everything is over"
FORGOTTEN = "a forgotten tuple is delivered again"


def _has_forgotten(scope: Scope, state: State) -> bool:
    return state.task.n_accepted > len(state.task.accepted)


def _last_arrivals(state: State) -> str:
    """What the disorder is of."""
    times = ", ".join(map(str, state.arrived_us))
    return f"the last event times are {times}: their disorder is {_disorder(state)}"


def claims_of(scope: Scope) -> tuple[StateClaim[State], ...]:
    """Everything that is claimed of a scope."""
    return *_cases_of(scope), *_promises_of(scope)


def _cases_of(scope: Scope) -> Iterator[StateClaim[State]]:
    """What has to occur in a scope, so that its promises say something."""
    yield from (
        sometimes(LATE, lambda state: bool(state.late)),
        sometimes(MIXED, lambda state: _is_mixed(scope, state)),
        sometimes(CALM, lambda state: _disorder(state) == 0),
        sometimes(
            STORM, lambda state: len(state.arrived_us) == scope.config.k and _disorder(state) == 1
        ),
        sometimes(
            HELD,
            lambda state: (
                state.seen is not None
                and state.seen.wm_us > state.seen.t_max_us - state.seen.wait_us
            ),
        ),
        sometimes(EARLY, lambda state: _is_early(scope, state)),
        sometimes(OVER, lambda state: _is_over(scope, state)),
    )
    if scope.deliveries > 1:
        yield sometimes(FORGOTTEN, lambda state: _has_forgotten(scope, state))


def _promises_of(scope: Scope) -> tuple[StateClaim[State], ...]:
    guards = (LATE, MIXED, CALM, STORM, HELD, EARLY, *((FORGOTTEN,) * (scope.deliveries > 1)))

    def without(alarm: str) -> StateClaim[State]:
        return always(f"never: {alarm}", lambda state: alarm not in state.alarms, guards=guards)

    return (
        always(
            "pairs out of order are counted",
            lambda state: state.seen is None or state.seen.inv == inversions_of(state.seen),
            guards=guards,
            explain=_last_arrivals,
        ),
        always(
            "the wait is that of the reading",
            lambda state: _is_of_reading(scope, state),
            guards=guards,
            explain=_last_arrivals,
        ),
        always(
            "watermark within M of the largest event time",
            lambda state: _is_near(scope, state),
            guards=guards,
        ),
        always(
            "nothing stays open behind the watermark",
            lambda state: (
                not any(
                    scope.config.windows.end_us(index) <= state.task.wm_us
                    for index, _, _ in state.task.open_windows
                )
            ),
            guards=guards,
        ),
        always(
            "each pair once",
            lambda state: not any(_miscounted(scope, state)),
            guards=guards,
            explain=lambda state: f"window [{min(_miscounted(scope, state))}, ...) is miscounted",
        ),
        without(WROTE_AGAIN),
        without(LATE_TOO_EARLY),
        without(WENT_BACK),
        without(LESS_FOR_MORE),
        no_deadlock("nothing is left undone", lambda state: _is_over(scope, state), guards=(OVER,)),
    )


# ---------------------------------------------------------------------------------- descriptions


def describe_action(scope: Scope, action: Action) -> str:
    """What happens, as a phrase."""
    if action.what != ARRIVAL:
        return action.what
    event_time_us = scope.event_times_us[action.number]
    return f"tuple #{action.number} (event time {event_time_us}) arrives"


def describe_state(scope: Scope, state: State) -> str:
    """What there is, as a phrase."""
    if state.seen is None:
        return "nothing has arrived"
    pairs = f"{state.seen.inv} of {pairs_of(state.seen)} pairs are out of order"
    parts = [f"{pairs}, the wait is {state.seen.wait_us}, the watermark {state.task.wm_us}"]
    size_us = scope.config.size_us
    parts += [f"[{start}, {start + size_us}) = {value:g}" for start, value in state.results]
    parts += [f"#{number} late for [{start}, {start + size_us})" for start, number in state.late]
    return ", ".join(parts)


# ----------------------------------------------------------------------------------- exploration


def machine_of(scope: Scope, variant: str | None = None) -> Machine[State, Action]:
    """The transition system of a scope, by the right rules or those of a variant."""
    protocol = Protocol(scope, RULES if variant is None else VARIANTS[variant].rules)
    return Machine(
        (protocol.initial(),),
        protocol.actions,
        lambda action: describe_action(scope, action),
        lambda state: describe_state(scope, state),
    )


def explore(
    scope: str, variant: str | None = None, max_states: int = MAX_STATES
) -> Exploration[State, Action]:
    """Search a scope; with a variant, until something breaks.

    Raises KeyError for a name that does not exist.
    """
    chosen = SCOPES[scope]
    return search(
        machine_of(chosen, variant),
        claims_of(chosen),
        max_states=max_states,
        stop_at_first_broken=variant is not None,
    )
