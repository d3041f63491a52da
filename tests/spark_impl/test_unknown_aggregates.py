"""An aggregate that nobody knows is an error in every module that computes one."""

from dataclasses import asdict
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from model.vocabulary import Event, SlackConfig, WatermarkConfig, Workload
from model.vocabulary.windows import AGGREGATES
from spark_impl import slack, watermark
from spark_impl.slack.requirement import required_tuples
from spark_impl.windows import panes
from spark_impl.windows.room import WindowSettings

UNKNOWN = "mode"
ONE, VALUES = np.array([1]), np.array([2.0])


def with_unknown(config: Any) -> Any:
    """Return settings that no constructor would let through."""
    plain = {name: getattr(config, name) for name in asdict(config)}
    derived = {"windows": config.windows, "feedback": config.feedback}
    return SimpleNamespace(**{**plain, **derived, "aggregate": UNKNOWN})


def fill(settings: Any) -> Any:
    return panes.fill(settings, ONE - 1, ONE, VALUES, ONE - 1, 1)


def test_panes_and_answers_know_every_aggregate_and_no_other() -> None:
    for name in AGGREGATES:
        settings = WindowSettings(10, 10, aggregate=name)
        found = panes.answers(settings, panes.merge(settings, fill(settings), 1), 5, 1)
        assert found.value.tolist() == [1.0 if name == "count" else 2.0]
    unknown = with_unknown(WindowSettings(10, 10))
    known = fill(WindowSettings(10, 10))
    for compute in (
        lambda: fill(unknown),
        lambda: panes.merge(unknown, known, 1),
        lambda: panes.answers(unknown, known, 5, 1),
    ):
        with pytest.raises(ValueError, match=r"^there is no aggregate 'mode'$"):
            compute()


@pytest.mark.parametrize("values", [None, VALUES])
@pytest.mark.parametrize("sampling", ["exchangeable", "adversarial"])
def test_no_coverage_is_required_of_an_unknown_aggregate(values: Any, sampling: str) -> None:
    config = with_unknown(SlackConfig(10, 10, sampling=sampling))
    with pytest.raises(ValueError, match=r"the aggregate 'mode' requires$"):
        required_tuples(config, ONE, np.array([0.0]), values)


@pytest.mark.parametrize("room", ["slack", "watermark"])
def test_no_query_is_made_of_an_unknown_aggregate(room: str) -> None:
    given = {"size_us": 10, "slide_us": 10, "aggregate": UNKNOWN}
    run, config = (slack, {}) if room == "slack" else (watermark, {"max_wait_us": 1})
    case = Workload(room, (Event(0, 0, "a", 1, 1.0, 1),), {**given, **config})
    with pytest.raises(ValueError, match="aggregate is 'mode'; it must be one of sum"):
        run.run_in_process(case)
    with pytest.raises(ValueError, match="aggregate is 'mode'"):
        WatermarkConfig(10, 10, 1, aggregate=UNKNOWN)
