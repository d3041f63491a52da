"""The timed room: a seed says everything, policies side by side, settings, and plots."""

import os
import subprocess
import sys
import sysconfig
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from model.checking.claims import Outcome
from model.grouping import make_system as make_reference
from model.grouping.claims import judge
from model.vocabulary.grouping import POLICIES, Heavy, Route
from sim.grouping import TimedRun, from_settings, side_by_side
from sim.grouping.experiments import BASE, SITUATIONS
from sim.grouping.room import TIMED_ROOM
from sim.grouping.scenarios import SCENARIOS
from sim.grouping.settings import prepare
from sim.grouping.words import read_words
from sim.kernel.link import HERE

SCRIPT = "from tests.sim.test_grouping import small; print(small().digest)"


def small(seed: int = 1, **settings: object) -> TimedRun:
    given = {"tuples": 3_000, "keys": 100, "window_tuples": 500, "batch_tuples": 250, "senders": 2}
    texts = {**given, "instances": 4, **settings}
    return from_settings({key: str(value) for key, value in texts.items()}, seed)


def figure(timed: TimedRun, name: str) -> float:
    return float(timed.summary[name])


def test_the_seed_alone_determines_a_run() -> None:
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
    assert list(TIMED_ROOM.make_system()(timed.workload).steps()) == list(expected.steps())
    for verdict in judge(timed.workload, timed.trace).verdicts:
        assert verdict.outcome is Outcome.HOLDS, (verdict.claim, verdict.sentence)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_scenario_has_the_requested_number_of_tuples(scenario: str) -> None:
    for tuples in (1, 13):
        timed = small(scenario=scenario, tuples=tuples)
        assert len(timed.workload.arrivals) == tuples
        assert len(timed.trace.of(Route)) == tuples


def test_words_come_in_the_order_of_the_text_but_for_delays() -> None:
    timed = small(scenario="words")
    sent = sorted(timed.workload.arrivals, key=lambda event: event.source_id)
    first = [word for word, _ in islice(read_words(), len(sent))]
    assert [event.key for event in sent] == first
    assert len(set(first)) > len(first) / 20


def test_words_have_the_numbers_of_their_lines() -> None:
    module = Path(
        sysconfig.get_path("stdlib"), min(f"{each}.py" for each in sys.stdlib_module_names)
    )
    lines = module.read_text(encoding="utf-8").splitlines()
    words = list(islice(read_words(), 100))
    for word, number in words:
        assert word in lines[number - 1]
    assert len({number for _, number in words}) > 10


def test_arrivals_and_work_do_not_depend_on_the_policy() -> None:
    one, other = small(policy="key"), small(policy="tag")
    assert one.workload.arrivals == other.workload.arrivals
    assert one.trace.of(Route) != other.trace.of(Route)
    # At speed 1 everywhere the same work is the same time, wherever it is done.
    one, other = (small(policy=each, speeds=1, instances=1) for each in ("key", "tag"))
    assert one.summary["mean_latency_us"] == other.summary["mean_latency_us"]


def test_the_published_situations_have_windows_and_batches_of_one_size() -> None:
    sizes = {name: BASE[name] for name in ("window_tuples", "batch_tuples")}
    assert len(SITUATIONS) == 3
    for settings in SITUATIONS.values():
        assert {name: settings.get(name) for name in sizes} == sizes


# ------------------------------------------------------------------------------------- figures


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
        (
            "load",
            "much",
            "load is 'much'; it must be a finite number >= 0.001 and <= 1,000, or backlog",
        ),
        ("load", "0", "load is 0.0; it must be a finite number >= 0.001 and <= 1,000"),
        ("tiers", "node,far", "tiers is 'far'; it must be one of none, process, node, rack, else"),
        ("speeds", "1,-1", "speeds is -1.0; it must be a finite number > 0"),
        ("speeds", "1,1e-9", "speeds is 1e-09; it must be from a millionth to a million"),
        ("instances", "0", "instances is 0; it must be an integer > 0"),
        ("tuples", "0", "tuples is 0; it must be an integer > 0"),
        ("times", "guessed", "times is 'guessed'; it must be one of measured, given"),
        ("service", "often", "service is 'often'; it must be one of exponential, constant"),
        ("zipf", "-1", "zipf is -1.0; it must be a finite number >= 0"),
        ("theta", "2", "theta is 2.0; it must be a finite number >= 1e-15 and < 1"),
        ("queue_limit", "0", "queue_limit is 0; it must be above 0"),
        ("queue_limit", "few", "queue_limit is 'few'; it must be an integer >= 0, or none"),
        ("when_full", "wait", "when_full is 'wait'; it must be one of block, drop"),
        ("faults", "fail worker-12 5 5", "target of fail is 'worker-12'; it must be one of"),
        ("faults", "fail worker-1", "'fail worker-1' is not a fault; write fail worker at_us for"),
        ("batch_tuples", "0", "batch_tuples is 0; it must be an integer > 0"),
        ("tupels", "1", "there is no setting 'tupels'; did you mean 'tuples'?"),
    ],
)
def test_bad_settings_are_refused(key: str, value: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        from_settings({key: value}, 1)


@pytest.mark.parametrize(("key", "value"), [("speeds", "1,1e-9"), ("queue_limit", "0")])
def test_impossible_instances_are_refused_before_a_run_starts(key: str, value: str) -> None:
    with pytest.raises(ValueError, match=key):
        prepare({key: value})


def test_speeds_and_tiers_are_those_of_instances_in_turn() -> None:
    plan = prepare({"speeds": "1,0.5", "tiers": "elsewhere,process,rack"}).plan
    workers = [plan.cluster.worker(n) for n in range(12)]
    assert [worker.speed for worker in workers] == [1.0, 0.5] * 6
    assert [each.place in (None, HERE) for each in workers] == [False, True, False] * 4


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
    TIMED_ROOM.draw(small(), first)
    TIMED_ROOM.draw(small(), second)
    assert first.read_bytes() == second.read_bytes()
    text = first.read_text(encoding="utf-8")
    for label in ("steady, simulated", "rho", "times off by", "busiest", "idlest"):
        assert label in text
