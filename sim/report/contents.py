"""What a report says, before it is drawn: experiments with what was published and what came out."""

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from model.checking.claims import Outcome
from sim.sweep.experiment import Label, Reproduction


class Point(NamedTuple):
    """A measure at one place: its mean over all seeds, with confidence limits."""

    x: Label
    estimate: float
    low: float
    high: float


class Line(NamedTuple):
    """Points of one series, in the order in which they are joined."""

    label: str
    points: tuple[Point, ...]


class Axis(NamedTuple):
    """What runs along an axis."""

    label: str
    is_log: bool = False


class Mark(NamedTuple):
    """Published numbers, drawn beside ours: at some places, or one for all of them."""

    label: str
    points: tuple[tuple[Label, float], ...] = ()
    level: float | None = None


class Chart(NamedTuple):
    """A plot: lines over numbers, or marks beside one another over names."""

    title: str
    """What is the same in all of it; empty if there is one chart."""
    x: Axis
    y: Axis
    lines: tuple[Line, ...]
    published: tuple[Mark, ...] = ()
    reach: tuple[float, float] | None = None
    """Least and most of ``y`` in all charts of the experiment, if there are several: they are
    drawn smaller, side by side, and to be compared."""


class Cell(NamedTuple):
    """What was measured for an expectation at one combination of levels."""

    label: str
    measured: str
    """With its unit and its confidence limits."""
    outcome: Outcome


class Finding(NamedTuple):
    """One expectation, and what was seen of it."""

    says: str
    verdict: Reproduction
    """What it says of the claim if it is met."""
    assumptions: str
    outcome: Outcome
    sentence: str
    """What was seen."""
    cells: tuple[Cell, ...]


class Failure(NamedTuple):
    """A run that did not end."""

    settings: Mapping[str, str]
    seed: int
    error: str
    again: str
    """The line that runs it."""


class Table(NamedTuple):
    """The numbers behind the charts, as text."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    names: int
    """So many columns at the left say which combination it is."""


class Entry(NamedTuple):
    """One experiment."""

    name: str
    room: str
    run: str
    """What was run of the room."""
    title: str
    claim: str
    source: str
    """The text, and the figure or table in it."""
    published: str
    """What it says came out, in a sentence."""
    numbers: str
    """The same as numbers with names and units; empty if there are none."""
    verdict: Reproduction | None
    """``None`` while an expectation is not met."""
    outcome: Outcome
    """Of all expectations."""
    findings: tuple[Finding, ...]
    charts: tuple[Chart, ...]
    undrawn: int
    """Combinations of levels for which there would be one more chart each."""
    table: Table
    base: Mapping[str, str]
    factors: Mapping[str, tuple[tuple[Label, Mapping[str, str]], ...]]
    """Levels, each with the settings that it stands for."""
    seeds: tuple[int, ...]
    confidence: float
    runs: int
    problems: tuple[str, ...]
    """What is wrong with its table of results, in sentences without full stops."""
    failures: tuple[Failure, ...]
    effort: str
    """``quick`` or ``full``."""
    code: str
    """Digest of the sources that it was run with."""
    again: str
    """The line that runs it again."""

    @property
    def assumptions(self) -> tuple[str, ...]:
        """All that have to be made for it."""
        stated = [finding.assumptions for finding in self.findings if finding.assumptions]
        return tuple(dict.fromkeys(stated))

    @property
    def decisive(self) -> Finding | None:
        """The expectation that its verdict rests on, or the first that is not met."""
        if self.verdict is not None:
            return next(each for each in self.findings if each.verdict is self.verdict)
        by_outcome = {finding.outcome: finding for finding in reversed(self.findings)}
        return by_outcome.get(Outcome.BROKEN, by_outcome.get(Outcome.UNDETERMINED))


Report: TypeAlias = tuple[Entry, ...]
