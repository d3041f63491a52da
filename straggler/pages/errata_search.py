"""Search for the smallest input that breaks a published rule; every erratum searches in this way.

Inputs are tried in a fixed order, smaller ones first, so the first one that breaks a promise is a
smallest one.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from model.checking.claims import Outcome, Verdict
from model.vocabulary import System, Trace, Workload
from straggler.errors import counted
from straggler.pages.errata import Erratum, Findings, Kind, smaller
from straggler.rooms import Evidence, PlantedBug

CaseT = TypeVar("CaseT")
Judge = Callable[[Workload, Trace], Evidence]


def erratum(
    bug: PlantedBug,
    kind: Kind,
    name: str,
    promise: str,
    source: str,
    search: Callable[[], Findings],
) -> Erratum:
    """Return an erratum whose rules are those of a planted bug of the model."""
    return Erratum(kind, name, promise, source, bug.mistake, bug.corrected, search)


def decide(claim: str, kept: bool, sentence: str) -> Verdict:
    """Return the verdict that a claim holds if it was ``kept``, and is broken otherwise."""
    return Verdict(claim, Outcome.HOLDS if kept else Outcome.BROKEN, sentence)


def undetermined(claim: str, sentence: str = "Nothing that was searched breaks it.") -> Findings:
    """Return the findings of a search without a counterexample."""
    nothing = Verdict(claim, Outcome.UNDETERMINED, sentence)
    return Findings((), nothing, nothing, nothing)


def search(
    claim: str,
    cases: Iterable[CaseT],
    literal: Callable[[CaseT], Verdict],
    corrected: Callable[[CaseT], Verdict],
    scope: Callable[[], Verdict],
    describe: Callable[[CaseT], Iterable[str]],
    noun: str = "stream",
) -> Findings:
    """Try cases in their order until the literal rule breaks the claim on one of them.

    ``corrected`` judges the corrected rule on that case, ``scope`` on everything searched;
    ``describe`` says what happens in the case, and ``noun`` is the word for a case.
    """
    tried = 0
    for case in cases:
        verdict = literal(case)
        if verdict.outcome is Outcome.BROKEN:
            sentences = (*describe(case), smaller(tried, noun))
            return Findings(sentences, verdict, corrected(case), scope())
        tried += 1
    return undetermined(claim, f"None of {counted(tried, noun)} breaks it.")


def smallest_stream(
    bug: PlantedBug,
    right: System,
    judge: Judge,
    streams: Iterable[Workload],
    describe: Callable[[Workload, Trace], Iterable[str]],
    scope: Callable[[], Verdict],
    noun: str = "stream",
) -> Findings:
    """Find the first stream on which a planted bug breaks its promise.

    ``describe`` says what happens on it, ``scope`` judges the right rules on everything searched.
    """
    literal = bug.make_system()

    def judge_literal(workload: Workload) -> Verdict:
        return promise_among(judge(workload, literal(workload)).verdicts, bug.promise)

    def judge_right(workload: Workload) -> Verdict:
        return promise_or_broken(judge(workload, right(workload)).verdicts, bug.promise)

    def describe_literal(workload: Workload) -> Iterable[str]:
        return describe(workload, literal(workload))

    return search(bug.promise, streams, judge_literal, judge_right, scope, describe_literal, noun)


def promise_among(verdicts: Iterable[Verdict], claim: str) -> Verdict:
    """Return the verdict on a claim."""
    found = (verdict for verdict in verdicts if verdict.claim == claim)
    return next(found, Verdict(claim, Outcome.UNDETERMINED, "It was not put to the test."))


def promise_or_broken(verdicts: Sequence[Verdict], claim: str) -> Verdict:
    """Return the verdict on a claim, or on another one that is broken: right rules break none."""
    broken = [verdict for verdict in verdicts if verdict.outcome is Outcome.BROKEN]
    return broken[0] if broken else promise_among(verdicts, claim)
