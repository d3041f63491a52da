"""The contents of a page of claims as data: experiments, published results, and our results."""

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from model.checking.claims import Outcome
from sim.sweep.experiment import Reproduction

UNDETERMINED, BROKEN, UNJUDGED = "undetermined", "not as expected", "not judged"
STATUSES = (*[each.value for each in Reproduction], UNDETERMINED, BROKEN, UNJUDGED)
"""Verdicts on experiments, and reasons why there is none."""
MEANINGS: Mapping[Reproduction, str] = {
    Reproduction.REPRODUCED: "the claim was observed, by more than the error of the measurement",
    Reproduction.UNDER_ASSUMPTIONS: (
        "the claim was observed with open points of the text filled in, or with a correction; these"
        " are stated"
    ),
    Reproduction.NOT_REPRODUCED: (
        "the claim was not observed under the conditions of the text, or it is an input here and"
        " cannot be tested; neither means that it is false"
    ),
    Reproduction.REFUTED: "the contrary was observed, by more than the error of the measurement",
}
"""Meanings of verdicts, as clauses without a capital letter and full stop."""


class ReportedFinding(NamedTuple):
    """One expectation, and what was observed."""

    says: str
    verdict: Reproduction
    """The verdict on the claim if the expectation is met."""
    assumptions: str
    outcome: Outcome
    sentence: str
    """The observation."""


class Entry(NamedTuple):
    """One experiment."""

    name: str
    room: str
    run: str
    """The measurable of the room that was run."""
    title: str
    claim: str
    source: str
    """The text, and the figure or table in it."""
    published: str
    """The published result, in a sentence."""
    effort: str
    """``quick`` or ``full``."""
    code: str
    """Digest of the sources that it was run with."""
    again: str
    """The command line that runs it again."""
    verdict: Reproduction | None
    """``None`` while an expectation is not met."""
    outcome: Outcome
    """Outcome of all expectations together."""
    findings: tuple[ReportedFinding, ...]
    seeds: tuple[int, ...]
    runs: int
    failed: int
    """Number of runs that failed."""

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The assumptions of all its findings."""
        stated = [finding.assumptions for finding in self.findings if finding.assumptions]
        return tuple(dict.fromkeys(stated))

    @property
    def decisive(self) -> ReportedFinding | None:
        """The finding that its verdict rests on, or the first that is not met."""
        if self.verdict is not None:
            return next(each for each in self.findings if each.verdict is self.verdict)
        by_outcome = {finding.outcome: finding for finding in reversed(self.findings)}
        return by_outcome.get(Outcome.BROKEN, by_outcome.get(Outcome.UNDETERMINED))

    @property
    def status(self) -> str:
        """The verdict, or the reason why there is none."""
        if self.verdict is not None:
            return self.verdict.value
        if not self.findings:
            return UNJUDGED
        return BROKEN if self.outcome is Outcome.BROKEN else UNDETERMINED


Report: TypeAlias = tuple[Entry, ...]
