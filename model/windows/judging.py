"""One promise about a trace, and how it is judged.

Rules of this file:

* A promise names the kinds of steps it is read from; without them it is undetermined.
* It has a guard, the case without which it could hold without a test.
* A counterexample is the smallest one found, in sentences.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from model.checking.claims import Outcome, Verdict
from model.vocabulary.answers import Cleared, Late, Revision
from model.vocabulary.trace import kind_of
from model.windows.evidence import Observed, Tick, Truth
from model.windows.findings import Findings
from model.windows.query import Query

QueryT = TypeVar("QueryT", bound=Query)
TickT = TypeVar("TickT", bound=Tick)


@dataclass(frozen=True, slots=True)
class Claim(Generic[QueryT, TickT]):
    """One promise: when it is put to the test, from what, and how."""

    name: str
    judge: Callable[[Truth[QueryT], Observed[TickT], Findings], None]
    needs: tuple[tuple[type, ...], ...]
    """Of each group at least one kind must have been recorded."""
    guard: str
    applies: Callable[[Truth[QueryT]], bool] = field(default=lambda truth: True)
    needs_identities: bool = False
    """Says nothing about a source that redelivers while ``dedup`` is off."""


def is_flushed(truth: Truth[Query]) -> bool:
    """Whether the stream is flushed in the end."""
    return truth.flush


def verdicts_of(
    claims: Iterable[Claim[QueryT, TickT]],
    truth: Truth[QueryT],
    observed: Observed[TickT],
    counts: Mapping[str, int],
) -> tuple[Verdict, ...]:
    """One verdict for every promise that the workload puts to the test.

    ``counts`` says how often the case of each guard occurred.
    """
    hides_late = not observed.late and _lacks_tuples(truth, observed)
    return tuple(
        _judge(claim, truth, observed, hides_late, counts)
        for claim in claims
        if claim.applies(truth)
    )


def _judge(
    claim: Claim[QueryT, TickT],
    truth: Truth[QueryT],
    observed: Observed[TickT],
    hides_late: bool,
    counts: Mapping[str, int],
) -> Verdict:
    missing = _missing(claim, observed, hides_late)
    if missing:
        return Verdict(claim.name, Outcome.UNDETERMINED, f"The trace has no {missing} steps.")
    if claim.needs_identities and truth.deliveries and not truth.config.dedup:
        sentence = "The source delivers a tuple twice although dedup is off."
        return Verdict(claim.name, Outcome.UNDETERMINED, sentence)
    findings = Findings()
    claim.judge(truth, observed, findings)
    if findings.count:
        in_all = f" ({findings.count:,} counterexamples in all.)" if findings.count > 1 else ""
        sentence = findings.sentence + in_all
        return Verdict(claim.name, Outcome.BROKEN, sentence, findings.witness)
    if findings.undetermined:
        return Verdict(claim.name, Outcome.UNDETERMINED, findings.undetermined)
    return Verdict(claim.name, Outcome.HOLDS, f"Held with {counts[claim.guard]:,} {claim.guard}.")


def _missing(claim: Claim[QueryT, TickT], observed: Observed[TickT], hides_late: bool) -> str:
    """Kinds of steps that are not there, although the claim cannot do without them.

    Where every answer contains every tuple there is nothing that could have been late.
    """
    for group in claim.needs:
        is_about_late = set(group) <= {Late, Cleared, Revision}
        nothing_was_late = not observed.late and not hides_late
        if is_about_late and nothing_was_late:
            continue
        if not any(observed.trace.of(word) for word in group):
            return " or ".join(kind_of(word) for word in group)
    return ""


def _lacks_tuples(truth: Truth[Query], observed: Observed[Tick]) -> bool:
    """Whether some window that the trace calls closed was answered without all its tuples."""
    for window in observed.closed:
        results = observed.results.get(window)
        if (results[0].n_rcv if results else 0) < len(truth.windows.get(window, ())):
            return True
    return False
