"""Expectations judged on hand-made tables, and the intervals that they rest on."""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from model.checking.claims import Outcome
from sim.sweep.experiment import Comparison, Expectation, Factor, Level, Reproduction
from sim.sweep.jobs import Figure
from sim.sweep.judging import Finding, MeasuredGrid, judge
from sim.sweep.statistics import mean_interval

POLICY = Factor("policy", tuple([Level(label, {}) for label in ("tag", "pkg", "dag")]))
LOAD = Factor("load", tuple([Level(label, {}) for label in (1, 2, 3)]))
AT_LEAST_10 = Expectation("", "m", Reproduction.REPRODUCED, at_least=10)
TAG_WINS = AT_LEAST_10._replace(compare=Comparison("policy", "tag", None, "ratio"), at_least=2)


def grid(rows: Mapping[Any, Iterable[Figure]], *factors: Factor) -> MeasuredGrid:
    """Make up a grid of values by levels, one value per seed."""
    table: dict[tuple[Figure, ...], Figure] = {}
    seeds = 0
    for levels, samples in rows.items():
        for seed, value in enumerate(samples):
            table[(seed, *levels)] = value
            seeds = max(seeds, seed + 1)
    return MeasuredGrid(factors, range(seeds), table)


def of_one_cell(expectation: Expectation, *samples: Figure) -> Finding:
    return judge(expectation, grid({(): samples}))


@pytest.mark.parametrize(
    ("samples", "outcome"),
    [
        ((11.0, 11.2, 11.4), Outcome.HOLDS),
        ((9.0, 8.8, 9.1), Outcome.BROKEN),
        ((8.0, 12.5, 11.0), Outcome.UNDETERMINED),
        ((10.0,), Outcome.HOLDS),
        ((9.9,), Outcome.BROKEN),
        ((11.0, None, 11.4), Outcome.UNDETERMINED),
        ((11.0, "fast", 11.4), Outcome.UNDETERMINED),
    ],
)
def test_the_whole_interval_has_to_be_on_one_side(
    samples: tuple[Figure, ...], outcome: Outcome
) -> None:
    assert of_one_cell(AT_LEAST_10, *samples).outcome is outcome


def test_levels_are_compared_seed_by_seed() -> None:
    """Seeds differ far more than policies do, and the ratio is known all the same."""
    rows = {("tag",): [30.0, 300.0], ("pkg",): [10.0, 100.0], ("dag",): [15.0, 150.0]}
    found = judge(TAG_WINS, grid(rows, POLICY))
    assert [cell.label for cell in found.cells] == ["tag / pkg", "tag / dag"]
    assert [cell.interval and cell.interval.estimate for cell in found.cells] == [3.0, 2.0]
    assert found.outcome is Outcome.HOLDS
    less = Comparison("policy", "pkg", "tag", "difference")
    found = judge(TAG_WINS._replace(compare=less), grid(rows, POLICY))
    (cell,) = found.cells
    assert cell.interval
    assert (cell.label, cell.interval.estimate) == ("pkg - tag", -110.0)


def test_a_ratio_of_zeros_is_undetermined() -> None:
    rows = {("tag",): [1.0], ("pkg",): [0.0], ("dag",): [1.0]}
    found = judge(TAG_WINS, grid(rows, POLICY))
    assert [cell.outcome for cell in found.cells] == [Outcome.UNDETERMINED, Outcome.BROKEN]
    assert found.outcome is Outcome.BROKEN


def test_where_selects_cells_and_over_merges_them() -> None:
    rows = {
        (policy, load): [10.0 * load * (3 if policy == "tag" else 1)]
        for policy in POLICY.labels
        for load in LOAD.labels
        if isinstance(load, int)
    }
    table = grid(rows, POLICY, LOAD)
    asked = AT_LEAST_10._replace(where={"policy": ("pkg", "dag"), "load": (1, 2)})
    labels = [cell.label for cell in judge(asked, table).cells]
    assert labels == [f"policy {p}, load {n}" for p in ("pkg", "dag") for n in (1, 2)]
    over = AT_LEAST_10._replace(over=("load",), where={"policy": ("pkg",), "load": (1, 3)})
    (cell,) = judge(over, table).cells
    assert cell.interval
    assert cell.interval.estimate == 20.0
    ratio = TAG_WINS._replace(where={"load": (2,)})
    labels = [cell.label for cell in judge(ratio, table).cells]
    assert labels == ["load 2, tag / pkg", "load 2, tag / dag"]


@pytest.mark.parametrize(
    ("rows", "up", "down"),
    [
        ([[1.0, 1.1], [2.0, 2.1], [3.0, 3.1]], Outcome.HOLDS, Outcome.BROKEN),
        ([[1.0, 1.1], [1.0, 1.1], [3.0, 3.1]], Outcome.HOLDS, Outcome.BROKEN),
        ([[1.0, 1.1], [0.5, 0.6], [3.0, 3.1]], Outcome.BROKEN, Outcome.BROKEN),
        ([[1.0, 1.1], [1.0, 1.1], [1.0, 1.1]], Outcome.UNDETERMINED, Outcome.UNDETERMINED),
        ([[1.0, 9.0], [2.0, 2.1], [3.0, 3.1]], Outcome.UNDETERMINED, Outcome.BROKEN),
        ([[1.0, 1.1], [2.0, None], [3.0, 3.1]], Outcome.UNDETERMINED, Outcome.BROKEN),
        ([[1.0], [2.0], [3.0]], Outcome.HOLDS, Outcome.BROKEN),
    ],
)
def test_a_direction_holds_over_all_and_no_step_goes_against_it(
    rows: list[list[Figure]], up: Outcome, down: Outcome
) -> None:
    table = grid({(n,): samples for n, samples in enumerate(rows, 1)}, LOAD)
    asked = AT_LEAST_10._replace(at_least=None, along="load")
    assert judge(asked, table).outcome is up
    assert judge(asked._replace(is_rising=False), table).outcome is down


# ---------------------------------------------------------------------------------------- intervals


def test_a_mean_has_the_limits_of_student() -> None:
    """The deviation of 0, 1 and 2 is 1; t is 4.3027 with two degrees of freedom."""
    found = mean_interval([0.0, 1.0, 2.0], 0.95)
    assert (found.estimate, found.low, found.high) == pytest.approx((1, -1.484, 3.484), abs=1e-3)


def test_bad_values_are_named() -> None:
    with pytest.raises(ValueError, match="confidence is 1; it must be"):
        mean_interval([1, 2, 3], confidence=1)
