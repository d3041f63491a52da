"""What a check found out: a claim, its outcome, one sentence, and a readable witness.

Rules of this file:

1. ``undetermined`` is not a soft ``holds``: a check that saw nothing interesting, or that ran
   out of its limits, has said nothing, and nothing may turn that into green.
2. A verdict is read by people: its sentence and its witness are sentences, not object dumps.
"""

import enum
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple


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


class Judgement(NamedTuple):
    """What one trace showed: verdicts, and how often the interesting cases occurred."""

    verdicts: tuple[Verdict, ...]
    guards: Mapping[str, int]


def over_all(cases: Iterable[Judgement], guard_of: Mapping[str, str]) -> tuple[Verdict, ...]:
    """Judgements of many traces, summed up by claim; ``guard_of`` names the guard of each.

    Broken if broken once (the first such verdict is shown). Holds if it held at least once and
    its guard occurred at least once where it held; otherwise nothing was put to the test.
    """
    broken: dict[str, Verdict] = {}
    held: Counter[str] = Counter()
    occurred: Counter[str] = Counter()
    for case in cases:
        for verdict in case.verdicts:
            held.setdefault(verdict.claim, 0)
            if verdict.outcome is Outcome.BROKEN:
                broken.setdefault(verdict.claim, verdict)
            elif verdict.outcome is Outcome.HOLDS:
                held[verdict.claim] += 1
                occurred[verdict.claim] += case.guards[guard_of[verdict.claim]]
    return tuple(
        broken.get(claim) or _summary(claim, times, occurred[claim], guard_of[claim])
        for claim, times in held.items()
    )


def _summary(claim: str, times: int, occurred: int, guard: str) -> Verdict:
    if not times:
        return Verdict(claim, Outcome.UNDETERMINED, "No trace put it to the test.")
    if not occurred:
        sentence = f"Held in {times:,} traces, but none of them had {guard}."
        return Verdict(claim, Outcome.UNDETERMINED, sentence)
    sentence = f"Held in {times:,} traces with {occurred:,} {guard} in all."
    return Verdict(claim, Outcome.HOLDS, sentence)
