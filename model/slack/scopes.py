"""Small scopes of the protocol, explored exhaustively: claims, state counts, shortest paths.

Source: docs/slack.md, section 7, promises 1, 2 and 4.

Rules of this file:

* Scope ``small`` is explored at every change, ``large`` every night. The others test what ``small``
  leaves out: deliveries after a tuple is forgotten, and a controller (``conformal``).
* A claim computes windows, closed windows and right answers without the machine. It names the cases
  that must occur, because without them it would say nothing.
* A path is written in sentences.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from model.checking.explorer import (
    Exploration,
    Machine,
    StateClaim,
    always,
    no_deadlock,
    sometimes,
)
from model.checking.explorer import explore as search
from model.slack.protocol import (
    ARRIVAL,
    LATE_TOO_EARLY,
    WENT_BACK,
    WROTE_AGAIN,
    Action,
    Scope,
    State,
    Transitions,
)
from model.slack.rules import RULES, Rules
from model.vocabulary import SlackConfig
from model.windows.state import Window

# --------------------------------------------------------------------------------------- scopes

_CONFIG = SlackConfig(
    size_us=4, slide_us=2, control="max", feedback_us=2, gamma_us=3, max_age_us=3, lambda_thr=1.0
)

SCOPES: Mapping[str, Scope] = {
    scope.name: scope
    for scope in (
        Scope("small", (1, 4, 6, 9), _CONFIG, early_flushes=1),
        Scope("redelivery", (1, 4, 6), _CONFIG, deliveries=2),
        Scope(
            "conformal",
            (1, 4, 6, 9),
            replace(_CONFIG, control="conformal", start_slack_us=0),
            any_slack=False,
        ),
        Scope("large", (1, 4, 6), _CONFIG, deliveries=2, crashes=2, early_flushes=1),
    )
}

# --------------------------------------------------------------------------------------- guards

LATE = "a tuple is late"
MIXED = "a tuple is late for one window and in time for another"
OVER = "everything is over"
FORGOTTEN = "a forgotten tuple is delivered again"
SEVERAL = "a correction has more than one window"
HALF_WAY = "a correction crashes half way"
BESIDE = "a tuple becomes late beside a correction"
AGED = "a correction is due because of age"
SLACK = "the watermark waits"
KNOWN = "a tuple is delivered again and recognised"


def _is_over(scope: Scope, state: State) -> bool:
    is_idle = state.is_flushed and not state.pending and state.plan is None
    return is_idle and scope.everything_came(state.deliveries_left)


def _is_mixed(scope: Scope, state: State) -> bool:
    """Return whether a tuple was late for one of its windows and in time for another."""
    late = [pair.source_id for pair in state.emitted.late]
    return any(
        0 < late.count(number) < len(scope.config.windows.indices(event_time_us))
        for number, event_time_us in state.task.stream.accepted
    )


def _crashed_half_way(scope: Scope, state: State) -> bool:
    has_written = any(
        answer.revision and any(pair.window == window for pair in state.pending)
        for window, answer in state.answers
    )
    return state.crashes_left < scope.crashes and state.plan is None and has_written


def _has_known_redelivery(scope: Scope, state: State) -> bool:
    n_accepted = state.task.stream.n_accepted
    return sum(scope.deliveries - left for left in state.deliveries_left) > n_accepted


def _is_beside(state: State) -> bool:
    return state.plan is not None and not set(state.pending) <= set(state.plan.pairs)


def _guards_of(scope: Scope) -> Iterator[StateClaim[State]]:
    """Yield the cases that must occur, because the scope would test nothing without them."""
    yield from (
        sometimes(LATE, lambda state: bool(state.emitted.late)),
        sometimes(MIXED, lambda state: _is_mixed(scope, state)),
        sometimes(SEVERAL, lambda state: state.plan is not None and len(state.plan.answers) > 1),
        sometimes(HALF_WAY, lambda state: _crashed_half_way(scope, state)),
        sometimes(BESIDE, _is_beside),
        sometimes(OVER, lambda state: _is_over(scope, state)),
        sometimes(SLACK, lambda state: state.task.stream.wm_us < state.task.stream.t_max_us),
        sometimes(AGED, lambda state: state.plan is not None and state.plan.reason == "age"),
    )
    if scope.deliveries > 1:
        yield sometimes(KNOWN, lambda state: _has_known_redelivery(scope, state))
        yield sometimes(FORGOTTEN, lambda state: not set(state.pending) <= set(state.emitted.late))


# --------------------------------------------------------------------------------------- claims


def claims_of(scope: Scope) -> tuple[StateClaim[State], ...]:
    """Return the guards and claims of a scope."""
    guards: tuple[str, ...] = (LATE, MIXED, SEVERAL, HALF_WAY, BESIDE, SLACK)
    if scope.deliveries > 1:
        guards += (KNOWN, FORGOTTEN)
    return (
        *_guards_of(scope),
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
        *(_never(alarm, guards) for alarm in (WROTE_AGAIN, LATE_TOO_EARLY, WENT_BACK)),
        always(
            "exact in the end",
            lambda state: (
                not _is_over(scope, state) or _answers(state) == _right_sums(scope, state)
            ),
            guards=(*guards, OVER),
            explain=lambda state: _explain_end(scope, state),
        ),
        no_deadlock("nothing is left undone", lambda state: _is_over(scope, state), guards=(OVER,)),
    )


def _never(alarm: str, guards: tuple[str, ...]) -> StateClaim[State]:
    """Claim that no state has raised an alarm."""
    return always(f"never: {alarm}", lambda state: alarm not in state.emitted.alarms, guards=guards)


def _right_sums(scope: Scope, state: State) -> dict[Window, int]:
    """Return the sum of the accepted tuples of every window that has one."""
    right: dict[Window, int] = {}
    size_us, slide_us = scope.config.size_us, scope.config.slide_us
    for number, event_time_us in state.task.stream.accepted:
        first = (event_time_us - size_us) // slide_us + 1
        for index in range(first, event_time_us // slide_us + 1):
            window = Window(0, index * slide_us, "")
            right[window] = right.get(window, 0) + (1 << number)
    return right


def _miscounted(scope: Scope, state: State) -> Iterator[Window]:
    """Yield closed windows whose first answer and late pairs are not all tuples, each once."""
    counted = {window: int(value) for window, value in state.emitted.results}
    for pair in state.emitted.late:
        counted[pair.window] = counted.get(pair.window, 0) + (1 << pair.source_id)
    for window, right in _right_sums(scope, state).items():
        if scope.is_closed(window, state.task.stream) and counted.get(window, 0) != right:
            yield window


def _answers(state: State) -> dict[Window, float]:
    return {window: answer.value for window, answer in state.answers}


def _wrong(scope: Scope, state: State) -> Iterator[Window]:
    """Yield closed windows with a wrong current answer and without a pending pair."""
    answers = _answers(state)
    owed = {pair.window for pair in state.pending}
    for window, right in _right_sums(scope, state).items():
        is_settled = scope.is_closed(window, state.task.stream) and window not in owed
        if is_settled and answers.get(window) != right:
            yield window


# ---------------------------------------------------------------------------------- explanations


def _name_of(scope: Scope, window: Window) -> str:
    return f"[{window.start_us}, {window.start_us + scope.config.size_us})"


def _tuples_in(total: int) -> str:
    """Return the tuples that a sum counts, if it counts each at most once."""
    numbers = [f"#{number}" for number in range(total.bit_length()) if total >> number & 1]
    return " and ".join(numbers) or "nothing"


def _explain_wrong(scope: Scope, state: State) -> str:
    window = min(_wrong(scope, state))
    answer = _answers(state).get(window)
    right = _right_sums(scope, state)[window]
    return (
        f"The closed window {_name_of(scope, window)} holds {_tuples_in(right)}, a sum of {right}; "
        f"its answer is {'missing' if answer is None else f'{answer:g}'} and nothing of it "
        "is pending"
    )


def _explain_miscounted(scope: Scope, state: State) -> str:
    emitted = state.emitted
    window = min(_miscounted(scope, state))
    late = [pair.source_id for pair in emitted.late if pair.window == window]
    in_time = dict(emitted.results).get(window)
    held = _tuples_in(_right_sums(scope, state)[window])
    return (
        f"The closed window {_name_of(scope, window)} holds {held}; "
        f"the stream counted {'nothing' if in_time is None else f'a sum of {in_time:g}'}, late "
        f"were {', '.join(f'#{number}' for number in late) or 'none'}"
    )


def _explain_end(scope: Scope, state: State) -> str:
    right, answers = _right_sums(scope, state), _answers(state)
    wrong = min(w for w in right.keys() | answers.keys() if right.get(w) != answers.get(w))
    return (
        f"The answer of {_name_of(scope, wrong)} is {answers.get(wrong, 'missing')}, right is "
        f"{right.get(wrong, 'none')}"
    )


# ---------------------------------------------------------------------------------- descriptions


def _describe_action(scope: Scope, action: Action) -> str:
    if action.what != ARRIVAL:
        return action.what
    arrival = f"tuple #{action.number} (event time {scope.event_times_us[action.number]}) arrives"
    return f"{arrival}, the slack is then {action.slack_us}"


def _describe_state(scope: Scope, state: State) -> str:
    if not state.task.stream.accepted:
        return "nothing has arrived"
    parts = [f"the watermark is {state.task.stream.wm_us}"]
    for window, answer in state.answers:
        parts.append(f"{_name_of(scope, window)} = {answer.value:g} (revision {answer.revision})")
    if state.pending:
        owed = (f"#{pair.source_id} to {_name_of(scope, pair.window)}" for pair in state.pending)
        parts.append(f"pending {' and '.join(owed)}")
    if state.plan is not None:
        written, planned = state.plan.written, len(state.plan.answers)
        parts.append(f"a correction has written {written} of {planned}")
    return ", ".join(parts)


# ----------------------------------------------------------------------------------- exploration


def explore(scope: str, rules: Rules = RULES) -> Exploration[State, Action]:
    """Search a scope, by the right rules unless others are given.

    Raise ``KeyError`` for an unknown name.
    """
    chosen = SCOPES[scope]
    transitions = Transitions(chosen, rules)
    machine = Machine(
        (transitions.initial(),),
        transitions.actions,
        lambda action: _describe_action(chosen, action),
        lambda state: _describe_state(chosen, state),
    )
    return search(machine, claims_of(chosen))
