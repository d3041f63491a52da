"""HPM's Figures 3 to 5 on Spark: a recorded timed run of a game gives the same figures there.

A sweep on Spark would take days, and would show the same, step by step.
"""

from statistics import fmean
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession

from model.vocabulary import Trace
from model.vocabulary.windows import Final, Result
from properties.stream_packs import run_in_spark
from sim.slack import from_settings
from straggler.rooms import find_room

GAME = {
    "scenario": "game-2",
    "messages": "40000",
    "size_us": "500000",
    "slide_us": "100000",
    "keyed": "no",
    "tasks": "1",
    "speeds": "1",
    "service_us": "50",
    "trigger_interval_us": "10000000",
}
"""Long enough for the first storm; few micro-batches, because each takes Spark a second."""


class GameFigures(NamedTuple):
    """Figures of one run, those that Figures 3 to 5 show, from its steps."""

    mean_slack_us: float
    mean_wait_us: float
    """Mean distance of the watermark from the end of the window that it closed."""
    first_error: float


def figures(trace: Trace, batches: int) -> GameFigures:
    """Return figures about the windows that the stream itself answered, before the flush."""
    final = {step.start_us: step for step in trace.of(Final)}
    first = [step for step in trace.of(Result) if step.batch < batches]
    assert all(step.exact for step in final.values())
    waits_us = [step.slack_us + step.wm_us - step.start_us for step in first]
    errors = [abs(step.value / final[step.start_us].value - 1) for step in first]
    mean_slack_us = fmean(step.slack_us for step in first)
    return GameFigures(mean_slack_us, fmean(waits_us), fmean(errors))


@pytest.mark.parametrize("control", [pytest.param("max", marks=pytest.mark.long), "pd-clamped"])
def test_a_recorded_game_has_the_same_figures_on_spark(control: str, spark: SparkSession) -> None:
    timed = from_settings({**GAME, "control": control}, 0)
    trace = run_in_spark(spark, {"game": timed.workload})["game"]
    slack = find_room("slack")
    difference = slack.compare(timed.workload, timed.trace, trace, slack.step_types)
    assert not difference.mismatches, "\n".join(difference.sentences)
    batches = len(timed.workload.cuts) + 1
    found = figures(trace, batches)
    assert found == figures(timed.trace, batches)
    assert found.first_error == pytest.approx(float(timed.summary["mean_first_error"]))
    assert found.mean_slack_us > 0
    assert timed.summary["final_error"] == 0
