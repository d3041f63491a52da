"""Experiments as data: what to run, over which settings, and what to expect.

:mod:`sim.sweep.reading` reads an experiment from TOML; docs/sweeps.md explains every key.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, TypeAlias

EFFORTS = ("quick", "full")
"""Sizes of an experiment: a small grid, or the whole one."""
CONFIDENCE = 0.95
"""Confidence level of every interval."""

Label: TypeAlias = int | float | str
"""The name of a level of a factor in the table of results."""


class Reproduction(StrEnum):
    """The verdict on a published claim if an expectation is met, from best to worst."""

    REPRODUCED = "reproduced"
    UNDER_ASSUMPTIONS = "reproduced under stated assumptions"
    NOT_REPRODUCED = "not reproduced"
    REFUTED = "refuted"


class Level(NamedTuple):
    """One value of a factor, with the settings that it stands for."""

    label: Label
    settings: Mapping[str, str]


class Factor(NamedTuple):
    """A varied quantity; the grid has every combination of levels."""

    name: str
    levels: tuple[Level, ...]

    @property
    def labels(self) -> tuple[Label, ...]:
        """Names of the levels, in order."""
        return tuple([level.label for level in self.levels])


class Grid(NamedTuple):
    """The runs of one effort."""

    base: Mapping[str, str]
    """Settings of every run, unless a level overrides them."""
    factors: tuple[Factor, ...]
    seeds: int
    """Number of seeds of each combination; all combinations have the same seeds."""


class Measure(NamedTuple):
    """A column of results: a figure of the run, or one figure divided by another."""

    name: str
    figure: str
    by: str = ""
    """The figure that divides; empty: none."""


class Comparison(NamedTuple):
    """A comparison of one level of a factor with another, or with each of the others."""

    factor: str
    first: Label
    second: Label | None
    """``None``: each of the others."""
    kind: str
    """``ratio`` or ``difference``."""


class Expectation(NamedTuple):
    """An expectation of the table of results: bounds of a measure, or its direction."""

    says: str
    """The expectation as a sentence."""
    measure: str
    verdict: Reproduction
    assumptions: str = ""
    """Assumptions under which the claim is reproduced."""
    where: Mapping[str, tuple[Label, ...]] = {}
    """Levels that count, by factor; a factor without an entry counts with all its levels."""
    over: tuple[str, ...] = ()
    """Factors whose levels are averaged, seed by seed."""
    compare: Comparison | None = None
    at_least: float | None = None
    at_most: float | None = None
    along: str = ""
    """Factor along which the measure rises or falls; empty: it has bounds instead."""
    is_rising: bool = True
    only: str = ""
    """The only effort in which the expectation is judged; empty: both."""


class Source(NamedTuple):
    """The publication of a claim."""

    paper: str
    where: str
    """Figure, table or section."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """An experiment, as its file declares it."""

    name: str
    room: str
    run: str
    """The measurable to run, by its name in ``sim.ROOM.measurables``."""
    fan: str
    """The factor whose levels run side by side on the same arrivals; empty: none."""
    title: str
    claim: str
    source: Source | None
    published: str
    """The published result in a sentence; empty: none."""
    grids: Mapping[str, Grid]
    """Grids, by effort."""
    measures: tuple[Measure, ...]
    expectations: tuple[Expectation, ...]
    labels: Mapping[str, str]
    """Readable names of factors and measures."""
