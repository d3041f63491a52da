"""Errata: a promise of a published text, a smallest run that breaks it, and the rule that keeps it.

Rules of this file:

1. An erratum proves itself each time it is shown: the rule as written is run until it breaks its
   promise, and the corrected rule is run on the same input and on everything that was searched.
2. An erratum is confirmed if the rule as written broke the promise and the corrected rule kept it
   both times. A corrected rule that was not put to the test has kept nothing.
3. An erratum says what the text is to blame for: a wrong rule, a lost formula, or a gap.
4. Inputs are tried in a fixed order, smaller ones first, so the first one that breaks a promise is
   a smallest one.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from model.checking.claims import Judgement, Outcome, Verdict
from model.vocabulary import System, Trace, Workload
from straggler.errors import counted

if TYPE_CHECKING:
    from model.checking.variants import Variant
    from model.join.variants import Variant as ChainVariant

CaseT = TypeVar("CaseT")
Judge = Callable[[Workload, Trace], Judgement]
PlantedBug: TypeAlias = "Variant[Any] | ChainVariant"
"""Rules of the model that break a promise on purpose."""


class Kind(Enum):
    """Class of an erratum: how the wrong rule follows from the text that we have."""

    PRINTED = "as printed"
    """The text states the rule."""
    READING = "in one reading"
    """The passage has lost its formula, or has a second meaning; this is one way to read it."""
    OPEN = "left open"
    """The text states no rule; this is one that a reader might fill in."""

    @property
    def rule(self) -> str:
        """Name of the wrong rule."""
        return {Kind.PRINTED: "as printed", Kind.READING: "as read", Kind.OPEN: "as filled in"}[
            self
        ]


class Findings(NamedTuple):
    """Results of running an erratum."""

    counterexample: tuple[str, ...]
    """Sentences on the smallest input found, and on what the rule as written does with it."""
    literal: Verdict
    """Verdict on the rule as written, on that input."""
    same: Verdict
    """Verdict on the corrected rule, on that input."""
    scope: Verdict
    """Verdict on the corrected rule, on everything that was searched."""

    @property
    def is_confirmed(self) -> bool:
        """True if the rule as written breaks the promise and the corrected rule keeps it."""
        kept = self.same.outcome is Outcome.HOLDS and self.scope.outcome is Outcome.HOLDS
        return self.literal.outcome is Outcome.BROKEN and kept


@dataclass(frozen=True, slots=True)
class Erratum:
    """A mistake of a text, or a gap in it that a reader would fill wrongly."""

    kind: Kind
    name: str
    promise: str
    """Sentence that states the broken promise."""
    source: str
    """Title or authors of the text, and the place in it."""
    literal: str
    """The rule as written, or as a reader would complete it."""
    corrected: str
    """The rule that keeps the promise."""
    search: Callable[[], Findings]
    """Function that runs both rules."""


class Confirmation(NamedTuple):
    """An erratum of a room with the results of running it."""

    room: str
    erratum: Erratum
    findings: Findings


# ------------------------------------------------------------------------------------------- search


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

    ``describe`` says what happens on that stream, ``scope`` judges ``right`` on all searched ones.
    """
    claim, literal = bug.promise, bug.make_system()
    return search(
        claim,
        streams,
        lambda each: promise_among(judge(each, literal(each)).verdicts, claim),
        lambda each: promise_or_broken(judge(each, right(each)).verdicts, claim),
        scope,
        lambda each: describe(each, literal(each)),
        noun,
    )


def promise_among(verdicts: Iterable[Verdict], claim: str) -> Verdict:
    """Return the verdict on a claim."""
    found = (verdict for verdict in verdicts if verdict.claim == claim)
    return next(found, Verdict(claim, Outcome.UNDETERMINED, "It was not put to the test."))


def promise_or_broken(verdicts: Sequence[Verdict], claim: str) -> Verdict:
    """Return the first verdict that is broken, of any claim; without one, that on the claim."""
    broken = [verdict for verdict in verdicts if verdict.outcome is Outcome.BROKEN]
    return broken[0] if broken else promise_among(verdicts, claim)


def smaller(tried: int, noun: str = "stream") -> str:
    """Return the sentence on the smaller inputs that were tried."""
    if not tried:
        return "Nothing is smaller."
    return f"Smaller {noun}s do not break the promise: {tried:,} of {tried:,} tried."


# ----------------------------------------------------------------------------------------- output


def describe(confirmation: Confirmation) -> list[str]:
    """Describe an erratum in lines for a terminal."""
    erratum, findings = confirmation.erratum, confirmation.findings
    return [
        f"{erratum.name} (room {confirmation.room}, {erratum.kind.value})",
        f"  promise       {erratum.promise}",
        f"  source        {erratum.source}",
        f"  {erratum.kind.rule:12}  {erratum.literal}",
        "  counterexample",
        *(f"    {sentence}" for sentence in findings.counterexample),
        f"  {findings.literal.outcome}: {findings.literal.sentence}",
        *(f"    {sentence}" for sentence in findings.literal.more),
        f"  corrected     {erratum.corrected}",
        f"  {findings.same.outcome} on the same input: {findings.same.sentence}",
        f"  {findings.scope.outcome} in the scope: {findings.scope.sentence}",
        "",
    ]


HEADER = """\
# Errata

*Written by `straggler errata --markdown docs/errata.md`; a test checks that it is current.*

Promises that a published design does not keep if it is built as it is written, or as a reader would
complete it. Each entry has the promise, its source, a small input that breaks it, and the rule that
keeps it. The line *Source* says what the text states and what it leaves open. Every entry is a run,
not an argument: the command runs the wrong rule until it breaks its promise, then the corrected
rule on the same input and on everything that was searched. The smaller inputs that were tried first
are listed with each counterexample. The unit of time is a microsecond.

An erratum has one of three classes:

- *as printed*: the text states the rule, and the rule is wrong.
- *in one reading*: the passage has lost its formula, or has a second meaning. The rule is one way
  to read it; another way keeps the promise.
- *left open*: the text does not state a rule. A reader who fills the gap naively gets the wrong
  one, so the gap is dangerous, but the text is not wrong.
"""


def markdown(confirmations: Sequence[Confirmation]) -> str:
    """Return the page of all errata, room by room."""
    parts = [HEADER, _counts(confirmations)]
    for room in dict.fromkeys(each.room for each in confirmations):
        of_room = [each for each in confirmations if each.room == room]
        parts.append(f"## Room `{room}`\n")
        parts += [_section(each) for each in of_room]
    return "\n".join(parts)


def _counts(confirmations: Sequence[Confirmation]) -> str:
    rows = ["| class | errata |", "|---|---|"]
    for kind in Kind:
        names = [each.erratum.name for each in confirmations if each.erratum.kind is kind]
        if names:
            links = ", ".join(f"[{name}](#{name})" for name in names)
            rows.append(f"| {kind.value} | {links} |")
    return "\n".join([*rows, ""])


def _section(confirmation: Confirmation) -> str:
    erratum, findings = confirmation.erratum, confirmation.findings
    return "\n".join(
        [
            f"### {erratum.name}\n",
            f"**Promise.** {erratum.promise}",
            f"*Source: {erratum.source}.*\n",
            f"**{erratum.kind.rule.capitalize()}.** {erratum.literal}\n",
            "**Counterexample.**\n",
            *(f"    {sentence}" for sentence in findings.counterexample),
            "",
            f"{findings.literal.outcome.capitalize()}: {findings.literal.sentence}",
            *findings.literal.more,
            "",
            f"**Corrected.** {erratum.corrected}\n",
            f"- On the same input: {findings.same.outcome}. {findings.same.sentence}",
            f"- In the scope: {findings.scope.outcome}. {findings.scope.sentence}",
            "",
        ]
    )
