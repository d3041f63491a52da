"""Errata of room ``join``: where the published chain, read literally, breaks its promises.

Source: S2J, a chain of join workers with the block protocol MP-2PF.

Rules of this file:

1. The explorer goes through every behaviour, the shortest first: nothing shorter breaks a promise.
2. The right rules are tested in every behaviour of the tuples of the counterexample, and in every
   behaviour of the scope.
3. The rule that removes workers is tried under a constant load, so the right answer is obvious:
   after the wait a chain with too little to do has fewer workers, any other has as many as before.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

from model.checking.claims import Outcome, Verdict, combine
from model.checking.explorer import StateClaim, sometimes
from model.checking.explorer import explore as search
from model.join.control import Watch, is_idle, watch
from model.join.scopes import SCOPES, Scope, State, machine_of
from model.join.state_claims import claims_of, results_mask
from model.join.variants import VARIANTS, changes_of, explore
from model.vocabulary.join import R, S
from model.vocabulary.join_load import Limits
from straggler.errors import counted
from straggler.pages.errata import Erratum, Findings, Kind, decide, erratum, promise_among

S2J = "S2J, a chain of join workers with the block protocol MP-2PF"
ONCE = "Every pair of tuples that match comes out, and comes out once."
ALL_OUT = "every result came out"

# ------------------------------------------------------------------------------ the protocol


def shortest(variant: str) -> Findings:
    """Return the shortest behaviour in which a variant breaks its promise."""
    bug = VARIANTS[variant]
    found = explore(bug.home, variant)
    path = found.paths.get(bug.promise)
    literal = promise_among(found.verdicts, bug.promise)
    if path is None:
        return Findings((), literal, literal, literal)
    last = path.last.chain
    r_us, s_us = bug.scope.r_us[: last.admitted_r], bug.scope.s_us[: last.admitted_s]
    entered = replace(bug.scope, r_us=r_us, s_us=s_us)
    sentences = (
        _describe_scope(entered),
        *literal.witness[: len(path.steps) + 1],
        f"Of the behaviours with {_tuples(bug.scope)} none of fewer than"
        f" {counted(len(path.steps), 'action')} breaks it.",
    )
    # The rest of the witness says what is wrong in the last state.
    wrong = " ".join(literal.witness[len(path.steps) + 1 :])
    sentence = f"After {counted(len(path.steps), 'action')}: {wrong}"
    literal = Verdict(bug.promise, literal.outcome, sentence)
    home = SCOPES[bug.home]
    same = replace(entered, **changes_of(home))
    return Findings(
        sentences,
        literal,
        _judge(same, bug.promise, _with_one_guard(same)),
        _judge(home, bug.promise, claims_of(home)),
    )


def _with_one_guard(scope: Scope) -> list[StateClaim[State]]:
    """Return the claims with a single guard: few tuples do not reach the usual guards."""
    results = results_mask(scope)
    guard: StateClaim[State] = sometimes(ALL_OUT, lambda state: 0 < results == state.once)
    claims = [claim for claim in claims_of(scope) if claim.is_safety]
    return [guard, *[replace(claim, guards=(ALL_OUT,)) for claim in claims]]


def _judge(scope: Scope, promise: str, claims: Sequence[StateClaim[State]]) -> Verdict:
    """Judge the promise, with all others, in every behaviour of a scope."""
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


def _describe_scope(scope: Scope) -> str:
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


# ---------------------------------------------------------------- the rule that removes workers

LIMITS = Limits(0.25, 0.75, 0.75)
WORKERS = 16
STEADY = tuple(
    (workers, hundredths / 100) for workers in range(1, WORKERS + 1) for hundredths in range(1, 76)
)
"""Workers and their utilisation at the start, up to tau2 in hundredths; smaller chains first."""
STEP_S, HOUR_S = 10, 3_600
CASE_STUDY = ((120, 3.08), (HOUR_S, 1.5))
"""Load of a chain of 4 workers: until which second, and how many workers it would keep busy."""
PROMISE = "workers go when there is too little to do, and only then"

Idle = Callable[[float, Limits], bool]
"""The condition under which workers are removed, by utilisation and limits."""


def is_idle_as_written(utilisation: float, limits: Limits) -> bool:
    """Return whether workers are removed, by the condition as it is written."""
    return utilisation > limits.tau0


def counts(workers: int, load: Iterable[tuple[int, float]], idle: Idle) -> list[int]:
    """Return the successive numbers of workers under a load written like ``CASE_STUDY``."""
    seen, found, now_s = Watch(), [workers], 0
    for until_s, busy in load:
        while now_s < until_s:
            seen, wanted = watch(seen, now_s * 1_000_000, found[-1], busy / found[-1], LIMITS, idle)
            if wanted != found[-1]:
                found.append(wanted)
            now_s += STEP_S
    return found


def in_an_hour(workers: int, utilisation: float, idle: Idle) -> int:
    """Return the number of workers after an hour of the load given by the first utilisation."""
    return counts(workers, ((HOUR_S, workers * utilisation),), idle)[-1]


def _is_right(workers: int, utilisation: float, idle: Idle) -> bool:
    after = in_an_hour(workers, utilisation, idle)
    if workers > 1 and utilisation < LIMITS.tau0:
        return after < workers
    return after == workers


def scaling() -> Findings:
    """Return the smallest chains that the rule as printed treats wrongly, and the case study."""
    wrong = [case for case in STEADY if not _is_right(*case, is_idle_as_written)]
    keeps = next(case for case in wrong if case[1] < LIMITS.tau0)
    loses = next(case for case in wrong if in_an_hour(*case, is_idle_as_written) < case[0])
    sentences = (
        f"tau0 = {LIMITS.tau0}, tau* = {LIMITS.aim}, tau1 = tau2 = {LIMITS.tau2}.",
        *(_describe_chain(*case) for case in (keeps, loses)),
        f"{len(wrong):,} of {len(STEADY):,} chains of 1 to {WORKERS} workers go wrong.",
        "The case study: 4 workers, a load that would keep 3.08 of them busy, after two minutes"
        " 1.5.",
        f"As written: {_arrows(is_idle_as_written)} workers. Corrected: {_arrows(is_idle)}"
        " workers.",
    )
    literal = Verdict(PROMISE, Outcome.BROKEN, _describe_chain(*keeps))
    return Findings(sentences, literal, _judge_right((keeps, loses)), _judge_right(STEADY))


def _judge_right(cases: Iterable[tuple[int, float]]) -> Verdict:
    """Judge the corrected rule in every case, and in the case study."""
    tried = list(cases)
    fewer = sum(in_an_hour(*case, is_idle) < case[0] for case in tried)
    good = all(_is_right(*case, is_idle) for case in tried)
    good = good and counts(4, CASE_STUDY, is_idle) == [4, 8, 4]
    sentence = (
        f"Of {len(tried):,} chains {fewer:,} lose workers and {len(tried) - fewer:,} keep them,"
        " each as its utilisation asks; the case study goes from 4 to 8 to 4."
    )
    return decide(PROMISE, good and fewer > 0, sentence)


def _describe_chain(workers: int, utilisation: float) -> str:
    after = in_an_hour(workers, utilisation, is_idle_as_written)
    return (
        f"A chain of {counted(workers, 'worker')} with a utilisation of {utilisation:.2f} has"
        f" {counted(after, 'worker')} after an hour of that load."
    )


def _arrows(idle: Idle) -> str:
    return " -> ".join(map(str, counts(4, CASE_STUDY, idle)))


# ----------------------------------------------------------------------------------- the table


def _protocol_erratum(kind: Kind, name: str, variant: str, promise: str, source: str) -> Erratum:
    bug = VARIANTS[variant]
    return erratum(bug, kind, name, promise, f"{S2J}: {source}", partial(shortest, variant))


ERRATA: tuple[Erratum, ...] = (
    _protocol_erratum(
        Kind.OPEN,
        "both-copies",
        "both_visible",
        ONCE,
        "2.3.1: a block that was sent is kept until it is acknowledged, so that no pair is missed;"
        " which copies take part in joins is left to the model that it cites",
    ),
    _protocol_erratum(
        Kind.PRINTED,
        "quiet-chain",
        "balance_alone",
        "What has arrived is joined in the end.",
        "2.3.1: the condition under which a worker forwards, a difference between loads",
    ),
    _protocol_erratum(
        Kind.OPEN,
        "local-timer",
        "local_timer",
        ONCE,
        "tuples expire at the worker where they are; by whose progress is left open",
    ),
    Erratum(
        Kind.PRINTED,
        "scale-in",
        "A chain with too little to do loses workers, and one that is busy keeps them.",
        f"{S2J}: 2.2.3 removes workers if tau > tau0 for a relatively long time; 3.4 removes them"
        " if tau < tau0 for five minutes. The two contradict each other",
        "Workers are removed when the utilisation has been above tau0 (2.2.3) for five minutes"
        " (3.4).",
        "They are removed when it has been below tau0 for five minutes (3.4).",
        scaling,
    ),
)
