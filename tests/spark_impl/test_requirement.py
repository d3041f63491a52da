"""Required coverage: by hand, against formulas one window at a time, against all subsets."""

import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from model.vocabulary import SlackConfig
from model.vocabulary.settings import PlainData
from spark_impl.slack.requirement import required_tuples, squared_cv
from tests.spark_impl import brute_requirement as brute

BY_VALUES: list[dict[str, PlainData]] = [
    {"aggregate": "sum", "method": "permutation"},
    {"aggregate": "sum", "method": "rigorous"},
    {"aggregate": "sum", "sampling": "adversarial"},
    {"aggregate": "avg", "method": "rigorous"},
    {"aggregate": "avg", "sampling": "adversarial"},
]
BY_RANK: list[dict[str, PlainData]] = [
    {"aggregate": "median"},
    {"aggregate": "median", "sampling": "adversarial"},
    *({"aggregate": "quantile", "q": q} for q in (0.1, 0.9, 0.99)),
    {"aggregate": "quantile", "q": 0.9, "sampling": "adversarial"},
]


def config(**settings: Any) -> SlackConfig:
    return SlackConfig(**{"size_us": 10, "slide_us": 10, **settings})


def n_req(total: int, cv2: float = 0.0, **settings: Any) -> int:
    return int(required_tuples(config(**settings), np.array([total]), np.array([cv2]))[0])


def n_req_of(values: list[float], **settings: Any) -> int:
    down = np.array(sorted(values, reverse=True))
    total, negative = np.array([len(values)]), np.array([min(values) < 0])
    found = required_tuples(config(**settings), total, np.array([0.0]), down, has_negative=negative)
    return int(found[0])


# -- formulas that need no values, by hand ---------------------------------------------------------


def test_count_takes_eps_as_the_decimal_that_was_written() -> None:
    # 0.1 * 30 is 3 exactly, and 3.0000000000000004 in float64
    assert n_req(30, aggregate="count", eps=0.1) == 30 - 3 + 1
    assert n_req(31, aggregate="count", eps=0.1) == 31 - 4 + 1
    assert n_req(1, aggregate="count", eps=0.1) == 1
    assert n_req(30, aggregate="count", eps=np.float64(0.1)) == 30 - 3 + 1


def test_given_share_is_rounded_up_exactly() -> None:
    assert n_req(10, lambda_thr=0.7) == 7
    assert n_req(11, lambda_thr=0.7) == 8
    assert n_req(3, lambda_thr=1.0) == 3


def test_equal_values_need_the_share_that_eps_leaves() -> None:
    # cv = 0: u = (2e + 0 - 0) / 2 = e
    assert n_req(100, eps=0.05) == 96
    assert n_req(100, aggregate="avg", eps=0.05) == 1


def test_sum_and_average_by_hand() -> None:
    # delta/2 = 0.02275 is two standard deviations: z = 2, a = 4 * 1 / 100 = 0.04,
    # u = (0.2 + 0.04 - sqrt(0.0016 + 0.0144)) / 2.08 = 0.05457
    two_sigma = 0.0227501319
    assert n_req(100, cv2=1.0, eps=0.1, delta=2 * two_sigma) == 95
    # avg under fixed control: level delta, two-sided: z = 2,
    # 4 / (4 + 101 * 0.01) * 101 = 80.6
    average = {"aggregate": "avg", "eps": 0.1, "delta": 2 * two_sigma, "control": "fixed"}
    assert n_req(101, cv2=1.0, **average) == 81


def test_extremes_require_nothing_under_fixed_control() -> None:
    assert n_req(10, aggregate="min", control="fixed") == 0


def test_coefficient_of_variation() -> None:
    # values 1 and 3: n = 2, S1 = 4, S2 = 10: 2 * 10 / 16 - 1 = 0.25
    moments = np.array([2, 1, 3]), np.array([4.0, 0.0, 3.0]), np.array([10.0, 0.0, 3.0])
    assert squared_cv(config(), *moments).tolist() == [0.25, 0.0, 0.0]
    assert squared_cv(config(cv=0.5), *moments).tolist() == [0.25] * 3


@pytest.mark.parametrize(
    ("s1", "s2"), [(1e200, 1e308), (1e200, np.inf), (1e-200, 0.0), (2.0, 1e308)]
)
def test_moments_that_float64_cannot_hold_require_everything(s1: float, s2: float) -> None:
    cv2 = squared_cv(config(), np.array([4]), np.array([s1]), np.array([s2]))
    assert n_req(50, cv2=float(cv2[0])) == 50
    assert n_req(50, cv2=float(cv2[0]), aggregate="avg") == 50


# -- formulas that need the values, by hand --------------------------------------------------------


def test_losing_exactly_eps_is_too_much() -> None:
    # in float64 7 < 0.07 * 100
    assert n_req_of([1.0] * 100, eps=0.07, sampling="adversarial") == 94
    assert n_req_of([1.0] * 100, eps=0.07, method="permutation") == 94


def test_the_largest_may_be_the_missing_ones() -> None:
    # 10 of 40 is a quarter, 19 of 40 is less than a half
    values = [10.0, 9.0, 8.0, 7.0, 6.0]
    assert n_req_of(values, eps=0.25, sampling="adversarial") == 5
    assert n_req_of(values, eps=0.5, sampling="adversarial") == 3
    # mean 8 of 6 ... 10: without the largest 7.5, without the two largest 7
    assert n_req_of(values, aggregate="avg", eps=0.1, sampling="adversarial") == 4
    assert n_req_of(values, aggregate="avg", eps=0.125, sampling="adversarial") == 4
    assert n_req_of(values, aggregate="avg", eps=0.126, sampling="adversarial") == 3


@pytest.mark.parametrize("settings", BY_VALUES)
@pytest.mark.parametrize("values", [[0.0] * 5, [1e308] * 5, [3.0, -1.0, -2.0], [7.0]])
def test_values_without_a_relative_error_require_everything(
    settings: dict[str, PlainData], values: list[float]
) -> None:
    assert n_req_of(values, **settings, control="fixed") == len(values)


def test_values_of_one_size_need_a_single_one_for_their_average() -> None:
    assert n_req_of([3.0] * 100, aggregate="avg", method="rigorous") == 1


# -- against one formula a window ------------------------------------------------------------------


@pytest.mark.parametrize("aggregate", ["sum", "avg", "count"])
@pytest.mark.parametrize("eps", [0.05, 0.1, 0.5])
def test_formulas_without_values_equal_one_window_at_a_time(aggregate: str, eps: float) -> None:
    asked = config(aggregate=aggregate, eps=eps)
    sizes = list(range(1, 61))
    for cv2 in (0.0, 0.25, 4.0):
        found = required_tuples(asked, np.array(sizes), np.full(60, cv2))
        assert found.tolist() == [brute.required(asked, n, cv2, [], 0, 0) for n in sizes]


@pytest.mark.parametrize("settings", BY_VALUES)
def test_many_windows_at_once_equal_one_at_a_time(settings: dict[str, PlainData]) -> None:
    draw = random.Random(repr(settings))
    for eps, delta in [(0.05, 0.05), (0.3, 0.4), (0.5, 0.9)]:
        asked = config(**settings, eps=eps, delta=delta)
        windows = [_values(draw, draw.choice([1, 2, 5, 20, 90])) for _ in range(40)]
        order, task = draw.randrange(5), draw.randrange(3)
        flat = np.concatenate([sorted(values, reverse=True) for values in windows])
        total = np.array([len(values) for values in windows])
        found = required_tuples(asked, total, np.zeros(40), flat, task, order)
        assert found.tolist() == [
            brute.required(asked, len(values), 0.0, values, task, order + i)
            for i, values in enumerate(windows)
        ]


def test_large_windows_are_sampled() -> None:
    draw = random.Random(5)
    asked = config(method="permutation", delta=0.8, eps=0.02)
    windows = [[draw.expovariate(1) for _ in range(size)] for size in (1024, 1025, 3000)]
    flat = np.concatenate([sorted(values, reverse=True) for values in windows])
    found = required_tuples(asked, np.array([1024, 1025, 3000]), np.zeros(3), flat, 1, 7)
    expected = [brute.required(asked, len(v), 0.0, v, 1, 7 + i) for i, v in enumerate(windows)]
    assert found.tolist() == expected
    assert all(need < len(values) for need, values in zip(expected, windows, strict=True))


def _values(draw: random.Random, size: int) -> list[float]:
    kind = draw.choice(["whole", "real", "equal", "one large", "zeros"])
    if kind == "whole":
        return [float(draw.randrange(10)) for _ in range(size)]
    if kind == "real":
        return [draw.lognormvariate(0, 1) for _ in range(size)]
    if kind == "equal":
        return [draw.choice([0.1, 3.0])] * size
    return [0.0] * (size - 1) + [1.0 if kind == "one large" else 0.0]


# -- against all subsets ---------------------------------------------------------------------------


SMALL = [[float(i * i % 7 + i) for i in range(1, n + 1)] for n in range(1, 9)]


def _error(values: list[float], aggregate: str) -> Callable[[list[float]], bool]:
    """Return whether an answer from some of the values has an error of eps or more, times 10."""
    whole = Fraction(sum(values)) / (len(values) if aggregate == "avg" else 1)

    def off(kept: list[float]) -> bool:
        answer = Fraction(sum(kept)) / (len(kept) if aggregate == "avg" else 1)
        return abs(answer - whole) >= Fraction(3, 10) * whole

    return off


@pytest.mark.parametrize("aggregate", ["sum", "avg"])
def test_adversarial_is_the_least_that_no_subset_breaks(aggregate: str) -> None:
    for values in SMALL:
        off = _error(values, aggregate)
        need = n_req_of(values, aggregate=aggregate, sampling="adversarial", eps=0.3)
        worst = [brute.failing_share(values, n, off) for n in range(1, len(values) + 1)]
        safe = [n for n in range(1, len(values) + 1) if not any(worst[n - 1 :])]
        assert need == safe[0]


@pytest.mark.parametrize("settings", BY_VALUES[:2] + BY_VALUES[3:4])
def test_requirement_by_values_keeps_the_error_below_delta(settings: dict[str, PlainData]) -> None:
    reached = 0
    for values in SMALL:
        off = _error(values, settings["aggregate"])
        need = n_req_of(values, **settings, eps=0.3, delta=0.4, control="fixed")
        for n in range(need, len(values) + 1):
            assert brute.failing_share(values, n, off) <= 0.4
        reached += need < len(values)
    assert reached


@pytest.mark.parametrize("settings", BY_RANK)
def test_ranks_equal_exact_probabilities(settings: dict[str, PlainData]) -> None:
    for total in [*range(1, 25), 60, 101]:
        for eps, delta in [(0.05, 0.05), (0.2, 0.4), (0.5, 0.9), (0.1, 1e-6)]:
            asked = config(**settings, eps=eps, delta=delta, control="max")
            assert n_req(total, **settings, eps=eps, delta=delta, control="max") == brute.rank(
                asked, total
            ), (total, eps, delta)


def test_probability_of_a_rank_error_equals_the_count_of_subsets() -> None:
    q, e = Fraction(1, 2), Fraction(1, 5)
    for total in range(1, 9):
        ranks = [float(rank) for rank in range(1, total + 1)]
        aim, far = -(-total // 2), -(-total // 5)

        def off(kept: list[float], aim: int = aim, far: int = far) -> bool:
            return abs(sorted(kept)[-(-len(kept) // 2) - 1] - aim) >= far

        for n in range(1, total + 1):
            chance = brute.off_by_chance(q, e, total, n)
            assert brute.failing_share(ranks, n, off) == chance
            worst = bool(brute.failing_share(ranks, n, off))
            assert worst == bool(brute.adversarial_rank(q, e, total, n))


def test_ranks_of_large_windows_scan_little_and_miss_nothing() -> None:
    from scipy.stats import hypergeom

    total, c = 30_000, 600
    need = n_req(total, aggregate="median", eps=0.02, delta=0.05)
    n = np.arange(1, total + 1)
    k, r0 = -(-n // 2), total // 2
    p = hypergeom.cdf(k - 1, total, r0 + c - 1, n) + hypergeom.sf(k - 1, total, r0 - c, n)
    assert need == n[p > 0.025][-1] + 1
