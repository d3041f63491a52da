"""Planted results: the expectations of an experiment must not hold for equal figures."""

from collections.abc import Callable
from functools import cache
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


@pytest.mark.parametrize("name", NAMES)
def test_the_same_everywhere_is_noticed(name: str) -> None:
    experiment = find(name)
    assert is_met(experiment, whole()[name])
    for mistake in (mean, *map(always, (None, 0.0, 0.5, 1.0, 45_000.0, 1e6))):
        assert not is_met(experiment, planted(experiment, mistake))
