"""Planted results: the expectations of an experiment must not hold for wrong figures.

Wrong figures are the same everywhere, belong to other runs, stand at the wrong level of a factor,
or are twice or half the right ones.
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
WITHOUT_SCALE = {
    "grouping-latency-over-time": {2.0, 0.5},
    "join-block-choice": {2.0},
    "join-cluster-rate": {2.0, 0.5},
    "join-queries-bytes": {2.0, 0.5},
    "join-queries-rate": {2.0, 0.5},
    "join-rate": {2.0, 0.5},
    "join-shedding": {0.5},
    "slack-aggregates": {0.5},
    "slack-batches": {2.0, 0.5},
    "slack-disorder": {2.0, 0.5},
}
"""Multiples that claims about ratios, directions or one-sided bounds do not notice.

No expectation of these experiments fixes the figures themselves.
"""

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


def times(factor: float) -> Mistake:
    """Return a mistake that multiplies all figures."""
    return lambda values: [_times(each, factor) for each in values]


def _times(value: Figure, factor: float) -> Figure:
    return value * factor if isinstance(value, int | float) else value


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


def test_levels_are_turned_round_one_factor_at_a_time() -> None:
    assert _turning(3, 2)(list(range(12))) == [4, 5, 2, 3, 0, 1, 10, 11, 8, 9, 6, 7]
    assert _turning(2, 6)(list(range(12))) == [*range(6, 12), *range(6)]


@pytest.mark.parametrize("name", NAMES)
def test_the_swept_figures_meet_the_expectations(name: str) -> None:
    """The other tests of this file mean nothing if this one fails."""
    assert is_met(find(name), whole()[name])


@pytest.mark.parametrize("name", NAMES)
def test_the_same_everywhere_is_noticed(name: str) -> None:
    experiment = find(name)
    for mistake in (mean, *map(always, (None, 0.0, 0.5, 1.0, 45_000.0, 1e6))):
        assert not is_met(experiment, planted(experiment, mistake))


@pytest.mark.parametrize("name", NAMES)
def test_figures_of_other_runs_are_noticed(name: str) -> None:
    experiment = find(name)
    for seed in range(3):
        assert not is_met(experiment, planted(experiment, mixed_up(seed)))
    at_wrong_levels = [planted(experiment, mistake) for mistake in turned(experiment)]
    assert not all(is_met(experiment, columns) for columns in at_wrong_levels)


@pytest.mark.parametrize("name", NAMES)
def test_multiples_are_noticed_if_an_expectation_fixes_the_scale(name: str) -> None:
    experiment = find(name)
    unnoticed = {
        factor for factor in (2.0, 0.5) if is_met(experiment, planted(experiment, times(factor)))
    }
    assert unnoticed == WITHOUT_SCALE.get(name, set())


def test_most_experiments_are_held_to_the_figures_themselves() -> None:
    assert 2 * len(WITHOUT_SCALE) < len(NAMES)
