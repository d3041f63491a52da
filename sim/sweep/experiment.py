"""An experiment as data: what is run, over which settings, and what is expected of it.

:mod:`sim.sweep.reading` reads it from TOML; docs/sweeps.md says what every key means.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, TypeAlias

EFFORTS = ("quick", "full")
"""How much is run of an experiment."""

Label: TypeAlias = int | float | str
"""What a level of a factor is called in the table of results."""


class Reproduction(Enum):
    """What it says of the published claim when an expectation is met, from best to worst."""

    REPRODUCED = "reproduced"
    UNDER_ASSUMPTIONS = "reproduced under stated assumptions"
    NOT_REPRODUCED = "not reproduced"
    REFUTED = "refuted"


class Level(NamedTuple):
    """One value of a factor, with the settings that it stands for."""

    label: Label
    settings: Mapping[str, str]


class Factor(NamedTuple):
    """What is varied; the grid has every combination of levels."""

    name: str
    levels: tuple[Level, ...]

    @property
    def labels(self) -> tuple[Label, ...]:
        """What its levels are called, in order."""
        return tuple([level.label for level in self.levels])


class Grid(NamedTuple):
    """What is run for one effort."""

    base: Mapping[str, str]
    """Settings of every run, unless a level says otherwise."""
    factors: tuple[Factor, ...]
    seeds: int
    """Each combination is run with so many seeds, the same for all of them."""


class Measure(NamedTuple):
    """A column of results: a figure of the run, or one figure divided by another."""

    name: str
    figure: str
    by: str = ""
    """What it is divided by, if by anything."""


class Comparison(NamedTuple):
    """One level of a factor against another, or against each of the others."""

    factor: str
    first: Label
    second: Label | None
    """``None``: each of the others."""
    kind: str
    """``ratio`` or ``difference``."""


class Expectation(NamedTuple):
    """What should be seen in the table of results: bounds of a figure, or a direction."""

    says: str
    """A sentence."""
    measure: str
    verdict: Reproduction
    assumptions: str = ""
    """Under which it is reproduced."""
    where: Mapping[str, tuple[Label, ...]] = {}
    """Levels that are looked at; all those of a factor that is not named."""
    over: tuple[str, ...] = ()
    """Factors whose levels are averaged, seed by seed."""
    compare: Comparison | None = None
    at_least: float | None = None
    at_most: float | None = None
    along: str = ""
    """Factor along which the measure rises or falls; empty: it has bounds instead."""
    is_rising: bool = True
    is_some: bool = False
    """One cell that is as expected is enough."""
    only: str = ""
    """The effort in which it is judged; empty: in both."""


class Source(NamedTuple):
    """Where a claim was published."""

    paper: str
    where: str
    """Figure, table or section."""


class Published(NamedTuple):
    """What the source gives."""

    says: str
    values: Mapping[str, Any]
    """Numbers, as far as its text has them."""


class Plot(NamedTuple):
    """How results are drawn: a line for every level of ``series``."""

    x: str
    y: str
    series: str = ""
    log: tuple[str, ...] = ()
    """Axes that are logarithmic, of ``x`` and ``y``."""
    where: Mapping[str, tuple[Label, ...]] = {}
    """Levels that are drawn; all those of a factor that is not named."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """All of it."""

    name: str
    room: str
    run: str
    """What is run, by its name in ``sim.ROOM.measurables``."""
    fan: str
    """The factor whose levels are run side by side on the same arrivals; empty: none."""
    title: str
    claim: str
    source: Source | None
    published: Published | None
    grids: Mapping[str, Grid]
    """By effort."""
    measures: tuple[Measure, ...]
    expectations: tuple[Expectation, ...]
    plot: Plot | None
    confidence: float
    """Of every interval."""
    labels: Mapping[str, str]
    """What a reader calls factors, measures and published numbers whose names do not say it."""
