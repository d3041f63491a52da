"""What a check found out: a claim, its outcome, one sentence, and a readable witness.

Rules of this file:

1. ``undetermined`` is not a soft ``holds``: a check that saw nothing interesting, or that ran
   out of its limits, has said nothing, and nothing may turn that into green.
2. A verdict is read by people: its sentence and its witness are sentences, not object dumps.
"""

import enum
from collections.abc import Iterable
from dataclasses import dataclass


class Outcome(enum.StrEnum):
    """The three answers a check may give."""

    HOLDS = "holds"
    BROKEN = "broken"
    UNDETERMINED = "undetermined"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer to one claim.

    ``claim`` is its name, ``sentence`` says in one sentence why the outcome is what it is, and
    ``witness`` is the minimal counterexample (or what was missing), one sentence an element.
    """

    claim: str
    outcome: Outcome
    sentence: str
    witness: tuple[str, ...] = ()


def combine(verdicts: Iterable[Verdict]) -> Outcome:
    """Sum up several verdicts: broken wins over undetermined, which wins over holds.

    No verdict at all is undetermined, for nothing was checked.
    """
    outcomes = {verdict.outcome for verdict in verdicts}
    if Outcome.BROKEN in outcomes:
        return Outcome.BROKEN
    return Outcome.HOLDS if outcomes == {Outcome.HOLDS} else Outcome.UNDETERMINED
