"""The figures of the documentation: their numbers, again on the recording where it is present."""

from dataclasses import replace
from functools import cache
from typing import NamedTuple

import pytest

from sim.kernel.recorder import Summary
from sim.kernel.source import Recording
from straggler.inputs.inputs import missing_recording, recordings_by_name
from straggler.rooms.slack.guide import CONTROLS, FLIGHTS, PICTURES, arrivals, flights_row, runs

RECORDING = "iot_umts"


class Figures(NamedTuple):
    """Figures of one run in docs/slack-guide.md."""

    slack_s: float
    """Mean K."""
    latency_s: float
    """Mean time from the end of a window to its first answer."""
    coverage: float
    misses: float
    """Share of the judged windows."""
    error: float
    """Error of first answers."""


SAID = {
    ("umts", "conformal"): Figures(0.905, 1.045, 0.9991, 0.0072, 0.0008),
    ("umts", "pd"): Figures(0.0673, 0.190, 0.9984, 0.0095, 0.0015),
    ("umts", "max"): Figures(4.434, 4.595, 1.0, 0.0, 0.0),
    ("iot_umts", "conformal"): Figures(2.293, 8.582, 0.9997, 0.0087, 0.0001),
    ("iot_umts", "pd"): Figures(0.858, 6.102, 0.9951, 0.1217, 0.0045),
    ("iot_umts", "max"): Figures(4.450, 11.990, 1.0, 0.0, 0.0),
    ("flights", "conformal"): Figures(18_838, 24_297, 0.9932, 0.0211, 0.0068),
    ("flights", "pd"): Figures(22_264, 25_868, 0.9581, 0.2196, 0.0415),
    ("flights", "max"): Figures(37_490, 42_972, 0.9995, 0.0009, 0.0005),
}


@cache
def summaries(name: str) -> dict[str, Summary]:
    picture = PICTURES["umts" if name == RECORDING else name]
    return {str(run.summary["control"]): run.summary for run in runs(name, picture, arrivals(name))}


def figures(summary: Summary) -> Figures:
    return Figures(
        float(summary["mean_slack_us"]) / 1e6,
        float(summary["mean_window_latency_us"]) / 1e6,
        float(summary["mean_coverage"]),
        float(summary["miss_share"]),
        float(summary["mean_first_error"]),
    )


@pytest.mark.parametrize(
    "name", ["umts", RECORDING, pytest.param("flights", marks=pytest.mark.long)]
)
def test_the_figures_are_those_that_the_guide_gives(name: str) -> None:
    if name == RECORDING and name not in recordings_by_name():
        pytest.skip(missing_recording(name))
    by_control = summaries(name)
    for control in CONTROLS:
        assert by_control[control]["final_error"] == 0.0
        # The guide rounds.
        expected = pytest.approx(SAID[name, control], rel=2e-3, abs=6e-5)
        assert figures(by_control[control]) == expected, control
    conformal, published, longest = (figures(by_control[control]) for control in CONTROLS)
    assert conformal.slack_s < longest.slack_s
    assert conformal.latency_s < longest.latency_s
    assert conformal.error < published.error
    assert conformal.misses < PICTURES["umts"].config.delta / 2


def test_a_row_of_the_tables() -> None:
    plan = arrivals("flights")
    (recording,) = plan.sources
    assert isinstance(recording, Recording)
    quick = replace(recording, rows=recording.rows[:25_000])
    # Its warm-up is over after 200 windows.
    config = replace(FLIGHTS, aggregate="avg", learning_rate=0.2)
    found = flights_row("avg", config, replace(plan, sources=(quick,)))
    assert 0 < found.slack_h < found.latency_h
    assert 0 < found.wrong < 0.2
    assert found.rows_read > 0
    assert found.assumption.startswith("contradicted (rho 0.")
    counted = flights_row(
        "count", replace(config, aggregate="count"), replace(plan, sources=(quick,))
    )
    assert counted.assumption == "none is made"
