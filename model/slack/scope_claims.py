"""What must be true of every state of the protocol, and what must have happened somewhere.

Source: docs/slack.md, section 7, promises 1, 2 and 4.

Rules of this file:

* A claim counts for itself: which windows a tuple has, what is closed and what is right is
  computed here from the tuples that were accepted, not asked of the machine.
* Every claim names the cases without which it would be empty.
"""

from collections.abc import Iterator

from model.checking.explorer import StateClaim, always, no_deadlock, reachable, sometimes
from model.slack.protocol import (
    LATE_TOO_EARLY,
    STREAM_WROTE_AGAIN,
    WENT_BACK,
    Scope,
    State,
)
from model.windows.correction import Window

# -------------------------------------------------------------------------------- what is counted


def _right(scope: Scope, state: State) -> dict[Window, int]:
    """For every window with an accepted tuple the sum of them; see the powers of two."""
    right: dict[Window, int] = {}
    size_us, slide_us = scope.config.size_us, scope.config.slide_us
    for number, event_time_us in state.task.accepted:
        first = (event_time_us - size_us) // slide_us + 1
        for index in range(first, event_time_us // slide_us + 1):
            window = Window(0, index * slide_us, "")
            right[window] = right.get(window, 0) + (1 << number)
    return right


def _wrong(scope: Scope, state: State) -> Iterator[Window]:
    """Closed windows whose current answer is wrong although nothing of them is pending."""
    answers = dict(state.answers)
    owed = {pair.window for pair in state.pending}
    for window, right in _right(scope, state).items():
        is_closed = window.start_us + scope.config.size_us <= state.task.wm_us
        answer = answers.get(window)
        if is_closed and window not in owed and (answer is None or answer.value != right):
            yield window


def _miscounted(scope: Scope, state: State) -> Iterator[Window]:
    """Closed windows for which the stream's answer and the late tuples are not all, each once."""
    counted = {window: int(value) for window, value in state.results}
    for pair in state.late:
        counted[pair.window] = counted.get(pair.window, 0) + (1 << pair.source_id)
    for window, right in _right(scope, state).items():
        is_closed = window.start_us + scope.config.size_us <= state.task.wm_us
        if is_closed and counted.get(window, 0) != right:
            yield window


def _is_over(scope: Scope, state: State) -> bool:
    everything_came = all(left < scope.deliveries for left in state.deliveries_left)
    return everything_came and state.is_flushed and not state.pending and state.plan is None


def _is_exact(scope: Scope, state: State) -> bool:
    answers = {window: answer.value for window, answer in state.answers}
    return answers == _right(scope, state)


def _is_mixed(scope: Scope, state: State) -> bool:
    """A tuple was late for one of its windows and in time for another one."""
    late = [pair.source_id for pair in state.late]
    return any(
        0 < late.count(number) < len(scope.config.windows.indices(event_time_us))
        for number, event_time_us in state.task.accepted
    )


def _crashed_half_way(scope: Scope, state: State) -> bool:
    has_written = any(
        answer.revision and any(pair.window == window for pair in state.pending)
        for window, answer in state.answers
    )
    return state.crashes_left < scope.crashes and state.plan is None and has_written


def _has_known_redelivery(scope: Scope, state: State) -> bool:
    n_accepted, _, _ = state.task.moments
    return sum(scope.deliveries - left for left in state.deliveries_left) > n_accepted


def _is_beside(state: State) -> bool:
    """A pair became late while a correction was under way."""
    return state.plan is not None and not set(state.pending) <= set(state.plan.pairs)


# --------------------------------------------------------------------------------------- claims

LATE = "a tuple is late"
MIXED = "a tuple is late for one window and in time for another"
SEVERAL = "a correction has more than one window"
HALF_WAY = "a correction crashes half way"
BESIDE = "a tuple becomes late beside a correction"
OVER = "everything is over"
AGED = "a correction is due because of age"
SLACK = "the watermark waits"
KNOWN = "a tuple is delivered again and recognised"
FORGOTTEN = "a forgotten tuple is delivered again"
WOUND_UP = "the factor leaves 0 to 1"


def claims_of(scope: Scope) -> tuple[StateClaim[State], ...]:
    """Everything that is claimed of a scope."""
    guards: tuple[str, ...] = (LATE, MIXED, SEVERAL, HALF_WAY, BESIDE, SLACK)
    if scope.deliveries > 1:
        guards += (KNOWN, FORGOTTEN)
    return *_cases_of(scope), *_promises_of(scope, guards), *_bounds_of(scope, guards)


def _winds_up(scope: Scope) -> bool:
    """Whether the factor of its control may leave 0 to 1."""
    return scope.config.control == "pd"


def _cases_of(scope: Scope) -> Iterator[StateClaim[State]]:
    """What has to occur in a scope, so that its promises say something."""
    yield from (
        sometimes(LATE, lambda state: bool(state.late)),
        sometimes(MIXED, lambda state: _is_mixed(scope, state)),
        sometimes(SEVERAL, lambda state: state.plan is not None and len(state.plan.answers) > 1),
        sometimes(HALF_WAY, lambda state: _crashed_half_way(scope, state)),
        sometimes(BESIDE, _is_beside),
        sometimes(OVER, lambda state: _is_over(scope, state)),
        sometimes(SLACK, lambda state: state.task.wm_us < state.task.t_max_us),
        reachable(AGED, lambda state: state.plan is not None and state.plan.reason == "age"),
    )
    if scope.deliveries > 1:
        yield sometimes(KNOWN, lambda state: _has_known_redelivery(scope, state))
        yield sometimes(FORGOTTEN, lambda state: not set(state.pending) <= set(state.late))
    if _winds_up(scope):
        yield sometimes(WOUND_UP, lambda state: not 0 <= state.task.factor.alpha <= 1)


def _promises_of(scope: Scope, guards: tuple[str, ...]) -> tuple[StateClaim[State], ...]:
    """About answers and their corrections."""

    def without(alarm: str) -> StateClaim[State]:
        return always(f"never: {alarm}", lambda state: alarm not in state.alarms, guards=guards)

    return (
        always(
            "wrong answers are pending",
            lambda state: not any(_wrong(scope, state)),
            guards=guards,
            explain=lambda state: _explain_wrong(scope, state),
        ),
        always(
            "each pair once",
            lambda state: not any(_miscounted(scope, state)),
            guards=guards,
            explain=lambda state: _explain_miscounted(scope, state),
        ),
        without(STREAM_WROTE_AGAIN),
        without(LATE_TOO_EARLY),
        without(WENT_BACK),
        always(
            "exact in the end",
            lambda state: not _is_over(scope, state) or _is_exact(scope, state),
            guards=(*guards, OVER),
            explain=lambda state: _explain_end(scope, state),
        ),
        no_deadlock("nothing is left undone", lambda state: _is_over(scope, state), guards=(OVER,)),
    )


def _bounds_of(scope: Scope, guards: tuple[str, ...]) -> Iterator[StateClaim[State]]:
    """About the control."""
    if _winds_up(scope):
        guards += (WOUND_UP,)
    else:
        yield always(
            "alpha within 0 and 1",
            lambda state: 0 <= state.task.factor.alpha <= 1,
            guards=guards,
            explain=lambda state: f"alpha is {state.task.factor.alpha}",
        )
    yield always(
        "slack within 0 and the largest delay",
        lambda state: 0 <= state.task.slack_us <= state.task.max_delay_us,
        guards=guards,
        explain=lambda state: f"K is {state.task.slack_us}, k {state.task.max_delay_us}",
    )


def named(scope: Scope, window: Window) -> str:
    """A window as a person would write it."""
    return f"[{window.start_us}, {window.start_us + scope.config.size_us})"


def tuples_in(total: int) -> str:
    """The tuples that a sum counts, if it counts each at most once."""
    numbers = [f"#{number}" for number in range(total.bit_length()) if total >> number & 1]
    return " and ".join(numbers) or "nothing"


def _explain_wrong(scope: Scope, state: State) -> str:
    window = min(_wrong(scope, state))
    answer = dict(state.answers).get(window)
    right = _right(scope, state)[window]
    return (
        f"The closed window {named(scope, window)} holds {tuples_in(right)}, a sum of {right}; "
        f"its answer is {'missing' if answer is None else f'{answer.value:g}'} and nothing of it "
        "is pending"
    )


def _explain_miscounted(scope: Scope, state: State) -> str:
    window = min(_miscounted(scope, state))
    late = [pair.source_id for pair in state.late if pair.window == window]
    in_time = dict(state.results).get(window)
    held = tuples_in(_right(scope, state)[window])
    return (
        f"The closed window {named(scope, window)} holds {held}; "
        f"the stream counted {'nothing' if in_time is None else f'a sum of {in_time:g}'}, late "
        f"were {', '.join(f'#{number}' for number in late) or 'none'}"
    )


def _explain_end(scope: Scope, state: State) -> str:
    right = _right(scope, state)
    answers = {window: answer.value for window, answer in state.answers}
    wrong = min(w for w in right.keys() | answers.keys() if right.get(w) != answers.get(w))
    return (
        f"The answer of {named(scope, wrong)} is {answers.get(wrong, 'missing')}, right is "
        f"{right.get(wrong, 'none')}"
    )
