"""Settings of a timed run of room ``slack``: what they become, and what is refused."""

from dataclasses import fields
from math import isfinite

import pytest

from model.vocabulary import SlackConfig
from sim.slack import SETTINGS, from_settings


def test_every_part_of_a_query_is_a_setting() -> None:
    assert {field.name for field in fields(SlackConfig)} <= set(SETTINGS)


def test_keys_are_named_anew_by_seed() -> None:
    names = [
        {event.key for event in from_settings(settings, seed).workload.arrivals}
        for seed in (1, 2)
        for settings in ({"messages": "100"}, {"messages": "100", "keys": "3"})
    ]
    assert [len(each) for each in names] == [8, 3, 8, 3]
    assert not names[1] & names[3]


def test_settings_reach_the_run() -> None:
    settings = {
        "scenario": "bursts",
        "messages": "100",
        "tasks": "1",
        "control": "fixed",
        "lambda_thr": "0.9",
        "keyed": "no",
        "speeds": "2",
        "service": "constant",
    }
    run = from_settings(settings, 1)
    assert run.summary["arrivals"] == 400
    config = SlackConfig.from_json(run.workload.config)
    assert (config.tasks, config.control, config.lambda_thr) == (1, "fixed", 0.9)
    assert not config.keyed
    assert float(run.summary["utilisation_0"]) * float(run.summary["duration_us"]) == (
        pytest.approx(400 * 5_000 / 2)
    )
    assert all(isfinite(value) for value in run.summary.values() if isinstance(value, float))


@pytest.mark.parametrize(
    ("key", "text", "message"),
    [
        ("slide_uss", "1", "there is no setting 'slide_uss'; did you mean 'slide_us'?"),
        ("tasks", "two", "tasks is 'two'; it must be an integer"),
        ("tasks", "0", "tasks is 0; it must be an integer > 0"),
        ("eps", "nan", "eps is nan; it must be a finite number"),
        ("cv", "x", "cv is 'x'; it must be a finite number >= 0, or auto"),
        ("keyed", "maybe", "keyed is 'maybe'; it must be yes or no"),
        ("scenario", "umst", "scenario is 'umst'; it must be one of umts, game-1, game-2, game-1"),
        ("speeds", "1,0", "speeds is 0.0; it must be a finite number > 0"),
        ("speeds", "fast", "speeds is 'fast'; it must be a finite number"),
        ("service", "slow", "service is 'slow'; it must be one of exponential, constant"),
        ("service_us", "0", "service_us is 0.0; it must be a finite number > 0"),
        ("messages", "-5", "messages is -5; it must be an integer > 0"),
        ("control", "pid", "control is 'pid'; it must be one of conformal"),
        ("correction_us", "-1", "correction_us is -1.0; it must be a finite number >= 0"),
    ],
)
def test_an_impossible_setting_is_refused(key: str, text: str, message: str) -> None:
    with pytest.raises(ValueError) as refusal:  # noqa: PT011 (compared below)
        from_settings({key: text}, 0)
    assert str(refusal.value).startswith(message)
