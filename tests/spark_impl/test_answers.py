"""What the answers say about what they rest on."""

from typing import Any

import pytest

from model.vocabulary import SlackConfig
from spark_impl.slack.answers import assumption

INDEPENDENT = "values exchangeable and independent of delay"


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({}, INDEPENDENT),
        ({"method": "permutation"}, INDEPENDENT),
        ({"aggregate": "avg", "method": "rigorous"}, INDEPENDENT),
        ({"aggregate": "median"}, INDEPENDENT),
        ({"aggregate": "quantile", "q": 0.9}, INDEPENDENT),
        ({"aggregate": "count"}, "none"),
        ({"sampling": "adversarial"}, "none"),
        ({"aggregate": "median", "sampling": "adversarial"}, "none"),
        ({"aggregate": "min", "lambda_thr": 0.9}, "none for the coverage; it says nothing about"),
        ({"control": "pd"}, "no (eps, delta) promise: only the mean"),
        ({"control": "max", "sampling": "adversarial"}, "no (eps, delta) promise"),
    ],
)
def test_assumption_names_what_first_answers_rest_on(settings: dict[str, Any], text: str) -> None:
    assert assumption(SlackConfig(size_us=10, slide_us=5, **settings)).startswith(text)
