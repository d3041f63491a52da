"""Validation of recorded behaviours against a model.

Source: trace validation, as in Cirstea, Kuppe, Loillier, Merz, "Validating Traces of Distributed
Programs Against TLA+ Specifications".

Rules of this file:

* The model may be nondeterministic: all states that it may be in are followed at once.
* The verdict names the first recorded step that no such state allows. Later steps prove nothing,
  because the model has no state left.
"""

from collections.abc import Callable, Iterable
from typing import TypeVar

from model.checking.claims import Outcome, Verdict

S = TypeVar("S")
R = TypeVar("R")


def validate(
    initial: Iterable[S],
    follow: Callable[[S, R], Iterable[S]],
    recorded: Iterable[R],
    *,
    claim: str = "recorded steps are allowed",
    describe: Callable[[R], str] = str,
    explain: Callable[[S, R], Iterable[str]] = lambda state, step: (),
) -> Verdict:
    """Follow a recording through the model, and judge whether the model allows every step.

    ``follow`` returns the states in which the model may be after a recorded step, none if it does
    not allow the step; ``explain`` says what it would have allowed. States are compared with
    ``==``. Without a recorded step the verdict is undetermined.
    """
    states = _distinct(initial)
    count = 0
    for step in recorded:
        followed = _distinct(after for state in states for after in follow(state, step))
        if not followed:
            sentence = f"Step {count} is not allowed: {describe(step)}."
            witness = tuple(line for state in states[:1] for line in explain(state, step))
            return Verdict(claim, Outcome.BROKEN, sentence, witness)
        states = followed
        count += 1
    if not count:
        return Verdict(claim, Outcome.UNDETERMINED, "Nothing was recorded.")
    return Verdict(claim, Outcome.HOLDS, f"All {count:,} recorded steps are allowed.")


def _distinct(states: Iterable[S]) -> list[S]:
    distinct: list[S] = []
    for state in states:
        if state not in distinct:
            distinct.append(state)
    return distinct
