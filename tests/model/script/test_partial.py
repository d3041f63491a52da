"""Aggregates of slices are exact and rounded once, for any cut of the values."""

from fractions import Fraction
from math import inf, sqrt

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from model.script.slices import Units, answer, partial_of, to_units

WHOLE = st.integers(-100, 100).map(float)
ANY = st.floats(allow_nan=False, allow_infinity=False).map(lambda value: value + 0.0)


def _rounded(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return inf


@given(st.lists(WHOLE, min_size=1) | st.lists(ANY, min_size=1), st.integers(0))
@example([0.1, 0.2, -0.3], 1)
@example([5e-324, 1e308, 1e308], 2)
def test_aggregates_are_those_of_fractions(values: list[float], at: int) -> None:
    whole, scale = to_units(values)
    cut = at % len(values)
    parts = [
        partial_of(values[slice(*ends)], Units(whole[slice(*ends)], scale))
        for ends in ((0, cut), (cut, len(values)))
        if ends[0] < ends[1]
    ]
    exact = [Fraction(value) for value in values]
    n, total = len(exact), sum(exact, Fraction())
    assert answer("count", parts) == n
    assert answer("sum", parts) == _rounded(total)
    assert answer("avg", parts) == _rounded(total / n)
    assert answer("min", parts) == min(values)
    assert answer("max", parts) == max(values)
    mean = total / n
    variance = sum(((each - mean) ** 2 for each in exact), Fraction()) / n
    assert answer("stddev", parts) == sqrt(_rounded(variance))


@pytest.mark.parametrize(
    ("values", "units"),
    [
        ([], ([], 1)),
        ([3.0, -2.0], ([3, -2], 1)),
        ([3.0, 0.5, -0.25], ([12, 2, -1], 4)),
    ],
)
def test_units_are_the_smallest_that_are_needed(
    values: list[float], units: tuple[list[int], int]
) -> None:
    assert to_units(values) == units
