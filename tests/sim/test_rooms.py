"""Timed rooms: the model's steps, drawings that are alike, memory; refusals."""

import gc
from collections.abc import Callable, Mapping
from dataclasses import replace
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
from sim.report.marks import (
    alike,
    describe_faults,
    fault_span_us,
    marks_of,
    name_worker,
    title_of,
    union_us,
)
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


def test_faults_that_are_alike_share_a_row_and_a_shade() -> None:
    swapped = (Slow("worker-0", 5, 9, 5.0), Slow("worker-1", 5, 9, 0.2), Slow("worker-2", 5, 9, 5))
    rows = alike((*swapped, Slow("worker-4", 5, 9, 5.0), Fail("worker-0", 12, 8)))
    assert [describe_faults(row) for row in rows] == [
        "3 workers 5 times slower",
        "worker-1 5 times faster",
        "fail worker-0",
    ]
    assert fault_span_us(Lose("a>b", 1)) is None
    assert fault_span_us(Fail("worker-0", 12, 8)) == (12, 20)
    assert union_us([(5, 14), (12, 20), (5, 9)]) == [(5, 20)]
    assert union_us([(30, 35), (1, 3)]) == [(1, 3), (30, 35)]


def test_bursts_gaps_and_new_delays_have_rows_of_their_own() -> None:
    second_us = 1_000_000
    extra = Exponential(3 * second_us)
    found: tuple[Disturbance, ...] = (
        Burst(10 * second_us, second_us, 0.2, extra, every_us=30 * second_us),
        Burst(50 * second_us, second_us, 0.2, extra),
        *(Gap(5, 10, number) for number in range(3)),
        Regime(7, Constant(5 * second_us), source=1),
        Regime(9, Constant(second_us)),
        Burst(90 * second_us, 5, 1.0, extra, source=2),
    )
    faults = (Slow("worker-1", 5, 9, 5.0),)
    plan = Plan((Source(events=60),) * 3, disturbances=found, faults=faults)
    marks = marks_of(plan, 60.0 * second_us)
    late = [(at * second_us, (at + 1) * second_us) for at in (10, 40, 50)]
    assert marks == [
        ("burst", "20% of tuples,\non average 3s later", tuple(late)),
        ("gap", "no tuples of 3 sources", ((5, 15),)),
        ("regime", "source-1: delay on average 5s", ((7, 9),)),
        ("regime", "tuples: delay on average 1s", ((9, 60.0 * second_us),)),
        (
            "burst",
            "all tuples of source-2,\non average 3s later, after the end",
            ((90 * second_us, 90 * second_us + 5),),
        ),
        ("slow", "worker-1 5 times slower", ((5, 14),)),
    ]
    assert title_of(marks) == "Bursts, gaps, new delays and faults"


def test_a_source_that_sends_for_a_while_is_a_rise_of_the_rate() -> None:
    [mark] = marks_of(small("join", scenario="doubling").plan, 4e6)
    assert (mark.kind, mark.spans_us) == ("more", ((1_000_000, 2_000_000),))
    assert marks_of(small("join", scenario="waves").plan, 4e6) == []


def test_the_plot_names_the_speed_and_the_place_of_a_worker() -> None:
    workers = Worker(0.5, place=Place(node=1)), Worker(place=HERE)
    plan = Plan((Source(events=1),), Cluster(workers))
    assert (
        name_worker(plan, "worker 2", is_brief=False) == "worker 2: speed 0.5,\nin the log's rack"
    )
    assert name_worker(plan, "worker 11", is_brief=True) == "11: speed 1, process"
    assert name_worker(replace(plan, cluster=Cluster()), "worker 1", is_brief=False) == "worker 1"
    assert name_worker(plan, "corrector", is_brief=True) == "corrector"


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
