"""Claims, and the verdicts that checks of them return: one engine for all rooms.

Rules of this file:

1. ``undetermined`` is not a soft ``holds``: a check that saw nothing interesting, or that ran
   out of its limits, proves nothing, and must never be shown as a pass.
2. A verdict is read by people: its sentence and its witness are sentences, not object dumps.
3. A claim is declared once, with its name, its guard and its check. The engine builds the verdict.

Theory of operation: a room collects what it judges (a workload and a trace, the moments of a run)
in an evidence object ``E``. Its ``ClaimSet`` lists the claims about ``E``, and the interesting
cases with the functions that count them. A guard is the case that a claim needs: without it the
claim could hold untested. One trace need not contain the guard; all traces together must.
"""

import enum
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, NamedTuple, TypeVar

from model.vocabulary.trace import kind_of

E = TypeVar("E")

SHOWN = 5
"""Number of counterexamples that a witness contains, at most."""
NOT_ANSWERED = "Answers do not decide it"
"""Beginning of the sentence on a claim that needs more than answers."""

# ------------------------------------------------------------------------------------- verdicts


class Outcome(enum.StrEnum):
    """The three answers that a check may give."""

    HOLDS = "holds"
    BROKEN = "broken"
    UNDETERMINED = "undetermined"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer to one claim."""

    claim: str
    """Name of the claim."""
    outcome: Outcome
    sentence: str
    """Reason for the outcome, in one sentence."""
    witness: tuple[str, ...] = ()
    """Minimal counterexample or missing evidence: one sentence an element."""
    occurred: int | None = None
    """Number of cases that put the claim to the test, if they were counted."""

    @property
    def more(self) -> tuple[str, ...]:
        """The sentences of the witness that :attr:`sentence` does not contain."""
        return tuple([each for each in self.witness if each not in self.sentence])


def combine(verdicts: Iterable[Verdict]) -> Outcome:
    """Return the worst outcome of several verdicts (:func:`worst`)."""
    return worst(verdict.outcome for verdict in verdicts)


def worst(outcomes: Iterable[Outcome]) -> Outcome:
    """Return the worst of several outcomes: broken, then undetermined, then holds.

    Without any outcome the result is undetermined, because nothing was checked.
    """
    found = set(outcomes)
    if Outcome.BROKEN in found:
        return Outcome.BROKEN
    return Outcome.HOLDS if found == {Outcome.HOLDS} else Outcome.UNDETERMINED


class Judgement(NamedTuple):
    """The verdicts on one trace, and the number of times each interesting case occurred in it."""

    verdicts: tuple[Verdict, ...]
    guards: Mapping[str, int]


class Recording(NamedTuple):
    """The part of a behaviour that a producer records."""

    missing: frozenset[type] = frozenset()
    """Kinds of steps that it does not record."""
    answers_only: bool = False
    """True if only the fields of answers are recorded, and no batch, wait or watermark."""


COMPLETE = Recording()
"""The recording of a producer that records everything."""

# --------------------------------------------------------------------------------------- claims


@dataclass(frozen=True, slots=True)
class Claim(Generic[E]):
    """One promise about evidence: its name, its guard, and how it is checked."""

    name: str
    guard: str
    """Name of the case without which the claim could hold untested."""
    check: Callable[[E], Iterable[str] | Verdict]
    """Return counterexamples, one sentence each; or a verdict, if there is more to report."""
    applies: Callable[[E], bool] = lambda _evidence: True
    """Return whether the evidence can put the claim to the test; otherwise it has no verdict."""
    gap: Callable[[E], str] = lambda _evidence: ""
    """Return a sentence about what the evidence lacks to be judged, or an empty string."""
    needs: Sequence[Sequence[type]] = ()
    """Kinds of steps that the claim is read from; those of one group may replace each other."""
    of_answers: bool = False
    """True if the fields of answers decide the claim."""

    def judge(self, evidence: E, occurred: int, recording: Recording = COMPLETE) -> Verdict:
        """Return the verdict on evidence in which the guard ``occurred`` so many times."""
        gap = self._describe_unrecorded(recording) or self.gap(evidence)
        if gap:
            return Verdict(self.name, Outcome.UNDETERMINED, gap)
        found = self.check(evidence)
        if isinstance(found, Verdict):
            return replace(found, occurred=occurred)
        against = tuple(found)
        if not against:
            sentence = f"No counterexample was found ({self.guard}: {occurred:,})."
            return Verdict(self.name, Outcome.HOLDS, sentence, occurred=occurred)
        more = f" ({len(against):,} counterexamples in all.)" if len(against) > 1 else ""
        return Verdict(self.name, Outcome.BROKEN, f"{against[0]}{more}", against[:SHOWN])

    def _describe_unrecorded(self, recording: Recording) -> str:
        """Return a sentence about steps that the claim needs and nobody records, or nothing."""
        if recording.answers_only and not self.of_answers:
            groups = [" or ".join(map(kind_of, group)) for group in self.needs]
            kinds = " and ".join(filter(None, [", ".join(groups[:-1]), *groups[-1:]]))
            return f"{NOT_ANSWERED}; complete {kinds} steps would."
        missing = [
            kind_of(word) for group in self.needs for word in group if word in recording.missing
        ]
        return f"It needs {' and '.join(missing)} steps, which are not recorded." if missing else ""


@dataclass(frozen=True, slots=True)
class ClaimSet(Generic[E]):
    """The claims about one kind of evidence, and the cases that put them to the test."""

    claims: tuple[Claim[E], ...]
    cases: Mapping[str, Callable[[E], int]]
    """Function that counts a case in the evidence, by name of the case."""

    @property
    def guards(self) -> Mapping[str, str]:
        """Guard of each claim, by name of the claim."""
        return {claim.name: claim.guard for claim in self.claims}

    def judge(self, evidence: E, recording: Recording = COMPLETE) -> Judgement:
        """Judge every claim that applies to the evidence, and count the cases.

        A claim is undetermined if the producer does not record the steps that it needs.
        """
        counts = {name: count(evidence) for name, count in self.cases.items()}
        verdicts = tuple(
            claim.judge(evidence, counts[claim.guard], recording)
            for claim in self.claims
            if claim.applies(evidence)
        )
        return Judgement(verdicts, counts)

    def over_all(self, judgements: Iterable[Judgement]) -> tuple[Verdict, ...]:
        """Summarise the judgements of many traces, claim by claim.

        A claim is broken if one trace breaks it; the first such verdict is shown. It holds if it
        held at least once, and if its guard occurred where it held. Otherwise nothing was put to
        the test.
        """
        guard_of = self.guards
        broken: dict[str, Verdict] = {}
        held: Counter[str] = Counter()
        occurred: Counter[str] = Counter()
        for judgement in judgements:
            for verdict in judgement.verdicts:
                held.setdefault(verdict.claim, 0)
                if verdict.outcome is Outcome.BROKEN:
                    broken.setdefault(verdict.claim, verdict)
                elif verdict.outcome is Outcome.HOLDS:
                    held[verdict.claim] += 1
                    occurred[verdict.claim] += judgement.guards[guard_of[verdict.claim]]
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
