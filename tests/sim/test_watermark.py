"""The timed room ``watermark``: the same steps as the model, and correct figures."""

from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from model.vocabulary import WatermarkConfig
from model.vocabulary.watermark import Clock
from model.vocabulary.windows import Final, Late, Result
from model.watermark import run as model_run
from sim.kernel.distributions import Constant
from sim.kernel.plan import Cluster, Plan
from sim.kernel.source import Recording, Row
from sim.watermark import SETTINGS, TimedRun, from_settings, simulate
from sim.watermark.room import TIMED_ROOM
from sim.windows.scenarios import phases as phases_plan

SECOND_US = 1_000_000
QUERY = WatermarkConfig(10 * SECOND_US, 10 * SECOND_US, 8 * SECOND_US, k=20, tasks=2)
AT_ONCE = Cluster(service=Constant(0.0))


@pytest.fixture(scope="module")
def phases() -> TimedRun:
    return simulate(phases_plan(1), QUERY, 1)


def by_hand() -> Plan:
    """Return a plan with two windows of one key; a tuple of the first window is late."""
    times_s = [(1, 1, 1), (8, 8, 2), (12, 12, 4), (9, 13, 8), (22, 22, 16)]
    rows = [Row(at * SECOND_US, came * SECOND_US, "a", float(value)) for at, came, value in times_s]
    recording = Recording(tuple(rows))
    return Plan((recording,), cluster=AT_ONCE, epoch_us=SECOND_US, name="by hand")


def test_a_run_has_the_trace_of_the_model(phases: TimedRun) -> None:
    expected = model_run(phases.workload)
    assert phases.trace.digest() == expected.digest()
    assert TIMED_ROOM.make_system()(phases.workload).digest() == expected.digest()
    for word in (Clock, Result, Late, Final):
        assert expected.of(word), word.__name__


def test_calm_and_storm_alternate(phases: TimedRun) -> None:
    disorder = phases.series["disorder"]
    assert (disorder == 0).sum() > len(disorder) / 4
    assert (disorder > 0.2).sum() > len(disorder) / 8
    assert np.nanmax(phases.series["wait_us"]) > 2 * SECOND_US


def test_figures_of_a_run_by_hand() -> None:
    config = replace(QUERY, tasks=1, max_wait_us=0)
    timed = simulate(by_hand(), config, 0)
    assert timed.summary["late_pairs"] == 1
    # [0, 10) opens at 1 s and closes at 12 s with two tuples, [10, 20) at 12 s and 22 s with one.
    assert timed.summary["performance_ratio"] == pytest.approx((2 + 1) / (11 + 10))
    assert timed.summary["answered_by_flush"] == 1


def test_the_seed_alone_decides() -> None:
    small = {"messages": "600"}
    assert from_settings(small, 3).digest == from_settings(small, 3).digest
    assert from_settings(small, 3).digest != from_settings(small, 4).digest


def test_every_setting_of_the_query_has_its_default() -> None:
    assert {field.name for field in fields(WatermarkConfig)} <= SETTINGS.keys()


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"reading": "printed"}, "reading is 'printed'; it must be one of disorder"),
        ({"control": "fixed"}, "there is no setting 'control'"),
        ({"corrections": "maybe"}, "corrections is 'maybe'; it must be yes or no"),
        ({"scenario": "phase"}, "did you mean 'phases'?"),
    ],
)
def test_impossible_settings_are_refused(settings: dict[str, str], sentence: str) -> None:
    with pytest.raises(ValueError, match=r"\w") as refused:
        from_settings(settings, 0)
    assert sentence in str(refused.value)


def test_a_run_is_plotted_the_same_every_time(phases: TimedRun, tmp_path: Path) -> None:
    files = [tmp_path / "one.svg", tmp_path / "other.svg"]
    for path in files:
        TIMED_ROOM.draw(phases, path)
    one, other = (path.read_bytes() for path in files)
    assert one == other
    for words in (b"reading disorder, k = 20, 2 tasks", b"Disorder of the last arrivals"):
        assert words in one
