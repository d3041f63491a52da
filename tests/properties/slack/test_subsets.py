"""Required coverage from values, against every subset and against a literal implementation."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations
from math import ceil, comb, inf, isfinite, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.slack.subsets import (
    adversarial_average,
    adversarial_sum,
    failures_allowed,
    permuted_sum,
    rigorous_average,
    rigorous_sum,
)

EPSILONS = (0.05, 0.2, 0.34)
POSITIVE = st.lists(st.integers(0, 40).map(float), min_size=1, max_size=8)
ANY = st.lists(st.integers(-9, 40).map(float), min_size=1, max_size=8)
LONGER = st.lists(st.integers(0, 4_000).map(lambda n: n / 16), min_size=1, max_size=200)


def share_of_failures(values: Sequence[float], n: int, eps: float, average: bool) -> Fraction:
    """Return the share of all n-subsets whose sum, or average, is eps off or more."""
    exact = [Fraction(value) for value in values]
    right = sum(exact, Fraction()) / (len(exact) if average else 1)
    limit = Fraction(str(eps)) * abs(right)
    failed = 0
    for subset in combinations(exact, n):
        answer = sum(subset, Fraction()) / (n if average else 1)
        failed += abs(answer - right) >= limit
    return Fraction(failed, comb(len(values), n))


def fewest(values: Sequence[float], eps: float, average: bool) -> int:
    """Return the smallest n from which on no subset fails."""
    n = len(values)
    least = 1 if average else 0
    while n > least and share_of_failures(values, n - 1, eps, average) == 0:
        n -= 1
    return n


@given(POSITIVE, st.sampled_from(EPSILONS))
def test_against_an_adversary_no_subset_fails(values: list[float], eps: float) -> None:
    assert adversarial_sum(values, eps) == fewest(values, eps, average=False)


@given(ANY, st.sampled_from(EPSILONS))
def test_against_an_adversary_no_average_fails(values: list[float], eps: float) -> None:
    assert adversarial_average(values, eps) == fewest(values, eps, average=True)


@given(POSITIVE, st.sampled_from(EPSILONS), st.sampled_from((0.05, 0.3)))
def test_bounds_leave_few_subsets_that_fail(values: list[float], eps: float, d: float) -> None:
    for n in range(rigorous_sum(values, eps, d), len(values)):
        assert share_of_failures(values, n, eps, average=False) <= Fraction(str(d))
    for n in range(rigorous_average(values, eps, d), len(values)):
        assert share_of_failures(values, n, eps, average=True) <= Fraction(str(d))


# ------------------------------------------------------------------------- the text, word by word


def passing(values: list[float], eps: float, d: float) -> Iterator[int]:
    """Return the numbers of missing tuples that pass a test of a rigorous sum."""
    ordered = sorted(values, reverse=True)
    total, squares = sum(ordered), sum(value * value for value in ordered)
    n = len(ordered)
    mean = total / n
    variance = max(0.0, squares / n - mean * mean)
    lost = 0.0
    for m, value in enumerate(ordered, start=1):
        lost += value
        limit = eps * total * (1 - 1e-9)
        t = limit / m - mean
        below = (1 - (m - 1) / n) * (ordered[0] - ordered[-1]) ** 2
        other = 2 * (variance + (ordered[0] - mean) * t / 3)
        if (
            lost < limit
            or (t > 0 and below > 0 and 2 * m * t**2 / below >= log(1 / d))
            or (t > 0 and other > 0 and m * t**2 / other >= log(1 / d))
        ):
            yield m


SKEWED = st.builds(
    lambda n, few: [1.0] * n + few,
    st.integers(100, 600),
    st.lists(st.sampled_from([12.5, 30.0, 50.0]), min_size=1, max_size=12),
)
"""Many values of 1 beside a few large ones, for which Bernstein's inequality is the best."""
UNITS = st.sampled_from((1.0, 2.0**-300, 2.0**500, 2.0**508, 2.0**1010))
"""Units of values; squares, or sums as well, of the large ones may leave float64."""


@given(LONGER | SKEWED, UNITS, st.sampled_from(EPSILONS), st.sampled_from((0.05, 0.3)))
def test_a_rigorous_sum_misses_as_many_as_pass(
    values: list[float], unit: float, eps: float, d: float
) -> None:
    scaled = [value * unit for value in sorted(values, reverse=True)]
    is_known = isfinite(sum(scaled)) and isfinite(sum(each * each for each in scaled))
    most = max(passing(values, eps, d), default=0) if is_known else 0
    assert rigorous_sum(scaled, eps, d) == len(values) - most


@given(LONGER, UNITS, st.sampled_from(EPSILONS), st.sampled_from((0.05, 0.3)))
def test_the_unit_of_values_is_free_unless_their_sum_leaves_float64(
    values: list[float], unit: float, eps: float, d: float
) -> None:
    scaled = [value * unit for value in sorted(values, reverse=True)]
    is_known = isfinite(sum(scaled))
    for rule in (adversarial_sum, adversarial_average):
        assert rule(scaled, eps) == (rule(values, eps) if is_known else len(values))
    few, few_scaled = values[:5], [value * unit for value in values[:5]]
    required = permuted_sum(few, eps, d, (1, 2)) if isfinite(sum(few_scaled)) else len(few)
    assert permuted_sum(few_scaled, eps, d, (1, 2)) == required


@given(LONGER, st.floats(-9, -0.001), st.sampled_from(EPSILONS), st.sampled_from((0.05, 0.3)))
def test_a_sum_with_a_negative_value_needs_every_tuple(
    values: list[float], negative: float, eps: float, d: float
) -> None:
    values = [*values, negative]
    assert adversarial_sum(values, eps) == rigorous_sum(values, eps, d) == len(values)
    assert permuted_sum(values, eps, d, (1, 2)) == len(values)


@given(LONGER, st.sampled_from(EPSILONS), st.sampled_from((0.05, 0.3)))
def test_a_rigorous_average_is_the_fewest_that_the_inequality_allows(
    values: list[float], eps: float, d: float
) -> None:
    total, mean = len(values), sum(values) / len(values)
    width = max(values) - min(values)

    def bound(n: int) -> float:
        """Return ln of twice Serfling's bound on the probability to be off by eps * mean."""
        if width == 0:
            return -inf
        return log(2) - 2 * n * (eps * mean / width) ** 2 / (1 - (n - 1) / total)

    n = rigorous_average(values, eps, d)
    assert 1 <= n <= total
    if mean == 0:
        assert n == total
        return
    assert n == total or bound(n) <= log(d) + 1e-6
    assert n == 1 or bound(n - 1) > log(d) - 1e-6


def permuted(values: list[float], eps: float, d: float, seed: tuple[int, int]) -> int:
    """Return the requirement of the permutation test, with lists and loops."""
    ordered = sorted(values, reverse=True)
    n = len(ordered)
    size = min(n, 1024)
    orders = ceil(10 / d)
    sample = [ordered[i * n // size] for i in range(size)]
    permutations, missing = [list(sample) for _ in range(orders)], [0.0] * orders
    generator = np.random.Generator(np.random.PCG64(list(seed)))
    for step in range(size):
        for row, u in enumerate(generator.random(orders).tolist()):
            permutation, other = permutations[row], step + int(u * (size - step))
            permutation[step], permutation[other] = permutation[other], permutation[step]
            missing[row] += permutation[step]
        failed = sum(lost >= eps * sum(sample) * (1 - 1e-9) for lost in missing)
        if failed > failures_allowed(orders, d):
            return n - step * n // size
    raise AssertionError


@pytest.mark.parametrize("d", [0.025, 0.1])
@pytest.mark.parametrize("total", [1, 2, 40, 1_024, 1_025, 3_000])
def test_permutations_are_those_of_the_text(total: int, d: float) -> None:
    values = np.random.default_rng(total).integers(0, 500, total).astype(float).tolist()
    for eps in (0.05, 0.3)[: 1 if total > 1_000 else 2]:
        seed = (total, 7)
        assert permuted_sum(values, eps, d, seed) == permuted(values, eps, d, seed)


def test_failures_that_are_allowed_are_those_of_a_binomial() -> None:
    def at_most(failed: int, orders: int, d: float) -> float:
        return sum(comb(orders, i) * d**i * (1 - d) ** (orders - i) for i in range(failed + 1))

    for orders, d in ((400, 0.025), (200, 0.05), (100, 0.1), (20, 0.5)):
        allowed = failures_allowed(orders, d)
        assert at_most(allowed, orders, d) <= 0.05 < at_most(allowed + 1, orders, d)
    assert failures_allowed(5, 0.05) == -1


# ------------------------------------------------------------------------------------- the edges


def test_a_loss_that_equals_eps_is_a_failure_however_it_is_rounded() -> None:
    """In float64 7 < 0.07 * 100."""
    ones = [1.0] * 100
    assert adversarial_sum(ones, 0.07) == 94
    assert rigorous_sum(ones, 0.07, 0.05) == 94
    assert permuted_sum(ones, 0.07, 0.05, (0, 0)) == 94


def test_the_order_of_the_values_makes_no_difference() -> None:
    values = np.random.default_rng(1).exponential(1.0, 60).tolist()
    for rule in (adversarial_sum, adversarial_average):
        assert rule(values, 0.1) == rule(values[::-1], 0.1)
    assert permuted_sum(values, 0.1, 0.1, (1, 2)) == permuted_sum(values[::-1], 0.1, 0.1, (1, 2))
    assert permuted_sum(values, 0.1, 0.1, (1, 2)) != permuted_sum(values, 0.1, 0.1, (1, 3))


@pytest.mark.parametrize("values", [[0.0, 0.0], [1e308, 1e308, 0.0], [-1.0, 5.0, 9.0]])
def test_sums_without_a_relative_error_need_every_tuple(values: list[float]) -> None:
    assert adversarial_sum(values, 0.9) == len(values)
    assert rigorous_sum(values, 0.9, 0.5) == len(values)
    assert permuted_sum(values, 0.9, 0.5, (0, 0)) == len(values)


@pytest.mark.parametrize("values", [[0.0, 0.0], [1e308, 1e308, 0.0], [-5.0, 5.0], [1e-300, 2e-300]])
def test_averages_without_a_relative_error_need_every_tuple(values: list[float]) -> None:
    assert rigorous_average(values, 0.5, 0.5) == len(values)
    if values[0] != 1e-300:
        assert adversarial_average(values, 0.9) == len(values)


def test_squares_beyond_float64_leave_the_worst_case() -> None:
    values = [1e200] * 100
    assert adversarial_sum(values, 0.1) == 91
    assert rigorous_sum(values, 0.1, 0.1) == 100
