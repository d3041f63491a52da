"""Required coverage against its definitions, not against its formulas.

Requirements from values and from ranks have tests in ``tests/properties/slack``,
``test_subsets.py`` and ``test_quantiles.py``.
"""

from fractions import Fraction
from math import ceil, inf, sqrt
from statistics import NormalDist
from typing import Any

import pytest

from model.slack.requirement import WindowFacts, cv_squared_of, level, requirement_of
from model.vocabulary import SlackConfig
from model.vocabulary.settings import PlainData

EPSILONS = (0.01, 0.05, 0.07, 0.1, 0.25, 0.5, 0.9)
TOTALS = (1, 2, 3, 10, 20, 57, 100, 1_000, 12_345)


def config(**settings: Any) -> SlackConfig:
    return SlackConfig(1, 1, **settings)


@pytest.mark.parametrize("eps", EPSILONS)
def test_a_count_needs_the_fewest_tuples_whose_missing_share_is_below_eps(eps: float) -> None:
    required = requirement_of(config(aggregate="count", eps=eps))
    for total in range(1, 200):
        enough = [n for n in range(total + 1) if Fraction(total - n, total) < Fraction(str(eps))]
        assert required(WindowFacts(total)) == min(enough)


@pytest.mark.parametrize("share", [0.07, 0.29, 0.58, 0.9, 1.0])
def test_a_share_given_by_hand_is_met_by_the_fewest_tuples(share: float) -> None:
    required = requirement_of(config(aggregate="median", lambda_thr=share))
    for total in range(1, 300):
        enough = [n for n in range(total + 1) if n >= Fraction(str(share)) * total]
        assert required(WindowFacts(total)) == min(enough)


@pytest.mark.parametrize("eps", EPSILONS)
@pytest.mark.parametrize("cv", [0.1, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("delta", [0.01, 0.05, 0.2])
def test_a_sum_needs_the_fewest_tuples_whose_error_is_rare(
    eps: float, cv: float, delta: float
) -> None:
    """The error is the mean of the missing share plus z deviations, without replacement."""
    required = requirement_of(config(aggregate="sum", eps=eps, delta=delta, control="pd"))
    z = NormalDist().inv_cdf(1 - delta)
    for total in TOTALS:

        def error(n: int, total: int = total) -> float:
            missing = 1 - n / total
            return missing + z * cv * sqrt(missing * (1 - missing) / total)

        n = required(WindowFacts(total, cv * cv))
        assert n == total or error(n) <= eps + 1e-6
        assert n == 0 or error(n - 1) > eps - 1e-6


@pytest.mark.parametrize("eps", EPSILONS)
@pytest.mark.parametrize("cv", [0.1, 0.5, 3.0])
def test_an_average_needs_the_fewest_tuples_whose_deviation_is_small(eps: float, cv: float) -> None:
    """The error is z deviations of the mean of n out of N, with N for N - 1 in the correction."""
    required = requirement_of(config(aggregate="avg", eps=eps, delta=0.05, control="pd"))
    z = NormalDist().inv_cdf(1 - 0.05 / 2)
    for total in TOTALS:

        def error(n: int, total: int = total) -> float:
            return z * cv * sqrt((1 - n / total) / n)

        n = required(WindowFacts(total, cv * cv))
        assert 1 <= n <= total
        assert n == total or error(n) <= eps + 1e-6
        assert n == 1 or error(n - 1) > eps - 1e-6


def test_equal_values_leave_only_the_missing_share() -> None:
    required = requirement_of(config(aggregate="sum", eps=0.05))
    assert [required(WindowFacts(total)) for total in (1, 20, 100, 101)] == [1, 20, 96, 96]
    assert requirement_of(config(aggregate="avg", eps=0.05))(WindowFacts(100)) == 1


def test_values_about_which_nothing_is_known_need_every_tuple() -> None:
    for aggregate in ("sum", "avg"):
        assert requirement_of(config(aggregate=aggregate))(WindowFacts(10, inf)) == 10
        assert requirement_of(config(aggregate=aggregate))(WindowFacts(10, 1e308)) == 10


def test_extremes_require_nothing() -> None:
    assert requirement_of(config(aggregate="max", control="fixed"))(WindowFacts(10)) == 0


def test_a_median_is_the_quantile_one_half() -> None:
    for settings in ({}, {"sampling": "adversarial"}, {"control": "fixed"}):
        median = requirement_of(config(aggregate="median", q=0.9, **settings))
        half = requirement_of(config(aggregate="quantile", q=0.5, **settings))
        high = requirement_of(config(aggregate="quantile", q=0.9, **settings))
        totals = [WindowFacts(total) for total in range(1, 200)]
        assert [median(known) for known in totals] == [half(known) for known in totals]
        assert [median(known) for known in totals] != [high(known) for known in totals]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"lambda_thr": 0.5, "sampling": "adversarial"}, 50),
        ({"aggregate": "count", "sampling": "adversarial"}, 91),
        ({"aggregate": "min", "control": "fixed", "sampling": "adversarial"}, 0),
        ({"sampling": "adversarial"}, 91),
        ({"sampling": "adversarial", "method": "permutation"}, 91),
        ({"sampling": "adversarial", "aggregate": "avg"}, 1),
        ({"method": "rigorous"}, 91),
        ({"method": "rigorous", "aggregate": "avg"}, 1),
        ({"method": "permutation"}, 91),
        ({}, 94),
        ({"aggregate": "avg"}, 80),
    ],
)
def test_the_first_rule_that_applies_decides(settings: dict[str, PlainData], expected: int) -> None:
    """Less than a tenth of a hundred equal values may be missing, whatever cv is."""
    query = config(eps=0.1, delta=0.1, **settings)
    assert requirement_of(query)(WindowFacts(100, 1.0, (2.0,) * 100)) == expected


def test_conformal_control_splits_the_budget() -> None:
    assert level(config(delta=0.1)) == 0.05
    assert level(config(delta=0.1, control="pd")) == 0.1


def test_the_estimate_of_cv_is_that_of_the_values() -> None:
    values = [1.0, 2.0, 3.0, 10.0]
    mean = sum(values) / 4
    variance = sum((value - mean) ** 2 for value in values) / 4
    estimate = cv_squared_of(config(), 4, sum(values), sum(value**2 for value in values))
    assert estimate == pytest.approx(variance / mean**2)


def test_cv_is_the_setting_or_nothing_to_start_with() -> None:
    assert cv_squared_of(config(cv=0.5), 7, 3.0, 100.0) == 0.25
    assert cv_squared_of(config(), 3, 0.0, 0.0) == 0.0
    assert cv_squared_of(config(), 2, 2.0, 1.9) == 0.0


def test_sums_beyond_float64_say_nothing() -> None:
    assert cv_squared_of(config(), 2, 2e200, inf) == inf
    assert cv_squared_of(config(), 2, 1e-200, 0.0) == inf


def test_exact_shares_are_not_rounded_up() -> None:
    # In float64 0.58 * 100 is 57.99999999999999 and 0.29 * 100 is 28.999999999999996.
    assert requirement_of(config(lambda_thr=0.58))(WindowFacts(100)) == 58
    assert requirement_of(config(lambda_thr=0.07))(WindowFacts(100)) == 7 != ceil(0.07 * 100)
