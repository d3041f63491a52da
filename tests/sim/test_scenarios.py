"""The scenario ``umts`` against the figures it is fitted to, and against the recording itself."""

import os
from itertools import pairwise
from pathlib import Path

import pytest

from model.vocabulary import Event
from sim.kernel.disorder import Disorder, measure
from sim.kernel.log import simulate_arrivals
from sim.kernel.plan import EPOCH_2020_US, replay
from sim.scenarios import SCENARIOS, umts
from tests.sim.output_analysis import batch_means

SEEDS = range(20)
RECORDING = Path(os.environ.get("STRAGGLER_DATA", "")) / "iot_umts.parquet"


@pytest.fixture(scope="module")
def runs() -> dict[int, list[Disorder]]:
    """Simulate each number of devices, one run per seed."""
    return {
        devices: [measure(simulate_arrivals(umts(seed, devices), seed).events) for seed in SEEDS]
        for devices in (7, 8, 9)
    }


@pytest.mark.parametrize("devices", [7, 8, 9])
@pytest.mark.parametrize(
    ("name", "target_us", "tolerance"),
    [
        ("delay_p50_us", 107_000, 0.10),
        ("delay_p99_us", 306_000, 0.05),
        ("delay_max_us", 4_700_000, 0.20),
    ],
)
def test_delays(
    runs: dict[int, list[Disorder]], devices: int, name: str, target_us: float, tolerance: float
) -> None:
    """The mean over seeds is within the tolerance of the target, with confidence 0.999.

    The tolerances are how far the three recorded sessions lie from each other.
    """
    values = [getattr(run, name) for run in runs[devices]]
    interval = batch_means(values, 0.999, batches=len(values))
    assert target_us * (1 - tolerance) <= interval.low, interval
    assert interval.high <= target_us * (1 + tolerance), interval


@pytest.mark.parametrize("devices", [7, 8, 9])
def test_lateness(runs: dict[int, list[Disorder]], devices: int) -> None:
    shares = [run.late_share for run in runs[devices]]
    interval = batch_means(shares, 0.999, batches=len(shares))
    assert interval.low >= 0.16
    assert interval.high <= 0.34
    assert all(0.16 <= share <= 0.34 for share in shares), shares
    assert all(run.late_share_within_keys <= 0.0007 for run in runs[devices])


def test_shape() -> None:
    arrivals = simulate_arrivals(umts(1), 1)
    events = arrivals.events
    assert len(events) == 8 * 1_200
    assert len({event.key for event in events}) == 8
    assert min(event.event_time_us for event in events) >= EPOCH_2020_US
    of_one = sorted(event.event_time_us for event in events if event.key == "dev_3")
    assert {b - a for a, b in pairwise(of_one)} == {500_000}


def test_every_scenario_is_labelled_as_simulated() -> None:
    for name, scenario in SCENARIOS.items():
        plan = scenario(5)
        assert plan.name.startswith(f"{name}, simulated")
        assert simulate_arrivals(plan, 5).name == plan.name


def test_other_numbers_of_devices_are_refused() -> None:
    with pytest.raises(ValueError, match="devices is 10; it must be 7, 8 or 9"):
        umts(1, devices=10)


@pytest.mark.skipif(not RECORDING.is_file(), reason="no iot_umts.parquet in $STRAGGLER_DATA")
def test_against_the_recording(runs: dict[int, list[Disorder]]) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_parquet(RECORDING)
    for session, rows in frame.groupby("session"):
        columns = ("event_time", "arrival_time", "key", "value")
        trace = [
            Event(seq, seq, str(key), int(event_us), float(value), int(arrival_us))
            for seq, (event_us, arrival_us, key, value) in enumerate(
                zip(*(rows[column] for column in columns), strict=True)
            )
        ]
        events = simulate_arrivals(replay(trace, f"umts, recorded, {session}"), 1).events
        assert events == tuple(trace)
        assert_alike(measure(events), runs[rows["key"].nunique()])


def assert_alike(recorded: Disorder, simulated: list[Disorder]) -> None:
    """Assert that every delay figure of the recording is within 25% of the simulated mean."""
    assert 0.16 <= round(recorded.late_share, 2) <= 0.34
    assert recorded.late_share_within_keys <= 0.0008
    for name in ("delay_p50_us", "delay_p99_us", "delay_max_us"):
        mean_us = sum(getattr(run, name) for run in simulated) / len(simulated)
        assert getattr(recorded, name) == pytest.approx(mean_us, rel=0.25), name


def test_events_are_of_the_shared_vocabulary() -> None:
    assert all(
        isinstance(event, Event) for event in simulate_arrivals(umts(1, messages=10), 1).events
    )
