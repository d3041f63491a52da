"""Claims on states of which each is a whole workload: what scopes of streams have in common.

Rules of this file:

* A state is judged once, however many claims look at it.
"""

from collections.abc import Callable, Hashable, Mapping
from typing import TypeVar

from model.checking.claims import Judgement, Outcome
from model.checking.explorer import Claim, always, sometimes

S = TypeVar("S", bound=Hashable)


def claims_on(judge: Callable[[S], Judgement], guards: Mapping[str, str]) -> list[Claim[S]]:
    """Guards, then claims: each always, with the guard that ``guards`` names for it."""
    seen: dict[S, Judgement] = {}

    def judged(state: S) -> Judgement:
        if state not in seen:
            seen[state] = judge(state)
        return seen[state]

    return [
        *[sometimes(guard, _occurs(judged, guard)) for guard in dict.fromkeys(guards.values())],
        *[
            always(claim, _keeps(judged, claim), guards=(guard,), explain=_why(judged, claim))
            for claim, guard in guards.items()
        ],
    ]


def with_promise(claims: list[Claim[S]], promise: str) -> list[Claim[S]]:
    """Of the claims only this one, and the guards."""
    return [each for each in claims if not each.is_safety or each.name == promise]


def _occurs(judged: Callable[[S], Judgement], guard: str) -> Callable[[S], bool]:
    return lambda state: judged(state).guards[guard] > 0


def _keeps(judged: Callable[[S], Judgement], claim: str) -> Callable[[S], bool]:
    return lambda state: not _broken(judged(state), claim)


def _why(judged: Callable[[S], Judgement], claim: str) -> Callable[[S], str]:
    return lambda state: _broken(judged(state), claim).removesuffix(".")


def _broken(judgement: Judgement, claim: str) -> str:
    """What is wrong first, if anything is."""
    sentences = [
        verdict.witness[0]
        for verdict in judgement.verdicts
        if verdict.claim == claim and verdict.outcome is Outcome.BROKEN
    ]
    return sentences[0] if sentences else ""
