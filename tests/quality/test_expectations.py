"""Planted results: the expectations of an experiment must not hold for wrong figures.

Wrong figures are the same everywhere, belong to other runs, or stand at the wrong level of a
factor.
"""

from collections.abc import Callable, Iterator
from functools import cache
from random import Random
from statistics import fmean

import pytest

from model.checking.claims import Outcome
from sim.sweep.experiment import Experiment
from sim.sweep.jobs import Figure
from sim.sweep.judging import findings
from sim.sweep.reading import catalogue, find
from sim.sweep.results import Columns
from tests.sim.quick_figures import EFFORT, judged, seeds, tables

NAMES = catalogue()
Mistake = Callable[[list[Figure]], list[Figure]]

whole = cache(tables)


def is_met(experiment: Experiment, columns: Columns) -> bool:
    """Return whether all expectations are met."""
    found = findings(experiment, EFFORT, columns, seeds(experiment))
    return all(finding.outcome is Outcome.HOLDS for finding in found)


def planted(experiment: Experiment, mistake: Mistake) -> Columns:
    """Return the table with the same mistake in every measure."""
    columns = whole()[experiment.name]
    return columns | {name: mistake(columns[name]) for name in judged(experiment)}


def always(value: Figure) -> Mistake:
    """Return a mistake that puts ``value`` everywhere."""
    return lambda values: [value] * len(values)


def mean(values: list[Figure]) -> list[Figure]:
    """Put the mean everywhere."""
    return [fmean(each for each in values if isinstance(each, int | float))] * len(values)


def mixed_up(seed: int) -> Mistake:
    """Return a mistake that gives each run the figures of another one."""

    def mix(values: list[Figure]) -> list[Figure]:
        order = list(range(len(values)))
        Random(seed).shuffle(order)  # the same for every measure
        return [values[each] for each in order]

    return mix


def turned(experiment: Experiment) -> Iterator[Mistake]:
    """Yield one mistake per factor: its levels exchange figures, first with last and so on."""
    grid = experiment.grids[EFFORT]
    inner = grid.seeds
    for factor in reversed(grid.factors):
        count = len(factor.levels)
        if count > 1:
            yield _turning(count, inner)
        inner *= count


def _turning(count: int, inner: int) -> Mistake:
    """Reverse the levels of a factor; each level has ``inner`` consecutive rows."""

    def turn(values: list[Figure]) -> list[Figure]:
        rows = range(len(values))
        levels = [row // inner % count for row in rows]
        return [
            values[row + (count - 1 - 2 * level) * inner]
            for row, level in zip(rows, levels, strict=True)
        ]

    return turn


@pytest.mark.parametrize("name", NAMES)
def test_the_same_everywhere_is_noticed(name: str) -> None:
    experiment = find(name)
    assert is_met(experiment, whole()[name])
    for mistake in (mean, *map(always, (None, 0.0, 0.5, 1.0, 45_000.0, 1e6))):
        assert not is_met(experiment, planted(experiment, mistake))


@pytest.mark.parametrize("name", NAMES)
def test_figures_of_other_runs_are_noticed(name: str) -> None:
    experiment = find(name)
    for seed in range(3):
        assert not is_met(experiment, planted(experiment, mixed_up(seed)))
    at_wrong_levels = [planted(experiment, mistake) for mistake in turned(experiment)]
    assert not all(is_met(experiment, columns) for columns in at_wrong_levels)
