"""Runs of room ``slack`` without workers, against timed runs and against figures by hand."""

from typing import Any

import numpy as np
import pytest

from model.vocabulary import Event, SlackConfig
from sim.slack.rivals import AqTask
from sim.slack.stream_figures import Course, FirstAnswer, figures_at
from sim.sweep.measurable import measurable

SECOND_US = 1_000_000
GAME = {"scenario": "game-2", "messages": "30000", "size_us": "500000", "slide_us": "100000"}
AT_ONCE = {"keyed": "no", "tasks": "1", "speeds": "1", "service": "constant", "service_us": "0.001"}
SAME = (
    "mean_slack_us",
    "mean_latency_us",
    "mean_coverage",
    "mean_first_error",
    "wrong_share",
    "miss_share",
)


def stream(**settings: str) -> dict[str, Any]:
    return dict(measurable("slack", "stream").measure({**GAME, **settings}, 1))


@pytest.mark.parametrize("control", ["max", "pd", "conformal"])
def test_a_run_without_workers_is_a_timed_run_whose_work_takes_no_time(control: str) -> None:
    timed = measurable("slack", "sim").measure({**GAME, **AT_ONCE, "control": control}, 1)
    alone = stream(control=control)
    for name in SAME:
        assert alone[name] == pytest.approx(timed[name], rel=0.01, abs=1e-9), name


def test_the_latency_of_max_is_that_of_its_control() -> None:
    found = stream(control="max")
    assert found["latency_by_max"] == pytest.approx(1, abs=1e-12)


def test_levels_that_run_side_by_side_have_the_figures_of_separate_runs() -> None:
    known = measurable("slack", "stream")
    for name, levels in (("control", ("pd", "aq")), ("at", ("0.4", "1"))):
        together = known.fans[name](GAME, 1, levels)
        assert together == [known.measure({**GAME, name: level}, 1) for level in levels]


def test_corrections_repair_answers_and_the_rival_has_none() -> None:
    corrected, rival = stream(control="pd"), stream(control="aq")
    assert corrected["first_error"] > 0.01
    assert corrected["current_error"] < 0.2 * corrected["first_error"]
    assert rival["current_error"] == rival["first_error"] > 0.01


def test_the_rival_forgets_delays_that_are_not_recent() -> None:
    config = SlackConfig(size_us=SECOND_US, slide_us=SECOND_US, control="pd", keyed=False)
    task = AqTask(config, 0, 10 * SECOND_US)
    longest_us = []
    for seq, second in enumerate((5, 2, 6, 5, 14, 16, 40)):
        task.arrive(Event(seq, seq, "a", second * SECOND_US, 1.0, second * SECOND_US), 0)
        longest_us.append(task.max_delay_us)
    assert longest_us == [0, 3_000_000, 3_000_000, 3_000_000, 3_000_000, 1_000_000, 0]


def test_a_moment_is_a_share_of_the_time_until_the_last_arrival() -> None:
    config = SlackConfig(size_us=10, slide_us=10, control="max")
    times_us = [*range(10, 110, 10), 200]
    events = [Event(seq, seq, "a", at_us, 1.0, at_us) for seq, at_us in enumerate(times_us)]
    answers = [FirstAnswer(event.event_time_us, event.seq + 1, 1.0, 1) for event in events[:-1]]
    course = Course(config, events, 0, np.arange(11.0), answers, [], [])
    found = [figures_at(course, moment)["slack_us"] for moment in (0.1, 0.5, 1.0)]
    assert found == [0.5, 8.5, 10.0]


def test_spells_of_least_and_most_disorder_are_told_apart() -> None:
    found = measurable("slack", "stream").measure(
        {**GAME, "messages": "100000", "control": "aq"}, 1
    )
    assert 0 <= found["calm_slack_us"] < found["stormy_slack_us"]  # type: ignore[operator]  # numbers


def test_a_run_without_workers_refuses_settings_of_workers() -> None:
    with pytest.raises(ValueError, match="there is no setting 'tasks'"):
        stream(tasks="2")
    with pytest.raises(ValueError, match="control is 'aqq'; it must be one of conformal"):
        stream(control="aqq")
