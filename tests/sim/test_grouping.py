"""The timed room: a seed says everything, times are measured, and what slow instances cost."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from model.claims import Outcome
from model.grouping import make_system as make_reference
from model.grouping.claims import judge
from model.vocabulary import GroupingConfig
from model.vocabulary.grouping import POLICIES, Heavy, Route
from sim.grouping import Run, from_settings, make_system, side_by_side, simulate
from sim.grouping.crew import Crew
from sim.grouping.figures import plot_run
from sim.grouping.scenarios import SCENARIOS
from sim.kernel.distributions import Constant, Exponential
from sim.kernel.faults import Clog, Slow
from sim.kernel.link import Tiers
from sim.kernel.plan import Plan
from sim.kernel.source import Source

SCRIPT = "from tests.sim.test_grouping import small; print(small().digest)"


def small(seed: int = 1, **settings: object) -> Run:
    given = {"tuples": 3_000, "keys": 100, "window_tuples": 500, "batch_tuples": 250, "senders": 2}
    texts = {**given, "instances": 4, **settings}
    return from_settings({key: str(value) for key, value in texts.items()}, seed)


def figure(timed: Run, name: str) -> float:
    return float(timed.summary[name])


def test_a_seed_says_everything() -> None:
    assert small().digest == small().digest
    assert small().digest != small(2).digest
    root = Path(__file__).parents[2]
    for hash_seed in ("0", "4242"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(root)}
        run = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            capture_output=True,
            check=True,
            cwd=root,
            env=environment,
            text=True,
            timeout=120,
        )
        assert run.stdout.strip() == small().digest


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_model_routes_what_was_recorded_alike(scenario: str) -> None:
    timed = small(scenario=scenario)
    assert figure(timed, "measurements") > 0
    assert timed.trace.of(Heavy)
    expected = make_reference()(timed.workload)
    assert list(timed.trace.steps()) == list(expected.steps())
    assert list(make_system()(timed.workload).steps()) == list(expected.steps())
    for verdict in judge(timed.workload, timed.trace).verdicts:
        assert verdict.outcome is Outcome.HOLDS, (verdict.claim, verdict.sentence)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_scenario_has_as_many_tuples_as_it_is_asked_for(scenario: str) -> None:
    for tuples in (1, 13):
        timed = small(scenario=scenario, tuples=tuples)
        assert len(timed.workload.arrivals) == tuples
        assert len(timed.trace.of(Route)) == tuples


def test_arrivals_and_work_do_not_depend_on_the_policy() -> None:
    one, other = small(policy="key"), small(policy="tag")
    assert one.workload.arrivals == other.workload.arrivals
    assert one.trace.of(Route) != other.trace.of(Route)
    # At speed 1 everywhere the same work is the same time, wherever it is done.
    one, other = (small(policy=each, speeds=1, instances=1) for each in ("key", "tag"))
    assert one.summary["mean_latency_us"] == other.summary["mean_latency_us"]


# --------------------------------------------------------------------------------- measured times

REGULAR = Plan((Source(400, Constant(1_000.0), keys=tuple("abcdefgh")),))


def regular(n: int = 2, *, measured: bool = True, **crew: object) -> Run:
    """A tuple a millisecond in windows of a hundred, each work of 100 us."""
    config = GroupingConfig(n, "round-robin", ((0, (100,) * n),), window_tuples=100)
    hardware = Crew(**{"service": Constant(100.0), "tiers": (0,), **crew})  # type: ignore[arg-type]
    return simulate(REGULAR, config, 1, crew=hardware, batch_tuples=100, measured=measured)


def test_times_are_those_that_instances_took() -> None:
    config = regular(speeds=(1.0, 0.25)).workload.config
    assert config["times_us"] == [[0, [100, 100]], [1, [100, 400]]]
    assert regular(speeds=(1.0, 0.25), measured=False).workload.config["times_us"] == [
        [0, [100, 100]]
    ]


def test_a_line_that_is_slower_than_its_instance_is_the_time() -> None:
    # 1,000 bytes at 10 Mb/s.
    timed = regular(tiers=(0, 3), tuple_bytes=1_000)
    assert timed.workload.config["times_us"][1] == [1, [100, 800]]


def test_an_instance_that_has_served_nothing_keeps_its_time() -> None:
    timed = regular(n=2, measured=True, speeds=(0.5,))
    assert timed.workload.config["times_us"] == [[0, [100, 100]], [1, [200, 200]]]
    key = GroupingConfig(9, "key", ((0, (100,) * 9),), window_tuples=100)
    plan = Plan((Source(300, Constant(1_000.0)),))
    crew = Crew(speeds=(0.5,), service=Constant(100.0))
    config = simulate(plan, key, 1, crew=crew, batch_tuples=100, measured=True).workload.config
    assert sorted(config["times_us"][1][1]) == [100] * 8 + [200]


def test_what_is_not_served_by_the_end_of_a_window_is_not_measured_yet() -> None:
    # Instance 1 gets slow in the second window. At its end it has served 26 tuples of 100 us each,
    # the last one of the first window among them, and 24 slow ones; its 25th is still there.
    slow = Slow("worker-1", 150_000, 1_000_000_000, 10.0)
    times_us = [times for _, times in regular(faults=(slow,)).workload.config["times_us"]]
    assert [times[0] for times in times_us] == [100] * len(times_us)
    assert [times[1] for times in times_us] == [100, (26 * 100 + 24 * 1_000) // 50, 1_000]


# ------------------------------------------------------------------------------- what costs time


def test_a_tuple_takes_its_line_its_way_and_its_work() -> None:
    timed = simulate(
        Plan((Source(1),)), GroupingConfig(1), 1, crew=Crew(tiers=(3,), service=Constant(100.0))
    )
    assert figure(timed, "mean_latency_us") == pytest.approx(80.0 + 350.0 + 100.0)
    assert timed.summary["instances_a_key"] == 1


def test_a_backlog_is_worked_off_at_the_rate_of_the_instances() -> None:
    plan = Plan((Source(4_000, Exponential(1_000.0), keys=tuple("abcdefgh")),))
    crew = Crew(speeds=(1.0, 0.5), service=Constant(100.0), tiers=(0,), queue_limit=10)
    found = {}
    for policy in ("round-robin", "tag"):
        config = GroupingConfig(2, policy, ((0, (100, 200)),), window_tuples=1_000)
        found[policy] = figure(simulate(plan, config, 1, crew=crew, backlog=True), "served_hz")
    # In turns the slower one decides; by time both are busy.
    assert found["round-robin"] == pytest.approx(2 * 5_000, rel=0.01)
    assert found["tag"] == pytest.approx(10_000 + 5_000, rel=0.01)


def test_measured_times_follow_a_swap_of_speeds() -> None:
    measured, stale = (
        small(scenario="swap", times=times, tuples=12_000, window_tuples=1_000)
        for times in ("measured", "given")
    )
    assert figure(measured, "measurements") > 5
    assert measured.series["wrong"][-1] < 0.1 < 1 < stale.series["wrong"][-1]
    assert measured.series["rho"][-1] < 0.3 < 1 < stale.series["rho"][-1]
    assert 2 * measured.series["latency_us"][-1] < stale.series["latency_us"][-1]


def test_the_busy_share_of_intervals_is_that_of_the_run() -> None:
    timed = small(policy="key")
    assert np.nanmean(timed.series["busiest"]) == pytest.approx(figure(timed, "busiest"), rel=0.02)
    assert np.nansum(timed.series["served_hz"]) / 100 == pytest.approx(
        3_000 / figure(timed, "duration_us") * 1e6
    )
    assert timed.series["waiting"][-1] == 0


def test_all_policies_stand_side_by_side() -> None:
    settings = {"tuples": "3000", "window_tuples": "1000", "keys": "200", "instances": "4"}
    found = {side.policy: side for side in side_by_side(settings, 1)}
    assert tuple(found) == POLICIES
    assert found["tag"].share_of_ideal > 0.9 > 2 * found["round-robin"].share_of_ideal
    assert found["tag"].mean_latency_us is not None
    assert found["round-robin"].mean_latency_us is None
    assert found["key"].instances_a_key == 1 < found["tag"].instances_a_key < 2
    assert found["shuffle"].instances_a_key > 2


# ----------------------------------------------------------------------------------- bad settings


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("scenario", "swpa", "scenario is 'swpa'; it must be one of steady, drift, swap, strag"),
        ("policy", "tga", "policy is 'tga'; it must be one of"),
        ("load", "much", "load is 'much'; it must be a finite number, or backlog"),
        ("load", "0", "load is '0'; it must be from 0.001 to 1000"),
        ("tiers", "node,far", "tiers is 'far'; it must be one of process, node, rack, elsewhere"),
        ("speeds", "1,-1", "speeds is -1.0; it must be from a millionth to a million"),
        ("instances", "0", "instances is 0; it must be greater than 0"),
        ("tuples", "0", "tuples is 0; it must be above 0"),
        ("times", "guessed", "times is 'guessed'; it must be one of measured, given"),
        ("service", "often", "service is 'often'; it must be one of exponential, constant"),
        ("zipf", "-1", "zipf is '-1'; it must be at least 0"),
        ("theta", "2", "theta is 2.0; it must be a number greater than 0 and less than 1"),
        ("queue_limit", "0", "queue_limit is 0; it must be above 0"),
        ("batch_tuples", "0", "batch_tuples is 0; it must be above 0"),
        ("tupels", "1", "there is no setting 'tupels'; did you mean 'tuples'?"),
    ],
)
def test_bad_settings_are_refused(key: str, value: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        from_settings({key: value}, 1)


def test_bad_crews_are_refused() -> None:
    with pytest.raises(ValueError, match="a fault of an instance is Clog"):
        Crew(faults=(Clog("worker-0", 0, 1),))
    with pytest.raises(ValueError, match="tiers is 4; it must be 0, 1, 2 or 3"):
        Crew(tiers=(4,))
    with pytest.raises(ValueError, match="mean of service is 0; it must be finite and above 0"):
        Crew(service=Constant(0))
    assert Crew().table == Tiers()


def test_balance_takes_two_windows() -> None:
    with pytest.raises(ValueError, match="tuples is 100; it takes two windows"):
        side_by_side({"tuples": "100", "policies": "tag"}, 1)


def test_policies_are_named() -> None:
    size = {"tuples": "300", "window_tuples": "100", "batch_tuples": "100", "keys": "20"}
    found = side_by_side({**size, "policies": "pkg, key"}, 1)
    assert [side.policy for side in found] == ["pkg", "key"]
    assert side_by_side({**size, "policies": "none"}, 1) == ()
    with pytest.raises(ValueError, match="policies is 'kgp'; it must be one of"):
        side_by_side({**size, "policies": "kgp"}, 1)


# ------------------------------------------------------------------------------------------ plots


def test_a_run_is_drawn_alike_twice(tmp_path: Path) -> None:
    first, second = tmp_path / "first.svg", tmp_path / "second.svg"
    plot_run(small(), first)
    plot_run(small(), second)
    assert first.read_bytes() == second.read_bytes()
    text = first.read_text(encoding="utf-8")
    for label in ("steady, simulated", "rho", "times off by", "busiest", "idlest"):
        assert label in text
