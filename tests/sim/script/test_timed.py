"""Timed runs of sensor scripts: they agree with the model and depend on the seed alone."""

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from model.script import make_system as make_reference
from model.vocabulary import ScriptConfig, Workload
from model.vocabulary.script.config import Hosted, Rejected, Result, Undefined
from model.vocabulary.script.tree import Sensor, Statement, Union, Workflow
from sim.script import ScriptRun, from_settings, simulate
from sim.script.cluster import ScriptCluster
from sim.script.figures import _measured
from sim.script.machine import CompiledScripts, ModelScripts, ScriptMachine, compile_scripts
from sim.script.placements import PLACEMENTS
from sim.script.room import TIMED_ROOM
from sim.script.scenarios import DISORDERS, SETS
from sim.script.settings import prepare

SCRIPT = "from tests.sim.script.test_timed import small; print(small().digest)"


def small(seed: int = 1, /, **settings: object) -> ScriptRun:
    texts = {"sensors": 10, "rates_hz": "5,2", "seconds": 12, "workers": 3, **settings}
    return from_settings({key: str(value) for key, value in texts.items()}, seed)


def test_results_of_the_end_of_the_period_are_those_of_the_next_one() -> None:
    period_us = 2_000_000
    sent = [
        SimpleNamespace(stamps_us=stamps) for stamps in ((0, 1_999_999), (2_000_000, 2_000_001))
    ]
    cluster = SimpleNamespace(
        tuning=SimpleNamespace(period_us=period_us),
        plan=SimpleNamespace(epoch_us=0),
        hosts=[SimpleNamespace(came_us=[0.0, 1.0, 2.0])],
        sent=lambda: sent,
    )
    found = _measured(cast(ScriptCluster, cluster))
    assert found["measured_results_per_hour"] == 2 * 1_800
    assert found["measured_tuples_per_hour"] == 3 * 1_800
    assert found["measured_per_hour"] == 5 * 1_800


# ------------------------------------------------------------------------------ any workflows


def test_the_seed_alone_determines_a_run() -> None:
    assert small().digest == small().digest
    assert small().digest != small(2).digest
    root = Path(__file__).parents[3]
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


@pytest.mark.parametrize("scenario", SETS)
@pytest.mark.parametrize("disorder", DISORDERS)
def test_the_model_records_the_same(scenario: str, disorder: str) -> None:
    timed = small(scenario=scenario, disorder=disorder)
    expected = make_reference()(timed.workload)
    assert list(timed.trace.steps()) == list(expected.steps())
    assert list(TIMED_ROOM.make_system()(timed.workload).steps()) == list(expected.steps())
    assert timed.workload.cuts


def test_placements_change_nothing_but_the_hosts() -> None:
    runs = {way: small(placement=way) for way in PLACEMENTS}
    for word in (Result, Undefined, Rejected):
        assert len({timed.trace.of(word) for timed in runs.values()}) == 1
    assert len({timed.workload.arrivals for timed in runs.values()}) == 1
    assert runs["plan"].trace.of(Rejected)
    hosts = {way: timed.trace.of(Hosted) for way, timed in runs.items()}
    assert {each.worker for each in hosts["literal"]} == {0}
    assert len({each.worker for each in hosts["whole"]}) > 1
    # Policy by-sensor sends a sensor to its hash, even if no script there needs it.
    assert set(hosts["by-unit"]) <= set(hosts["by-sensor"])


def test_slow_workers_change_only_times() -> None:
    fast, slow = small(), small(speeds="1,0.02")
    assert list(fast.trace.steps()) == list(slow.trace.steps())
    assert fast.summary["tuples_sent"] == slow.summary["tuples_sent"]
    late = float(slow.summary["mean_result_latency_us"])
    assert late > 5 * float(fast.summary["mean_result_latency_us"])


FAULTS = {
    "pause": "pause worker-1 2000000 3000000",
    "slow": "slow worker-2 3000000 3000000 5",
    "fail": "fail worker-0 5000000 1000000; fail worker-2 3300000 500000; "
    "fail worker-1 11900000 3000000",
    "congest": "congest log>worker-1 3000000 2000000 0.001; congest log>worker-0 5000000 1000000 0",
    "congest between workers": "congest worker-0>worker-1 3000000 3000000 0; "
    "congest worker-1>worker-0 3000000 3000000 0.0001",
    "lose": "lose log>worker-0 10; lose log>worker-1 11; lose worker-0>worker-1 2",
    "lose on the way to the log": "lose source-1>log 5; lose source-4>log 7",
    "replay": "replay log>worker-1 20 500000; replay worker-0>worker-1 1 300000; "
    "replay source-2>log 6 100000",
    "duplicate": "duplicate source-3 4 200000; duplicate source-6 9 1",
}
QUEUES: dict[str, dict[str, object]] = {
    "any number": {},
    "block": {"queue_limit": 2, "when_full": "block"},
    "drop": {"queue_limit": 2, "when_full": "drop"},
}
FULL = {"scenario": "drawn", "shared": 4, "service_us": 30_000, "loss": 0.05, "workers": 3}


@pytest.mark.parametrize("placement", ["all-split", "by-sensor"])
@pytest.mark.parametrize("queue", QUEUES)
@pytest.mark.parametrize("fault", FAULTS)
def test_the_model_records_the_same_under_every_fault(
    fault: str, queue: str, placement: str
) -> None:
    timed = small(**FULL, **QUEUES[queue], faults=FAULTS[fault], placement=placement)
    expected = make_reference()(timed.workload)
    for word in (Result, Undefined, Rejected):
        assert timed.trace.of(word) == expected.of(word)
    assert (
        timed.digest
        == small(**FULL, **QUEUES[queue], faults=FAULTS[fault], placement=placement).digest
    )
    assert ("shed" in timed.summary) == (queue == "drop")
    if fault == "fail":
        assert timed.summary["served_again"]
        assert {each.kind for each in timed.workload.faults} == {"kill"}
    else:
        assert not timed.workload.faults


def test_every_fault_changes_the_run() -> None:
    calm = small(**FULL, placement="all-split").digest
    found = {
        fault: small(**FULL, placement="all-split", faults=faults).digest
        for fault, faults in FAULTS.items()
    }
    # Only a copy that a link of the cluster discards changes nothing.
    assert calm not in found.values()
    assert len(set(found.values())) == len(found)


def test_a_worker_far_away_answers_later() -> None:
    tiers = ("process", "node", "rack", "elsewhere")
    waits = [
        float(small(tiers=tier, tuple_bytes=1_000).summary["mean_tuple_latency_us"])
        for tier in tiers
    ]
    assert waits == sorted(waits)
    assert len(set(waits)) == len(tiers)


def test_a_run_uses_only_the_given_machine() -> None:
    calls: list[tuple[int, str]] = []

    class Watched:
        """A machine of the model that records its number and each method that is called."""

        def __init__(self, machine: ScriptMachine, number: int) -> None:
            self._machine, self._number = machine, number

        def __getattr__(self, name: str) -> object:
            calls.append((self._number, name))
            return getattr(self._machine, name)

    class Scripts(ModelScripts):
        def machine(self, worker: int) -> ScriptMachine:
            return cast(ScriptMachine, Watched(super().machine(worker), worker))

    def compiled(config: ScriptConfig, way: str) -> CompiledScripts:
        made = compile_scripts(config, way)
        return Scripts(made.config, made.placement)

    settings = {"sensors": "10", "seconds": "12", "faults": FAULTS["fail"]}
    plan, config, seed = prepare(settings, 1)
    run = simulate(plan, config, seed, machine=compiled)
    assert run.digest == simulate(plan, config, seed).digest
    names = {name for _, name in calls}
    assert names == {"take", "hear", "end_batch", "flush", "known_us", "saved", "restore"}
    assert {number for number, _ in calls} == {0, 1, 2, 3}


def test_a_watermark_that_follows_the_disorder_waits_less_and_lets_less_in() -> None:
    runs = [
        small(lateness_us=400_000, disorder="gaps-and-bursts", watermark=watermark)
        for watermark in ("fixed", "scaled", "disorder")
    ]
    late = [int(each.summary["late"]) for each in runs]
    waited = [float(each.summary["mean_result_latency_us"]) for each in runs]
    assert late == sorted(late)
    assert late[0] < late[2]
    assert waited[2] < waited[0]
    for each in runs:
        assert each.trace.of(Rejected) == make_reference()(each.workload).of(Rejected)


def test_without_lateness_results_have_no_latency() -> None:
    timed = small(lateness_us="none")
    assert timed.summary["late"] == 0
    assert timed.summary["results"]
    assert "mean_result_latency_us" not in timed.summary
    assert np.isnan(timed.series["latency_us"]).all()


@pytest.mark.parametrize("flush", [True, False])
def test_a_run_without_arrivals_records_nothing(flush: bool) -> None:
    statement = Statement("x", Union((Sensor("a"), Sensor("b"))))
    config = ScriptConfig((Workflow("w", (statement,)),), (("a", 1), ("b", 1)), 2)
    workload = Workload("script", (), config.to_json(), flush=flush)
    assert not len(TIMED_ROOM.make_system()(workload))


# ---------------------------------------------------------------------------------- settings, plots


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"scenario": "brigde"}, "did you mean 'bridge'?"),
        ({"placement": "litteral"}, "did you mean 'literal'?"),
        ({"disorder": "storm"}, "disorder is 'storm'"),
        ({"shared": "11", "scenario": "shared"}, "shared is 11; it must be 0 to 10"),
        ({"sensors": "0"}, "sensors is 0"),
        ({"seconds": "0"}, "seconds is 0"),
        ({"rates_hz": "0"}, "rates_hz is 0.0; it must be a finite number > 0"),
        ({"sensor_loss": "2"}, "sensor_loss is 2.0"),
        ({"loss": "2"}, "Noise.loss is 2.0"),
        ({"loss": "1"}, "Noise.loss is 1.0"),
        ({"speeds": "0"}, "speeds is 0.0; it must be a finite number > 0"),
        ({"queue_limit": "-1"}, "queue_limit is -1"),
        ({"when_full": "wait"}, "when_full is 'wait'"),
        ({"trigger_interval_us": "0"}, "trigger_interval_us is 0"),
        ({"faults": "fail worker-9 1 1"}, "target of fail is 'worker-9'"),
        ({"faults": "congest log>worker-7 1 1 0"}, "target of congest is 'log>worker-7'"),
        ({"faults": "burn worker-0 1 1"}, "there is no fault 'burn'"),
        ({"workers": "0"}, "workers is 0"),
        ({"workflows": "0", "scenario": "drawn"}, "workflows is 0"),
        ({"together": "0", "scenario": "drawn"}, "together is 0"),
        ({"watermark": "literal"}, "watermark is 'literal'"),
        ({"watermark": "scaled", "lateness_us": "none"}, "lateness_us is None"),
        ({"cluster": "0"}, "cluster is 0"),
        ({"lateness_us": "soon"}, "lateness_us is 'soon'"),
        ({"speeds": "1,fast"}, "speeds is 'fast'"),
        ({"tiers": "near"}, "tiers is 'near'"),
        ({"sensor_tier": "far"}, "sensor_tier is 'far'"),
        ({"service_us": "0"}, "service_us is 0.0"),
        ({"result_us": "-1"}, "result_us is -1.0"),
        ({"tuple_bytes": "0"}, "tuple_bytes is 0"),
        ({"sensor": "3"}, "did you mean 'sensors'?"),
    ],
)
def test_a_bad_setting_is_named(settings: dict[str, str], sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        from_settings({"sensors": "10", **settings}, 1)


def test_a_run_is_drawn_the_same_every_time(tmp_path: Path) -> None:
    for name in ("one.svg", "two.svg"):
        TIMED_ROOM.draw(small(), tmp_path / name)
    text = (tmp_path / "one.svg").read_text(encoding="utf-8")
    assert text == (tmp_path / "two.svg").read_text(encoding="utf-8")
    for label in ("gaps-and-bursts, simulated", "3 workers, placement plan", "most", "worker 2"):
        assert label in text
