"""Required coverage, worked out by hand."""

from typing import Any

import numpy as np
import pytest

from model.vocabulary import SlackConfig
from spark_impl.slack.quality import Law, judge, required, slack_us, squared_cv


def config(**settings: Any) -> SlackConfig:
    return SlackConfig(**{"size_us": 10, "slide_us": 10, **settings})


def n_req(total: int, cv2: float = 0.0, **settings: Any) -> int:
    return int(required(config(**settings), np.array([total]), np.array([cv2]))[0])


def test_count_takes_eps_as_the_decimal_that_was_written() -> None:
    # 0.1 * 30 is 3 exactly, and 3.0000000000000004 in float64
    assert n_req(30, aggregate="count", eps=0.1) == 30 - 3 + 1
    assert n_req(31, aggregate="count", eps=0.1) == 31 - 4 + 1
    assert n_req(1, aggregate="count", eps=0.1) == 1


def test_given_share_is_rounded_up_exactly() -> None:
    assert n_req(10, lambda_thr=0.7) == 7
    assert n_req(11, lambda_thr=0.7) == 8
    assert n_req(3, lambda_thr=1.0) == 3


def test_equal_values_need_the_share_that_eps_leaves() -> None:
    # cv = 0: u = (2e + 0 - 0) / 2 = e
    assert n_req(100, eps=0.05) == 95
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


def test_others_require_nothing_under_fixed_control() -> None:
    assert n_req(10, aggregate="median", control="fixed") == 0


def test_coefficient_of_variation() -> None:
    # values 1 and 3: n = 2, S1 = 4, S2 = 10: 2 * 10 / 16 - 1 = 0.25
    moments = np.array([2, 1, 3]), np.array([4.0, 0.0, 3.0]), np.array([10.0, 0.0, 3.0])
    assert squared_cv(config(), *moments).tolist() == [0.25, 0.0, 0.0]
    assert squared_cv(config(cv=0.5), *moments).tolist() == [0.25] * 3


@pytest.mark.parametrize(
    ("settings", "alpha", "slack"),
    [
        ({"control": "fixed", "fixed_slack_us": 9}, 1.0, 9),
        ({"control": "fixed", "fixed_slack_us": 9, "max_slack_us": 4}, 1.0, 4),
        ({"control": "max"}, 1.0, 7),
        ({}, 0.5, 3),
        ({"control": "pd"}, 3.5, 7),
        ({"control": "pd"}, -1.0, 0),
    ],
)
def test_slack(settings: dict[str, Any], alpha: float, slack: int) -> None:
    assert slack_us(config(**settings), alpha, np.array([7])).tolist() == [slack]


def test_published_law_may_leave_its_range_and_the_clamped_one_not() -> None:
    one = np.array([1])
    arguments = Law(1.0, 0.0, 5), np.array([0]), one, one, np.array([True])
    # err = 1 - 0, alpha = 1 + 0.2 * 1 + 4 * (1 - 0)
    assert judge(config(control="pd"), *arguments) == ([5.2], Law(5.2, 1.0, 6))
    assert judge(config(control="pd-clamped"), *arguments) == ([1.0], Law(1.0, 1.0, 6))
    assert judge(config(control="max"), *arguments) == ([1.0], Law(1.0, 0.0, 6))
