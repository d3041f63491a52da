"""Timed rooms: the model's steps, drawings that are alike, memory; refusals."""

import gc
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path

import pytest

from model.checking.claims import Outcome
from model.vocabulary.join import Match, Rejected
from model.vocabulary.settings import pick, read_settings, settings_of
from sim import grouping, join, script, slack, watermark
from sim.clusters import ClusterSettings
from sim.grouping.scenarios import SCENARIOS as OF_GROUPING
from sim.join.scenarios import SCENARIOS as OF_JOIN
from sim.kernel.disorder import Burst, Disturbance, Gap, Regime
from sim.kernel.distributions import Constant, Exponential
from sim.kernel.faults import Fail, Lose, Slow
from sim.kernel.link import HERE, Noise, Place
from sim.kernel.plan import Cluster, Plan, Worker
from sim.kernel.run import TimedRun
from sim.kernel.source import Source
from sim.report.drawing import shades_of
from sim.script.scenarios import SETS as OF_SCRIPT
from straggler.rooms import find_room

RUNS: Mapping[str, Callable[[Mapping[str, str], int], TimedRun]] = {
    "slack": slack.from_settings,
    "watermark": watermark.from_settings,
    "join": join.from_settings,
    "grouping": grouping.from_settings,
    "script": script.from_settings,
}
SMALL: Mapping[str, Mapping[str, str]] = {
    "slack": {"messages": "200"},
    "watermark": {"messages": "300"},
    "join": {"seconds": "4", "rate_r_hz": "30", "rate_s_hz": "30", "record": "yes", "scale": "yes"},
    "grouping": {
        "tuples": "3000",
        "keys": "100",
        "senders": "2",
        "instances": "4",
        "window_tuples": "500",
        "batch_tuples": "250",
    },
    "script": {"sensors": "10", "rates_hz": "5,2", "seconds": "12", "workers": "3"},
}
SCENARIOS = [
    *(("slack", name) for name in ("umts", "bursts")),
    *(("watermark", name) for name in ("phases", "umts")),
    *(("join", name) for name in OF_JOIN),
    *(("grouping", name) for name in OF_GROUPING),
    *(("script", name) for name in OF_SCRIPT),
]


FAULTS = "fail worker-0 1000000 500000; pause worker-0 2000000 5"


def small(room: str, seed: int = 1, **settings: str) -> TimedRun:
    return RUNS[room]({**SMALL[room], **settings}, seed)


@pytest.mark.parametrize(("room", "scenario"), SCENARIOS)
def test_a_run_of_every_scenario_is_the_models(room: str, scenario: str) -> None:
    timed, known = small(room, scenario=scenario), find_room(room)
    assert "simulated" in timed.plan.name
    expected = known.reference()(timed.workload)
    if room == "join":  # the model of a chain takes its steps in another order
        assert sorted(match[:3] for match in timed.trace.of(Match)) == sorted(
            match[:3] for match in expected.of(Match)
        )
        assert timed.trace.of(Rejected) == expected.of(Rejected)
    else:
        assert list(timed.trace.steps()) == list(expected.steps())
    verdicts = known.check(timed.workload, timed.trace).verdicts
    assert not [each for each in verdicts if each.outcome is Outcome.BROKEN]


@pytest.mark.parametrize("room", RUNS)
def test_nothing_is_left_of_a_run_that_is_over(room: str) -> None:
    """Hundreds of them, in a sweep, would fill the memory."""
    small(room, faults=FAULTS)  # whatever is made once and kept
    gc.collect()
    gc.disable()
    try:
        small(room, faults=FAULTS)
        # An environment of SimPy is a circle, of a few objects.
        assert gc.collect() < 20
    finally:
        gc.enable()


@pytest.mark.parametrize(
    "room",
    [each if each == "join" else pytest.param(each, marks=pytest.mark.long) for each in RUNS],
)
def test_a_run_is_drawn_the_same_every_time(room: str, tmp_path: Path) -> None:
    timed_room = import_module(f"sim.{room}.room").TIMED_ROOM
    for name in ("one.svg", "two.svg"):
        timed_room.draw(small(room, faults=FAULTS), tmp_path / name)
    one = (tmp_path / "one.svg").read_bytes()
    assert one == (tmp_path / "two.svg").read_bytes()
    for words in (b"simulated", b"faults", b"fail worker-0"):
        assert words in one.lower()


def test_bursts_gaps_and_faults_are_shaded_where_they_are() -> None:
    extra = Exponential(3)
    found: tuple[Disturbance, ...] = (
        Burst(10, 1, 0.2, extra, every_us=30),
        Burst(90, 5, 1.0, extra),
        *(Gap(5, 10, number) for number in range(3)),
        Regime(7, Constant(5)),
    )
    faults = (Slow("worker-1", 5, 9, 5.0), Lose("a>b", 1), Fail("worker-0", 61, 8))
    plan = Plan((Source(events=60),) * 3, disturbances=found, faults=faults)
    assert [*shades_of(plan, 60.0)] == [
        ("burst", "burst", [(10, 11), (40, 41)]),
        ("gap", "gap", [(5, 15)]),
        ("slow worker-1", "slow", [(5, 14)]),
    ]


def test_every_setting_reaches_the_cluster() -> None:
    texts = {
        "speeds": "2, 0.5",
        "tiers": "process,node, rack,elsewhere",
        "queue_limit": "7",
        "when_full": "drop",
        "service": "constant",
        "service_us": "40",
        "tuple_bytes": "10",
        "loss": "0.25",
        "retry_us": "300",
    }
    found = pick(ClusterSettings, read_settings(texts, settings_of(ClusterSettings))).cluster
    places = (HERE, Place(process=2), Place(node=3), Place(rack=4))
    workers = [
        Worker(speed, queue_limit=7, when_full="drop", place=place)
        for speed, place in zip((2.0, 0.5, 2.0, 0.5), places, strict=True)
    ]
    assert found == Cluster(tuple(workers), Constant(40.0), 10, Noise(0.25, 300.0))
