"""Shortest behaviours of a chain with a mistake in it, and the same tuples by the right rules.

Rules of this file:

1. The explorer goes through every behaviour, the shortest first: nothing shorter breaks a promise.
2. The right rules are put to the test in every behaviour of the tuples of the counterexample, and
   in every behaviour of the scope.
"""

from collections.abc import Sequence
from dataclasses import replace

from model.checking.claims import Outcome, Verdict, combine
from model.checking.explorer import Exploration, StateClaim, sometimes
from model.checking.explorer import explore as search
from model.join.chart import chart
from model.join.exploration import explore
from model.join.protocol import Scope, State
from model.join.scope_claims import claims_of, results_mask
from model.join.scopes import SCOPES, describe_state, machine_of
from model.join.state import Action
from model.join.variants import CHANGED, VARIANTS
from model.vocabulary.join import R, S
from properties.errors import counted
from properties.pages.errata import Findings

ALL_OUT = "every result came out"


def shortest(variant: str) -> Findings:
    """The shortest behaviour in which a variant breaks its promise, drawn."""
    bug = VARIANTS[variant]
    found = explore(bug.home, variant)
    path = found.paths.get(bug.promise)
    literal = _verdict(found, bug.promise)
    if path is None:
        return Findings((), literal, literal, literal)
    last = path.last.chain
    r_us, s_us = bug.scope.r_us[: last.admitted_r], bug.scope.s_us[: last.admitted_s]
    entered = replace(bug.scope, r_us=r_us, s_us=s_us)
    told = (
        _told(entered),
        *chart(bug.scope, path),
        f"In the end {describe_state(bug.scope, path.last)}.",
        f"Of the behaviours with {_tuples(bug.scope)} none of fewer than"
        f" {counted(len(path.steps), 'action')} breaks it.",
    )
    # The path is drawn; what is left of the witness says what is wrong in its last state.
    wrong = " ".join(literal.witness[len(path.steps) + 1 :])
    sentence = f"After {counted(len(path.steps), 'action')}: {wrong}"
    literal = Verdict(bug.promise, literal.outcome, sentence)
    home = SCOPES[bug.home]
    same = replace(entered, **{name: getattr(home, name) for name in CHANGED})
    return Findings(
        told,
        literal,
        _judged(same, bug.promise, _with_one_guard(same)),
        _judged(home, bug.promise, claims_of(home)),
    )


def _verdict(found: Exploration[State, Action], promise: str) -> Verdict:
    return next(verdict for verdict in found.verdicts if verdict.claim == promise)


def _with_one_guard(scope: Scope) -> list[StateClaim[State]]:
    """The claims for few tuples, with which not all can happen that otherwise must."""
    results = results_mask(scope)
    guard: StateClaim[State] = sometimes(ALL_OUT, lambda state: 0 < results == state.once)
    claims = [claim for claim in claims_of(scope) if claim.is_safety]
    return [guard, *[replace(claim, guards=(ALL_OUT,)) for claim in claims]]


def _judged(scope: Scope, promise: str, claims: Sequence[StateClaim[State]]) -> Verdict:
    """The promise with all others, in every behaviour of a scope."""
    found = search(machine_of(scope), claims)
    outcome = combine(found.verdicts)
    if outcome is not Outcome.HOLDS:
        wrong = next(each for each in found.verdicts if each.outcome is outcome)
        return replace(wrong, claim=promise)
    sentence = (
        f"Every behaviour with {_tuples(scope)}, in blocks of up to"
        f" {counted(scope.block_size, 'tuple')}: all promises hold in"
        f" {counted(found.unique_states, 'state')}."
    )
    return Verdict(promise, outcome, sentence)


# ------------------------------------------------------------------------------------- in words


def _told(scope: Scope) -> str:
    numbers = "blocks carry numbers" if scope.rules.numbered else "blocks carry no numbers"
    when = "are sent at any time" if scope.free else "are sent where the loads ask for it"
    wm = "no watermarks" if scope.lateness_us is None else f"a lateness of {scope.lateness_us} us"
    return (
        f"A chain of {counted(scope.workers, 'worker')} with {_tuples(scope)}, W ="
        f" {scope.window_us} us, {wm}; {numbers}, have up to {counted(scope.block_size, 'tuple')}"
        f" and {when}, {scope.credit} without acknowledgement at most."
    )


def _tuples(scope: Scope) -> str:
    parts = (
        f"{counted(len(times_us), 'tuple')} of {stream} at {', '.join(map(str, times_us))} us"
        for stream, times_us in ((R, scope.r_us), (S, scope.s_us))
    )
    return " and ".join(parts)
