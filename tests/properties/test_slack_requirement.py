"""Required coverage (docs/slack.md, 5) by counting every subset.

The question is how often a random subset of exactly n_req tuples gives a wrong answer. No formula
of section 5 is used. Normal forms promise nothing here; ``test_slack_promise.py`` bounds how often
answers that they required are wrong.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations, product
from math import ceil, comb, inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.slack.requirement import (
    WindowFacts,
    cv_squared_of,
    random_quantile,
    requirement_of,
)
from model.slack.requirement import (
    failures as rank_failures,
)
from model.slack.subsets import (
    rigorous_average,
    rigorous_sum,
)
from model.vocabulary import SlackConfig
from model.vocabulary.slack import METHODS
from spark_impl.slack import requirement

EPSILONS = (0.05, 0.2)

# ----------------------------------------------------------------------- every subset is counted

FEW = st.lists(st.integers(0, 40).map(float), min_size=1, max_size=8)
MANY = st.lists(st.integers(0, 4_000).map(lambda n: n / 16), min_size=1, max_size=200)
EPS = st.sampled_from((0.05, 0.2, 0.34))
DELTAS = st.sampled_from((0.05, 0.3))


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


def fewest(is_enough: Sequence[bool], least: int = 1) -> int:
    """Return the smallest n, ``least`` or more, from which on n tuples are enough."""
    n = least + len(is_enough) - 1
    while n > least and is_enough[n - 1 - least]:
        n -= 1
    return n


@given(FEW, EPS, DELTAS)
def test_bounds_leave_few_subsets_that_fail(values: list[float], eps: float, d: float) -> None:
    for n in range(rigorous_sum(values, eps, d), len(values)):
        assert share_of_failures(values, n, eps, average=False) <= Fraction(str(d))
    for n in range(rigorous_average(values, eps, d), len(values)):
        assert share_of_failures(values, n, eps, average=True) <= Fraction(str(d))


@cache
def share_of_wrong_ranks(q: Fraction, eps: Fraction, total: int, n: int) -> Fraction:
    """Return the share of all n-subsets of 1..N whose answer is eps * N ranks off or more."""
    subsets = list(combinations(range(1, total + 1), n))
    aim = ceil(q * total)
    failed = sum(abs(subset[ceil(q * n) - 1] - aim) >= eps * total for subset in subsets)
    return Fraction(failed, len(subsets))


@pytest.mark.parametrize("q", [Fraction(share) for share in ("0.01", "0.5", "0.7", "0.95")])
@pytest.mark.parametrize("eps", [Fraction(eps) for eps in ("0.05", "0.2", "0.34")])
def test_every_subset_of_ranks_is_counted(q: Fraction, eps: Fraction) -> None:
    for total in range(1, 9):
        exact = [share_of_wrong_ranks(q, eps, total, n) for n in range(1, total + 1)]
        found = rank_failures(q, eps, total)
        assert found == pytest.approx([float(each) for each in exact], abs=1e-12)
        for d in (0.025, 0.1, 0.5):  # a probability that equals the level is allowed
            rare = [each <= Fraction(str(d)) for each in exact]
            assert random_quantile(q, eps, d, total) == fewest(rare)
    sizes = np.arange(1, 40)
    for d in (0.025, 0.1, 0.5):
        query = {"control": "pd", "q": float(q), "eps": float(eps), "delta": d}
        config = SlackConfig(1, 1, aggregate="quantile", **query)  # type: ignore[arg-type]  # by name
        on_spark = requirement.required_tuples(config, sizes, np.ones(39), None, has_negative=False)
        assert on_spark.tolist() == [random_quantile(q, eps, d, n) for n in sizes.tolist()]


# ---------------------------------------------------------------------------- counts and ranks


def test_a_count_is_off_by_the_share_that_is_missing() -> None:
    for eps, total in product((*EPSILONS, 0.07, 0.29), range(1, 400)):
        query = SlackConfig(1, 1, aggregate="count", control="max", eps=eps)
        missing = total - requirement_of(query)(WindowFacts(total, 0.0, (), False))
        assert Fraction(missing, total) < Fraction(str(eps)) <= Fraction(missing + 1, total)


# ------------------------------------------------------------------------------------- the edges


@given(MANY, st.floats(-9, -0.001), EPS, DELTAS)
def test_a_sum_with_a_negative_value_needs_every_tuple(
    values: list[float], negative: float, eps: float, d: float
) -> None:
    values = [*values, negative]
    for method in METHODS:
        query = SlackConfig(1, 1, aggregate="sum", method=method, eps=eps, delta=d)
        known = WindowFacts(len(values), 0.0, values, has_negative=True)
        assert requirement_of(query)(known) == len(values)


def test_a_loss_that_equals_eps_is_a_failure_however_it_is_rounded() -> None:
    """In float64 7 < 0.07 * 100."""
    ones = [1.0] * 100
    assert rigorous_sum(ones, 0.07, 0.05) == 94


def test_the_bound_of_serfling_by_hand() -> None:
    # 14 may not be missing: 2*14*(0.3*456/14 - 9.5)^2 = 2.06 < ln(20)*(1 - 13/48) = 2.18.
    assert rigorous_sum([9.0, 10.0] * 24, 0.3, 0.05) == 48 - 13


def test_nothing_is_known_if_a_figure_leaves_float64() -> None:
    assert rigorous_sum([1e200] * 100, 0.07, 0.05) == 100
    assert rigorous_average([1e308] * 3, 0.07, 0.05) == 3
    for values, varies in (([0.0, 0.0], 0.0), ([2.0, -2.0], inf), ([1e-200] * 2, inf)):
        assert cv_squared_of(2, sum(values), sum(each * each for each in values)) == varies
