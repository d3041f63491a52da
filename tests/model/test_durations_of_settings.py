"""Times of settings with a unit: intervals of Spark and ``timedelta``, in every configuration."""

import re
from datetime import timedelta

import pandas as pd
import pytest

from model.vocabulary import GroupingConfig, JoinConfig, SlackConfig, WatermarkConfig
from model.vocabulary.join import Equi
from model.vocabulary.script.config import ScriptConfig

HOUR_US = 3_600_000_000


def test_times_are_given_with_a_unit_or_as_a_timedelta() -> None:
    config = SlackConfig.of(
        size="6 hours", slide=timedelta(hours=1), gamma_us=5, max_slack=None, tasks=4
    )
    assert config == SlackConfig(6 * HOUR_US, HOUR_US, gamma_us=5, tasks=4)
    assert SlackConfig.of(size=pd.Timedelta("1h"), slide="1h").size_us == HOUR_US
    before = timedelta(microseconds=-1)
    with pytest.raises(ValueError, match="gamma_us is -1; it must be an integer >= 0"):
        SlackConfig.of(size="1h", slide="1h", gamma=before)


def test_every_room_takes_times_with_a_unit() -> None:
    assert WatermarkConfig.of(size="1h", slide="1h", max_wait="1 hour").max_wait_us == HOUR_US
    chain = JoinConfig.of(window="1 hour", lateness="1 hour", queries=(("q", Equi("key")),))
    assert (chain.window_us, chain.lateness_us) == (HOUR_US, HOUR_US)
    assert GroupingConfig.of(instances=2, latency=["1 ms", timedelta()]).latency_us == (1000, 0)
    with pytest.raises(ValueError, match="lateness: 'soon' is not a duration"):
        ScriptConfig.of(workflows=(), sensors=(), lateness="soon")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"size": 5}, "size is 5; it must be a text such as '6 hours', or a timedelta; size_us"),
        ({"size": True}, "size is True; it must be a text"),
        ({"size": pd.Timedelta(1, "ns")}, "it must be a text such as '6 hours'"),
        ({"size": "1 month"}, "size: '1 month' is not a duration"),
        ({"size": "1h", "size_us": 1}, "size is '1h' and size_us is 1; only one can be given"),
        ({"size": "1h", "sliide": "1h"}, "unknown setting 'sliide'; known are"),
        ({"slide": "1h"}, "the setting 'size_us' is missing"),
        ({"size": "1h", "slide": "0s"}, "slide_us is 0; it must be an integer > 0"),
    ],
)
def test_a_bad_time_is_refused_with_its_name(given: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        SlackConfig.of(**given)
