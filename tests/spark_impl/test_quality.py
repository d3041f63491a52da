"""The control laws of alpha, worked out by hand."""

from typing import Any

import numpy as np
import pytest

from model.vocabulary import SlackConfig
from model.vocabulary.settings import PlainData
from spark_impl.slack.control_laws import Law, judge, slack_us


def config(**settings: Any) -> SlackConfig:
    return SlackConfig(**{"size_us": 10, "slide_us": 10, **settings})


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
def test_slack(settings: dict[str, PlainData], alpha: float, slack: int) -> None:
    assert slack_us(config(**settings), alpha, np.array([7])).tolist() == [slack]


def test_published_law_may_leave_its_range_and_the_clamped_one_not() -> None:
    one = np.array([1])
    arguments = Law(1.0, 0.0, 5), np.array([0]), one, one, np.array([True])
    # err = 1 - 0, alpha = 1 + 0.2 * 1 + 4 * (1 - 0)
    assert judge(config(control="pd"), *arguments) == ([5.2], Law(5.2, 1.0, 6))
    assert judge(config(control="pd-clamped"), *arguments) == ([1.0], Law(1.0, 1.0, 6))
    assert judge(config(control="max"), *arguments) == ([1.0], Law(1.0, 0.0, 6))
