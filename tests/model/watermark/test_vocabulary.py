"""Configuration of room ``watermark``: JSON, defaults and refusals."""

import json

import pytest

from model.vocabulary import WatermarkConfig
from model.vocabulary.settings import PlainData
from model.vocabulary.trace import kind_of
from model.vocabulary.watermark import WORDS


def test_a_configuration_survives_json() -> None:
    config = WatermarkConfig(10, 5, 3, reading="scaled", k=7, corrections=True, max_future_us=4)
    assert WatermarkConfig.from_json(json.loads(json.dumps(config.to_json()))) == config


def test_defaults_follow_from_the_window() -> None:
    config = WatermarkConfig(10, 5, 3)
    assert (config.feedback, config.max_age) == (10, 40)
    config = WatermarkConfig(10, 5, 3, feedback_us=0, max_age_us=7)
    assert (config.feedback, config.max_age) == (0, 7)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"size_us": 0}, "size_us is 0; it must be an integer > 0"),
        ({"k": 0}, "k is 0; it must be an integer > 0"),
        ({"k": 2.0}, "k is 2.0; it must be an integer"),
        ({"max_wait_us": -1}, "max_wait_us is -1; it must be an integer >= 0"),
        ({"max_wait_us": None}, "max_wait_us is None; it must be an integer"),
        ({"max_wait_us": 1 << 60, "k": 9}, "must be less than 2^63"),
        ({"max_wait_us": 1 << 61, "k": 1}, "it must be less than 2^61"),
        ({"reading": "printed"}, "reading is 'printed'; it must be one of disorder, literal"),
        ({"aggregate": "mode"}, "aggregate is 'mode'; it must be one of sum"),
        ({"clocks": "all"}, "clocks is 'all'; it must be one of arrivals, batches"),
        ({"corrections": 1}, "corrections is 1; it must be True or False"),
        ({"q": 1}, "q is 1; it must be a finite number > 0 and < 1"),
        ({"feedback_us": -1}, "feedback_us is -1; it must be an integer >= 0"),
        ({"upstreams": -1}, "upstreams is -1; it must be an integer >= 0"),
        ({"insert_every_us": 5}, "insert_every_us is 5; with upstreams 0 it must be 0"),
        (
            {"upstreams": 2, "corrections": True},
            "corrections is True; with upstreams 2 it must be False",
        ),
        (
            {"upstreams": 2, "clocks": "batches"},
            "clocks is 'batches'; with upstreams 2 it must be 'arrivals'",
        ),
        ({"control": "fixed"}, "unknown setting 'control'"),
    ],
)
def test_an_impossible_configuration_is_refused(
    change: dict[str, PlainData], sentence: str
) -> None:
    with pytest.raises(ValueError, match=r"must|unknown") as refused:
        WatermarkConfig.from_json({"size_us": 10, "slide_us": 5, "max_wait_us": 3, **change})
    assert sentence in str(refused.value)


def test_the_largest_wait_is_needed() -> None:
    with pytest.raises(ValueError, match="'max_wait_us' is missing"):
        WatermarkConfig.from_json({"size_us": 10, "slide_us": 5})


def test_kinds_of_steps_have_names_of_their_own() -> None:
    assert len({kind_of(word) for word in WORDS}) == len(WORDS)
