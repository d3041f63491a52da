"""Required coverage of quantiles, against every subset, and for large windows against scipy."""

from fractions import Fraction
from functools import cache
from itertools import combinations
from math import ceil

import numpy as np
import pytest
from scipy.stats import hypergeom

from model.slack.requirement import adversarial_quantile, failures, random_quantile

SHARES = [Fraction(share) for share in ("0.01", "0.25", "0.5", "0.7", "0.95")]
EPSILONS = [Fraction(eps) for eps in ("0.05", "0.2", "0.34")]
LEVELS = (0.025, 0.05, 0.1, 0.5)
TOTALS = range(1, 9)


@cache
def share_of_failures(q: Fraction, eps: Fraction, total: int, n: int) -> Fraction:
    """Return the share of all n-subsets of 1..N whose answer is eps * N ranks off or more."""
    subsets = list(combinations(range(1, total + 1), n))
    aim = ceil(q * total)
    failed = sum(abs(subset[ceil(q * n) - 1] - aim) >= eps * total for subset in subsets)
    return Fraction(failed, len(subsets))


def fewest(total: int, is_enough: list[bool]) -> int:
    """Return the smallest n from which on n tuples are enough."""
    n = total
    while n > 1 and is_enough[n - 2]:
        n -= 1
    return n


@pytest.mark.parametrize("q", SHARES)
@pytest.mark.parametrize("eps", EPSILONS)
def test_every_subset_is_counted(q: Fraction, eps: Fraction) -> None:
    for total in TOTALS:
        exact = [share_of_failures(q, eps, total, n) for n in range(1, total + 1)]
        assert failures(q, eps, total) == pytest.approx([float(each) for each in exact], abs=1e-12)
        for d in LEVELS:
            rare = [each <= Fraction(str(d)) for each in exact]
            assert random_quantile(q, eps, d, total) == fewest(total, rare)
        never = [each == 0 for each in exact]
        assert adversarial_quantile(q, eps, total) == fewest(total, never)


def test_a_probability_that_equals_the_level_is_allowed() -> None:
    """Two of the four 3-subsets of 1..4 have a median other than 2."""
    q, eps = Fraction(1, 2), Fraction(1, 4)
    assert share_of_failures(q, eps, 4, 3) == Fraction(1, 2)
    assert random_quantile(q, eps, 0.5, 4) <= 3
    assert random_quantile(q, eps, 0.499, 4) == 4


@pytest.mark.parametrize("total", [100, 977, 2_000])
@pytest.mark.parametrize("q", SHARES)
@pytest.mark.parametrize("eps", [Fraction("0.01"), Fraction("0.05"), Fraction("0.3")])
def test_probabilities_of_large_windows_are_hypergeometric(
    total: int, q: Fraction, eps: Fraction
) -> None:
    n = np.arange(1, total + 1)
    rank = np.array([ceil(q * int(each)) for each in n])
    aim, off = ceil(q * total), ceil(eps * total)
    expected = np.zeros(total)
    if aim + off <= total:
        expected += hypergeom.cdf(rank - 1, total, aim + off - 1, n)
    if aim - off >= 1:
        expected += hypergeom.sf(rank - 1, total, aim - off, n)
    assert failures(q, eps, total) == pytest.approx(expected, rel=1e-9, abs=1e-11)


def test_the_requirement_is_not_monotone_in_the_size_of_the_window() -> None:
    """A 21st tuple allows the median to be one rank off, and fewer tuples are enough."""
    half, eps = Fraction(1, 2), Fraction("0.05")
    assert random_quantile(half, eps, 0.025, 20) == 20
    assert random_quantile(half, eps, 0.025, 21) == 19
