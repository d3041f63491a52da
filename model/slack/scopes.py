"""Small scopes of the protocol, explored exhaustively: state counts, verdicts, shortest paths.

Rules of this file:

* ``small`` is for every change, ``large`` for the night; the others look at what ``small``
  leaves out: deliveries after a tuple is forgotten, and controllers that remember, one that stays
  within bounds and one that does not.
* A path is sentences.
"""

from collections.abc import Mapping
from dataclasses import replace

from model.checking.explorer import Exploration, Machine
from model.checking.explorer import explore as search
from model.slack.protocol import ARRIVAL, Action, Protocol, Scope, State
from model.slack.rules import RULES
from model.slack.scope_claims import claims_of, named
from model.slack.variants import VARIANTS
from model.vocabulary import SlackConfig

MAX_STATES = 20_000_000

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
            replace(_CONFIG, control="conformal"),
            any_slack=False,
        ),
        Scope(
            "pd",
            (1, 4, 6, 9),
            replace(_CONFIG, control="pd", lambda_thr=0.5),
            any_slack=False,
        ),
        Scope("large", (1, 4, 6), _CONFIG, deliveries=2, crashes=2, early_flushes=1),
    )
}

# ---------------------------------------------------------------------------------- descriptions


def describe_action(scope: Scope, action: Action) -> str:
    """What happens, as a phrase."""
    if action.what != ARRIVAL:
        return action.what
    event_time_us = scope.event_times_us[action.number]
    arrived = f"tuple #{action.number} (event time {event_time_us}) arrives"
    return f"{arrived}, the slack is then {action.slack_us}"


def describe_state(scope: Scope, state: State) -> str:
    """What there is, as a phrase."""
    if not state.task.accepted:
        return "nothing has arrived"
    parts = [f"the watermark is {state.task.wm_us}"]
    for window, answer in state.answers:
        parts.append(f"{named(scope, window)} = {answer.value:g} (revision {answer.revision})")
    if state.pending:
        owed = (f"#{pair.source_id} to {named(scope, pair.window)}" for pair in state.pending)
        parts.append(f"pending {' and '.join(owed)}")
    if state.plan is not None:
        written, planned = state.plan.written, len(state.plan.answers)
        parts.append(f"a correction has written {written} of {planned}")
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
