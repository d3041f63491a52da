"""The smallest stream on which a rule breaks its promise, and the right rules on the same one."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from model.checking.claims import Outcome, Verdict
from model.vocabulary import System, Trace, Workload
from properties.errors import counted
from properties.pages.errata import Findings, smaller
from properties.rooms import Evidence, PlantedBug

Judge = Callable[[Workload, Trace], Evidence]


def smallest(
    bug: PlantedBug,
    right: System,
    judge: Judge,
    streams: Iterator[Workload],
    told: Callable[[Workload, Trace], Iterable[str]],
    scope: Callable[[], Verdict],
) -> Findings:
    """Try streams in their order until one breaks the promise of a variant.

    ``told`` says what happens on it, ``scope`` how the right rules fare on everything searched.
    """
    literal = bug.make_system()
    tried = 0
    for workload in streams:
        trace = literal(workload)
        broken = promise_among(judge(workload, trace).verdicts, bug.promise)
        if broken.outcome is Outcome.BROKEN:
            same = promise_or_broken(judge(workload, right(workload)).verdicts, bug.promise)
            return Findings((*told(workload, trace), smaller(tried)), broken, same, scope())
        tried += 1
    sentence = f"None of {counted(tried, 'stream')} breaks it."
    nothing = Verdict(bug.promise, Outcome.UNDETERMINED, sentence)
    return Findings((), nothing, nothing, nothing)


def promise_among(verdicts: Iterable[Verdict], claim: str) -> Verdict:
    """The verdict on a claim."""
    found = (verdict for verdict in verdicts if verdict.claim == claim)
    return next(found, Verdict(claim, Outcome.UNDETERMINED, "It was not put to the test."))


def promise_or_broken(verdicts: Sequence[Verdict], claim: str) -> Verdict:
    """The verdict on a claim, or on another one that is broken: the right rules break none."""
    broken = [verdict for verdict in verdicts if verdict.outcome is Outcome.BROKEN]
    return broken[0] if broken else promise_among(verdicts, claim)
