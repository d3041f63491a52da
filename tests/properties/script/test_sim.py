"""Timed runs of room ``script`` send what placements predict (docs/script.md).

What rates say exactly is compared exactly; what is random is held to an interval, which is wrong
with a stated probability.
"""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.script.evaluation import evaluate
from model.script.graph import Graph
from model.script.placement import Placement, load_cap
from model.script.rules import RULES
from model.script.run import admit
from model.script.stream import Stream
from model.vocabulary import Event, ScriptConfig, Workload
from model.vocabulary.script.config import Rejected
from sim.kernel.faults import Fail
from sim.kernel.plan import Plan
from sim.kernel.run import run as run_plan
from sim.script import simulate
from sim.script.cluster import ScriptCluster
from sim.script.host import ScriptTuning
from sim.script.machine import compile_scripts
from sim.script.placements import PLACEMENTS, PLAN
from sim.script.scenarios import DISORDERS, HOUR_US, SETS
from sim.script.settings import prepare
from sim.sweep.statistics import clopper_pearson
from straggler.strategies.script import TimedCase, timed_cases

FAILURE = 1e-6
"""Probability that a confidence interval is wrong."""


@given(case=timed_cases())
def test_workers_are_sent_their_sensors_and_the_results_they_need(case: TimedCase) -> None:
    seen = inspect_run(case.timing.plan, case.config, case.timing.seed)
    graph, placed, room = seen.graph, seen.placed, seen.room
    came = Counter(event.key for event in seen.events)
    for worker, host in enumerate(room.hosts):
        hosted = {graph.nodes[each].sensor for each in placed.hosts[worker]}
        assert len(host.came_us) == sum(came[sensor] for sensor in hosted)
    sent = Counter(
        (each.sender, each.reader, stamp_us) for each in room.sent() for stamp_us in each.stamps_us
    )
    streams = evaluated(seen)
    read = Counter(
        (placed.worker[number], reader, stamp_us)
        for number, readers in placed.readers.items()
        for reader in readers
        for stamp_us, _ in streams[number].points
    )
    assert sent.keys() == read.keys()
    # A worker that has failed sends again what it had sent since its last mark.
    assert all(sent[key] >= times for key, times in read.items())
    if not any(isinstance(fault, Fail) for fault in case.timing.plan.faults):
        assert sent == read
    results = sum(len(streams[number].points) for number in graph.computed)
    assert sum(len(host.record.results) for host in room.hosts) == results


# ------------------------------------------------------------------------------ what is predicted

SETTINGS = {"sensors": "10", "rates_hz": "10,5", "seconds": "20", "cap_percent": "110"}


class InspectedRun(NamedTuple):
    """A run with its room, whose messages are inspected."""

    room: ScriptCluster
    placed: Placement
    events: Sequence[Event]

    @property
    def graph(self) -> Graph:
        """The graph of all scripts."""
        return self.placed.graph

    @property
    def loads(self) -> list[int]:
        """Number of tuples sent to each worker, by worker index."""
        return [len(host.came_us) for host in self.room.hosts]

    @property
    def hours(self) -> Fraction:
        """Length of the period in which sensors should send."""
        assert self.room.tuning.period_us is not None
        return Fraction(self.room.tuning.period_us, HOUR_US)

    def results(self) -> int:
        """Return the results that workers sent to other workers within the period."""
        assert self.room.tuning.period_us is not None
        end_us = self.room.plan.epoch_us + self.room.tuning.period_us
        return sum(stamp_us < end_us for sent in self.room.sent() for stamp_us in sent.stamps_us)


def inspect_run(plan: Plan, config: ScriptConfig, seed: int) -> InspectedRun:
    scripts = compile_scripts(config, plan.tuned(ScriptTuning()).placement)
    room, arrived = run_plan(
        plan, seed, lambda env, seeds: ScriptCluster(env, seeds, plan, config, scripts)
    )
    return InspectedRun(room, scripts.placement, arrived.events)


def evaluated(seen: InspectedRun) -> list[Stream]:
    """Evaluate the scripts over all tuples at once."""
    config, flush = seen.room.config, seen.room.plan.flush
    workload = Workload("script", tuple(seen.events), config.to_json(), flush=flush)
    return evaluate(seen.graph, admit(workload, config, RULES)[0], RULES)


def inspect_settings(seed: int, **settings: object) -> InspectedRun:
    texts = {**SETTINGS, **{key: str(value) for key, value in settings.items()}}
    return inspect_run(*prepare(texts, seed))


@pytest.mark.parametrize("way", PLACEMENTS)
@pytest.mark.parametrize("scenario", SETS)
def test_loads_follow_from_the_rates(seed: int, scenario: str, way: str) -> None:
    # Sensors keep to their rates, and what delays them changes nothing.
    timed = inspect_settings(seed, scenario=scenario, placement=way, disorder="bursts")
    placed, graph = timed.placed, timed.graph
    assert timed.loads == [load * timed.hours for load in placed.loads]
    assert timed.room.tuning.period_us is not None
    end_us = timed.room.plan.epoch_us + timed.room.tuning.period_us
    streams = evaluated(timed)
    windows, others = Fraction(), Fraction()
    for number, readers in placed.readers.items():
        within = sum(stamp_us < end_us for stamp_us, _ in streams[number].points)
        times, predicted = len(readers) * within, len(readers) * graph.per_hour[number]
        # A window has a result each slide; an operation at most one whenever an input has.
        if graph.nodes[number].span is None:
            assert times <= predicted * timed.hours
            others += times
        else:
            assert times == predicted * timed.hours
            windows += times
    assert timed.results() == windows + others
    if scenario not in ("shared", "spans") and way in ("all-split", "by-unit", "by-sensor"):
        assert windows, "no result of a window was sent"
    if not others:
        assert timed.results() == placed.derived * timed.hours


def test_gaps_and_losses_send_less(seed: int) -> None:
    loss = 0.2
    without = inspect_settings(seed, seconds=60, disorder="jitter")
    timed = inspect_settings(seed, seconds=60, disorder="jitter", sensor_loss=loss)
    dropped = inspect_settings(seed, seconds=60, disorder="gaps", sensor_loss=loss)
    sent, arrived = len(without.events), len(timed.events)
    interval = clopper_pearson(sent - arrived, sent, confidence=1 - FAILURE)
    assert interval.contains(loss), f"{interval} (failure {FAILURE:g})"
    assert interval.half_width < 0.05
    # A third of the sensors for a sixth of the time, of which a fifth is lost anyway.
    assert len(dropped.events) < arrived
    for each in (timed, dropped):
        predicted = [load * each.hours for load in each.placed.loads]
        assert all(load < most for load, most in zip(each.loads, predicted, strict=True) if most)


@given(seed=st.integers(0, 10_000), n=st.integers(2, 5), scenario=st.sampled_from(sorted(SETS)))
def test_the_chosen_placement_sends_no_more_than_the_baseline_within_the_cap(
    seed: int, n: int, scenario: str
) -> None:
    settings = {"scenario": scenario, "workers": n, "disorder": "calm", "seconds": 2}
    taken, baseline = (
        inspect_settings(seed, placement=way, **settings) for way in (PLAN, "by-sensor")
    )
    config = taken.room.config
    cap = load_cap(taken.graph, n, config.cap_percent) * taken.hours
    if max(baseline.loads) <= cap:
        assert max(taken.loads) <= cap
        sent = [sum(each.loads) + each.results() for each in (taken, baseline)]
        assert sent[0] <= sent[1]
    # Every tuple that a script needs goes to at least one worker.
    assert sum(taken.loads) >= sum(event.key in config.asked_for for event in taken.events)


def test_a_sensor_with_gaps_holds_results_up_for_less_long_if_silence_counts(seed: int) -> None:
    asked = {"sensors": "12", "seconds": "60", "disorder": "gaps", "placement": PLAN}
    waiting, idle, never_idle = (
        simulate(*prepare({**asked, "idle_after_us": after}, seed)).summary
        for after in ("never", "1000000", "3600000000")
    )
    # Gaps are 10 s long: every result that waits for the end of one waits for a second instead.
    assert float(idle["p99_result_latency_us"]) < float(waiting["p99_result_latency_us"]) / 2
    assert float(idle["mean_result_latency_us"]) < float(waiting["mean_result_latency_us"])
    assert never_idle["mean_result_latency_us"] == waiting["mean_result_latency_us"]


def test_every_disorder_lets_a_worker_reject_something(seed: int) -> None:
    late = {
        disorder: len(
            inspect_settings(seed, disorder=disorder, lateness_us=50_000).room.trace().of(Rejected)
        )
        for disorder in DISORDERS
    }
    assert late.pop("calm") == 0
    assert min(late.values()) > 0, late
