"""An aggregate, control or reading that nobody knows is an error, never taken for another one."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from model.slack import requirement_claims
from model.slack.evidence import truth_of
from model.slack.requirement import requirement_of
from model.slack.rules import Coverage, Factor, law, slack_us
from model.vocabulary import SlackConfig, WatermarkConfig, Workload
from model.watermark.evidence import share_of
from model.watermark.machine import Task
from model.windows.query import aggregate_of
from tests.model.slack.strategies import stream_of

WORKLOAD = Workload("slack", stream_of((1, 1.0), (2, -1.0)), {"size_us": 10, "slide_us": 10})


def unknown(config: Any, **settings: str) -> Any:
    """Return a query with settings that its own check would refuse."""
    for name, value in settings.items():
        object.__setattr__(config, name, value)
    return config


def answer_of_truth(config: SlackConfig) -> object:
    truth = truth_of(WORKLOAD)
    unknown(truth.config, aggregate=config.aggregate)
    return truth.aggregate([1.0, 2.0])


def claim_of_coverage(config: SlackConfig) -> object:
    truth = truth_of(WORKLOAD)
    unknown(truth.config, aggregate=config.aggregate)
    return requirement_claims._enough(truth, (0, 0, "a"), 2, (0, 0))


@pytest.mark.parametrize("ask", [aggregate_of, requirement_of, answer_of_truth, claim_of_coverage])
@pytest.mark.parametrize("sampling", ["exchangeable", "adversarial"])
def test_an_unknown_aggregate(ask: Callable[[SlackConfig], object], sampling: str) -> None:
    ask(SlackConfig(10, 10, sampling=sampling))
    with pytest.raises((KeyError, ValueError)):
        ask(unknown(SlackConfig(10, 10, sampling=sampling), aggregate="product"))


def test_an_unknown_control() -> None:
    config = unknown(SlackConfig(10, 10), control="guess")
    with pytest.raises(ValueError, match="there is no control 'guess'"):
        slack_us(config, 0.5, 10)
    with pytest.raises(KeyError):
        law(config, Factor(), Coverage(1, 2, 2))


def test_an_unknown_reading() -> None:
    config = unknown(WatermarkConfig(10, 10, 5), reading="guess")
    with pytest.raises(KeyError):
        Task(config, 0).arrive(WORKLOAD.arrivals[0], 0)
    with pytest.raises(KeyError):
        share_of("guess", Fraction(1, 2))
