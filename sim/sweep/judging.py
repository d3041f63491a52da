"""Judge expectations by a table of results.

Rules of this file:

* Levels are compared seed by seed: all levels of one seed met the same arrivals.
* An interval that contains a bound decides nothing.
* A missing value makes its cell undetermined, never better or worse.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, product
from statistics import fmean
from typing import NamedTuple, TypeAlias

from model.checking.claims import Outcome, worst
from sim.sweep.experiment import CONFIDENCE, Comparison, Expectation, Experiment, Factor, Label
from sim.sweep.jobs import Figure
from sim.sweep.statistics import Interval, mean_interval

Levels: TypeAlias = Mapping[str, Label]
"""One level each of some factors, by factor."""
Samples: TypeAlias = tuple[float | None, ...]
"""A value for each seed; ``None``: missing."""


class Cell(NamedTuple):
    """One combination of levels."""

    label: str
    interval: Interval | None
    """``None`` if a value is missing."""
    outcome: Outcome


class Finding(NamedTuple):
    """The judgement of an expectation."""

    expectation: Expectation
    outcome: Outcome
    cells: tuple[Cell, ...]


class MeasuredGrid(NamedTuple):
    """One measure of a table of results, with the grid that it was measured on."""

    factors: Sequence[Factor]
    seeds: Sequence[int]
    values: Mapping[tuple[Figure, ...], Figure]
    """Values of the measure, by seed and levels."""
    confidence: float = CONFIDENCE

    def samples(self, levels: Levels, over: Mapping[str, Sequence[Label]]) -> Samples:
        """Return the values at ``levels``, averaged over all levels in ``over``."""
        combinations = list(
            product(*[over.get(factor.name) or (levels[factor.name],) for factor in self.factors])
        )
        return tuple(
            [_mean(self.values.get((seed, *each)) for each in combinations) for seed in self.seeds]
        )

    def interval(self, samples: Samples) -> Interval | None:
        """Return the mean with its limits; a single value is its own limits."""
        values = [value for value in samples if value is not None]
        if len(values) < len(samples):
            return None
        if len(values) == 1:
            return Interval(values[0], values[0], values[0])
        return mean_interval(values, self.confidence)


def findings(
    experiment: Experiment,
    effort: str,
    columns: Mapping[str, Sequence[Figure]],
    seeds: Sequence[int],
) -> tuple[Finding, ...]:
    """Judge all expectations of an effort by its table of results."""
    factors = experiment.grids[effort].factors
    keys = [*zip(columns["seed"], *[columns[each.name] for each in factors], strict=True)]
    judged = [each for each in experiment.expectations if each.only in ("", effort)]
    values = [dict(zip(keys, columns[each.measure], strict=True)) for each in judged]
    grids = [MeasuredGrid(factors, seeds, each) for each in values]
    return tuple(map(judge, judged, grids))


def _mean(values: Iterable[Figure]) -> float | None:
    numbers = []
    for value in values:
        if value is None or isinstance(value, str):
            return None
        numbers.append(float(value))
    return fmean(numbers)


def judge(expectation: Expectation, grid: MeasuredGrid) -> Finding:
    """Judge one expectation."""
    cells = tuple(_cells(expectation, grid))
    return Finding(expectation, worst([cell.outcome for cell in cells]), cells)


def _cells(expectation: Expectation, grid: MeasuredGrid) -> Iterator[Cell]:
    compare = expectation.compare
    inside = {*expectation.over, expectation.along, compare.factor if compare else ""}
    free = [factor for factor in grid.factors if factor.name not in inside]
    wanted = [expectation.where.get(factor.name, factor.labels) for factor in free]
    for combination in product(*wanted):
        levels = {factor.name: each for factor, each in zip(free, combination, strict=True)}
        label = ", ".join(f"{name} {each}" for name, each in levels.items())
        if expectation.along:
            yield _direction(expectation, grid, levels, label)
        elif compare:
            for second in _seconds(compare, grid):
                name = " / " if compare.kind == "ratio" else " - "
                pair = f"{compare.first}{name}{second}"
                samples = _compared(expectation, grid, levels, compare, second)
                yield _bounded(expectation, grid, ", ".join(filter(None, [label, pair])), samples)
        else:
            samples = _samples(expectation, grid, levels)
            yield _bounded(expectation, grid, label, samples)


def _samples(expectation: Expectation, grid: MeasuredGrid, levels: Levels) -> Samples:
    over = {
        factor.name: expectation.where.get(factor.name, factor.labels)
        for factor in grid.factors
        if factor.name in expectation.over
    }
    return grid.samples(levels, over)


def _seconds(compare: Comparison, grid: MeasuredGrid) -> list[Label]:
    if compare.second is not None:
        return [compare.second]
    (labels,) = [factor.labels for factor in grid.factors if factor.name == compare.factor]
    return [label for label in labels if label != compare.first]


def _compared(
    expectation: Expectation, grid: MeasuredGrid, levels: Levels, compare: Comparison, second: Label
) -> Samples:
    first, other = (
        _samples(expectation, grid, {**levels, compare.factor: label})
        for label in (compare.first, second)
    )
    return _combined(compare.kind, first, other)


def _combined(kind: str, samples: Samples, others: Samples) -> Samples:
    """Return the ratio or the difference of two values of each seed, if both are known."""

    def of_two(a: float | None, b: float | None) -> float | None:
        if a is None or b is None or (kind == "ratio" and not b):
            return None
        return a / b if kind == "ratio" else a - b

    return tuple([of_two(a, b) for a, b in zip(samples, others, strict=True)])


def _bounded(expectation: Expectation, grid: MeasuredGrid, label: str, samples: Samples) -> Cell:
    interval = grid.interval(samples)
    if interval is None:
        return Cell(label, None, Outcome.UNDETERMINED)
    low, high = expectation.at_least, expectation.at_most
    outcome = Outcome.UNDETERMINED
    if (low is None or interval.low >= low) and (high is None or interval.high <= high):
        outcome = Outcome.HOLDS
    elif (low is not None and interval.high < low) or (high is not None and interval.low > high):
        outcome = Outcome.BROKEN
    return Cell(label, interval, outcome)


def _direction(expectation: Expectation, grid: MeasuredGrid, levels: Levels, label: str) -> Cell:
    """Judge the change from the first level to the last, or the first step against it."""
    (factor,) = [factor for factor in grid.factors if factor.name == expectation.along]
    labels = expectation.where.get(factor.name, factor.labels)
    sign = 1 if expectation.is_rising else -1
    lines = [_samples(expectation, grid, {**levels, factor.name: each}) for each in labels]
    last = len(labels) - 1
    ways = [(0, last), *pairwise(range(last + 1))]
    # All steps together may be wrong by chance no more often than a single one.
    shared = grid._replace(confidence=1 - (1 - grid.confidence) / last)
    changes = [
        (grid if number == 0 else shared).interval(
            _combined("difference", lines[after], lines[before])
        )
        for number, (before, after) in enumerate(ways)
    ]
    against = [_above_0(each, -sign) for each in changes]
    shown, outcome = 0, Outcome.UNDETERMINED
    if any(against):
        shown, outcome = against.index(True), Outcome.BROKEN
    elif None not in changes and _above_0(changes[0], sign):
        outcome = Outcome.HOLDS
    before, after = ways[shown]
    path = f"{factor.name} from {labels[before]} to {labels[after]}"
    return Cell(", ".join(filter(None, [label, path])), changes[shown], outcome)


def _above_0(interval: Interval | None, sign: int) -> bool:
    """Return whether the interval, times ``sign`` (1 or -1), lies above 0."""
    return interval is not None and (interval.low if sign > 0 else -interval.high) > 0
