"""The contents of a report as data: experiments, published results, and our results."""

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple, TypeAlias

from model.checking.claims import Outcome
from sim.sweep.experiment import Label, Reproduction


class Status(Enum):
    """The verdict on an experiment, or the reason why there is none."""

    REPRODUCED = Reproduction.REPRODUCED.value
    UNDER_ASSUMPTIONS = Reproduction.UNDER_ASSUMPTIONS.value
    NOT_REPRODUCED = Reproduction.NOT_REPRODUCED.value
    REFUTED = Reproduction.REFUTED.value
    UNDETERMINED = "undetermined"
    BROKEN = "not as expected"
    UNJUDGED = "not judged"

    @property
    def sign(self) -> str:
        """A sign before the words."""
        return _LOOKS[self][0]

    @property
    def colour(self) -> str:
        """Class of this status in the style sheet."""
        return _LOOKS[self][1]

    @property
    def short(self) -> str:
        """The words for a narrow column."""
        return "with assumptions" if self is Status.UNDER_ASSUMPTIONS else str(self.value)

    @property
    def meaning(self) -> str:
        """The meaning, as a clause without a capital letter and full stop."""
        return _LOOKS[self][2]


_LOOKS: Mapping[Status, tuple[str, str, str]] = {
    Status.REPRODUCED: (
        "✓",
        "good",
        "the claim was observed, by more than the error of the measurement",
    ),
    Status.UNDER_ASSUMPTIONS: (
        "✓",
        "fair",
        "the claim was observed with open points of the text filled in, or with a correction; these"
        " are stated",
    ),
    Status.NOT_REPRODUCED: (
        "–",
        "open",
        "the claim was not observed under the conditions of the text, or it is an input here and"
        " cannot be tested; neither means that it is false",
    ),
    Status.REFUTED: (
        "✗",
        "bad",
        "the contrary was observed, by more than the error of the measurement",
    ),
    Status.UNDETERMINED: ("?", "open", "runs or intervals are not enough to decide"),
    Status.BROKEN: (
        "!",
        "alert",
        "an expectation is not met, so there is no verdict on the claim",
    ),
    Status.UNJUDGED: ("·", "plain", "nothing was expected"),
}
"""A sign, a class of the style sheet, and the meaning."""


# --------------------------------------------------------------------------------------- charts


class Point(NamedTuple):
    """A measure at one place: its mean over all seeds, with confidence limits."""

    x: Label
    estimate: float
    low: float
    high: float


class Curve(NamedTuple):
    """Points of one series, in the order in which a line joins them."""

    label: str
    points: tuple[Point, ...]


class Axis(NamedTuple):
    """An axis of a chart."""

    label: str
    is_log: bool = False


class Mark(NamedTuple):
    """Published numbers, drawn beside ours: one for each of several places, or one for all."""

    label: str
    points: tuple[tuple[Label, float], ...] = ()
    level: float | None = None
    """The number for all places."""


class Chart(NamedTuple):
    """A plot: lines over numbers, or marks beside one another over names."""

    title: str
    """The levels that hold for the whole chart; empty if there is one chart."""
    x: Axis
    y: Axis
    lines: tuple[Curve, ...]
    published: tuple[Mark, ...] = ()
    reach: tuple[float, float] | None = None
    """Range of ``y`` over all charts of the experiment, if there are several: these are drawn
    smaller, side by side, so that they can be compared."""


# ----------------------------------------------------------------------------------- experiments


class ReportedCell(NamedTuple):
    """A measured expectation at one combination of levels."""

    label: str
    measured: str
    """The number with its unit and its confidence limits."""
    outcome: Outcome


class ReportedFinding(NamedTuple):
    """One expectation, and what was observed."""

    says: str
    verdict: Reproduction
    """The verdict on the claim if the expectation is met."""
    assumptions: str
    outcome: Outcome
    sentence: str
    """The observation."""
    cells: tuple[ReportedCell, ...]


class Failure(NamedTuple):
    """A run that failed."""

    settings: Mapping[str, str]
    seed: int
    error: str
    again: str
    """The command line that repeats it."""


class NumbersTable(NamedTuple):
    """The numbers behind the charts, as text."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    names: int
    """Number of columns, from the left, that name the combination of levels."""


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
    numbers: str
    """The published result as numbers with names and units; may be empty."""
    verdict: Reproduction | None
    """``None`` while an expectation is not met."""
    outcome: Outcome
    """Outcome of all expectations together."""
    findings: tuple[ReportedFinding, ...]
    charts: tuple[Chart, ...]
    undrawn: int
    """Number of combinations of levels that have no chart because there would be too many."""
    table: NumbersTable
    base: Mapping[str, str]
    factors: Mapping[str, tuple[tuple[Label, Mapping[str, str]], ...]]
    """Levels of each factor, each with the settings that it stands for."""
    seeds: tuple[int, ...]
    confidence: float
    runs: int
    problems: tuple[str, ...]
    """Faults of its table of results, in sentences without full stops."""
    failures: tuple[Failure, ...]
    effort: str
    """``quick`` or ``full``."""
    code: str
    """Digest of the sources that it was run with."""
    again: str
    """The command line that runs it again."""

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
    def status(self) -> Status:
        """The verdict, or the reason why there is none."""
        if self.verdict is not None:
            return Status(self.verdict.value)
        if not self.findings:
            return Status.UNJUDGED
        return Status.BROKEN if self.outcome is Outcome.BROKEN else Status.UNDETERMINED


Report: TypeAlias = tuple[Entry, ...]
