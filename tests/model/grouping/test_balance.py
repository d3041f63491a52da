"""Imbalance: two ways to lambda*, the optimum by trying everything, and the bounds."""

from itertools import product
from math import exp, log

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from model.grouping import balance
from model.grouping.balance import Masses, masses

TIMES = st.lists(st.sampled_from((1, 2, 5, 10)), min_size=1, max_size=5)


@st.composite
def spread(draw: st.DrawFn) -> tuple[list[int], Masses]:
    """Draw times, and counts of keys with candidates among these instances."""
    times_us = draw(TIMES)
    instances = st.sets(st.integers(0, len(times_us) - 1), min_size=1).map(frozenset)
    pairs = draw(st.lists(st.tuples(instances, st.integers(1, 4)), min_size=1, max_size=4))
    return times_us, masses(pairs)


@given(case=spread())
def test_splitting_and_subsets_agree(case: tuple[list[int], Masses]) -> None:
    times_us, given = case
    by_subsets = balance.least_time_us(given, times_us)
    assert balance.least_time_by_splitting_us(given, times_us) == pytest.approx(by_subsets)


def best_by_trying(given: Masses, times_us: list[int]) -> int:
    """Return the smallest makespan of all ways to send whole tuples to candidates."""
    tuples = [sorted(instances) for instances, count in given.items() for _ in range(int(count))]
    return min(
        max(time_us * ways.count(i) for i, time_us in enumerate(times_us))
        for ways in product(*tuples)
    )


@given(case=spread())
def test_no_way_is_better_than_lambda_and_a_fluid_is_not_far(
    case: tuple[list[int], Masses],
) -> None:
    times_us, given = case
    assume(sum(given.values()) <= 6)
    bound, best = balance.least_time_us(given, times_us), best_by_trying(given, times_us)
    # A split with whole tuples needs at most one tuple more at an instance.
    assert bound * (1 - 1e-9) <= best <= bound + max(times_us)


def test_subsets_are_refused_where_there_are_too_many() -> None:
    with pytest.raises(ValueError, match="there are 17 instances"):
        balance.least_time_us({}, [1] * 17)


def test_seventeen_instances_by_splitting() -> None:
    pairs = [(frozenset({i, (i + 1) % 17}), 1.0) for i in range(17)]
    assert balance.least_time_by_splitting_us(masses(pairs), [1] * 17) == pytest.approx(1.0)


# ------------------------------------------------------------------------------------- the bound


def plainly(a: float, lambda_us: float, m: int, times_us: list[int], delta: float) -> float:
    """Evaluate the formula of the page for one a, as it stands there."""
    largest = max(times_us)
    growth = (exp(a * largest) - 1) / (a * largest)
    terms = sum((exp(a * largest) - 1) / (exp(a * time_us) - 1) for time_us in times_us)
    return lambda_us * m * growth + log(terms / delta) / a


@given(times=TIMES, m=st.integers(1, 5_000), scale=st.sampled_from((0.9, 1.0, 3.0)))
def test_the_bound_is_the_least_of_the_formula(times: list[int], m: int, scale: float) -> None:
    lambda_us = scale / balance.total_speed(times)
    found = balance.largest_work_us(lambda_us, m, times, 1e-9)
    tried = min(plainly(10 ** (e / 20), lambda_us, m, times, 1e-9) for e in range(-120, 20))
    assert tried * 0.98 <= found <= tried * 1.000001
    assert found >= lambda_us * m


@pytest.mark.parametrize("m", [1, 10, 10**9])
@pytest.mark.parametrize("times_us", [[1], [1, 10**9], [10**6] * 128])
def test_the_bound_is_stable(m: int, times_us: list[int]) -> None:
    lambda_us = 1 / balance.total_speed(times_us)
    found = balance.largest_work_us(lambda_us, m, times_us, 1e-9)
    # Twenty logarithms' worth of the largest time, and the deviation that they allow.
    extra = max(times_us) * 60 + (2 * lambda_us * m * max(times_us) * 60) ** 0.5
    assert lambda_us * m <= found <= lambda_us * m + extra


def test_the_bound_grows_with_its_confidence() -> None:
    found = [balance.largest_work_us(0.25, 1_000, [1] * 4, delta) for delta in (0.5, 1e-3, 1e-9)]
    assert found == sorted(found)
    assert 250 < found[0] < found[2] < 400


# ------------------------------------------------------------------------------- uniform pairs


@given(n=st.integers(2, 8), times_slower=st.integers(1, 20), data=st.data())
def test_uniform_pairs_are_no_better_than_lambda(
    n: int, times_slower: int, data: st.DataObject
) -> None:
    slow = data.draw(st.integers(1, n - 1))
    times_us = [times_slower] * slow + [1] * (n - slow)
    pairs = [(frozenset({i, j}), 1.0) for i in range(n) for j in range(n) if i != j]
    shares = {pair: mass / len(pairs) for pair, mass in masses(pairs).items()}
    rho = balance.least_time_us(shares, times_us) * balance.total_speed(times_us) - 1
    assert balance.rho_of_uniform_pairs(n, slow, times_slower, 1.0) <= rho + 1e-9


@pytest.mark.parametrize(("n", "rho"), [(4, 0.83), (16, 1.57), (64, 1.71), (10**6, 1.75)])
def test_half_the_workers_ten_times_slower(n: int, rho: float) -> None:
    assert balance.rho_of_uniform_pairs(n, n // 2, 10, 1.0) == pytest.approx(rho, abs=0.005)


def test_imbalance_is_never_more_than_all_on_one() -> None:
    assert balance.imbalance([7, 0, 0, 0], [1, 9, 9, 9]) == 3
    assert balance.rho([7, 0, 0, 0], [1, 1, 1, 1]) == 3
