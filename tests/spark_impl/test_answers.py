"""The assumption named with the answers, and readers disturbed by a running query."""

import pytest

from model.vocabulary import SlackConfig
from model.vocabulary.settings import PlainData
from spark_impl.slack.query import assumption

INDEPENDENT = "values exchangeable and independent of delay"
NEARLY_NORMAL = "values exchangeable and independent of delay, missing sum nearly normal"
NOT_OF_THE_VALUE = "none for the coverage; it says nothing about the error of the value"
CONFORMAL = SlackConfig(size_us=10, slide_us=5, gamma_us=0)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({}, NEARLY_NORMAL),
        ({"aggregate": "avg"}, NEARLY_NORMAL),
        ({"method": "permutation"}, INDEPENDENT),
        ({"method": "rigorous"}, INDEPENDENT),
        ({"aggregate": "avg", "method": "rigorous"}, INDEPENDENT),
        ({"aggregate": "median"}, INDEPENDENT),
        ({"aggregate": "quantile", "q": 0.9}, INDEPENDENT),
        ({"aggregate": "count"}, "none"),
        ({"sampling": "adversarial"}, "none"),
        ({"aggregate": "median", "sampling": "adversarial"}, "none"),
        ({"aggregate": "min", "lambda_thr": 0.9}, NOT_OF_THE_VALUE),
        ({"control": "pd"}, "no (eps, delta) promise: only the mean of the coverage is steered"),
        ({"control": "max", "sampling": "adversarial"}, "no (eps, delta) promise"),
    ],
)
def test_assumption_names_what_first_answers_rest_on(
    settings: dict[str, PlainData], text: str
) -> None:
    assert assumption(SlackConfig(size_us=10, slide_us=5, **settings)) == text
