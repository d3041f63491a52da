"""The cluster of windowed rooms when things go wrong, and figures of room ``watermark`` by hand.

Every fault costs time, and changes what arrives or nothing.

Whatever happens, the trace of a run is the model's trace of the run's workload.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from model.slack import run as model_slack
from model.vocabulary import Fault, SlackConfig, WatermarkConfig, task_of
from model.vocabulary.settings import read_settings
from model.vocabulary.windows import Correction
from sim.kernel.disorder import Burst
from sim.kernel.distributions import Constant, Exponential
from sim.kernel.plan import Cluster, Plan
from sim.kernel.run import Arrived, TimedRun
from sim.kernel.run import run as run_room
from sim.kernel.source import Recording, Row
from sim.slack import SETTINGS as SLACK_SETTINGS
from sim.slack import simulate as simulate_slack
from sim.slack.room import machine_of as slack_machine
from sim.watermark import simulate
from sim.windows.cluster import WindowCluster
from sim.windows.scenarios import phases as phases_plan
from sim.windows.settings import plan_of

SECOND_US = 1_000_000
SEED = 3
SETTINGS = {
    "scenario": "bursts",
    "messages": "400",
    "tiers": "node,rack,elsewhere",
    "speeds": "1,0.5,0.7",
    "service_us": "6000",
    "correction_us": "300000",
}
"""16 seconds, about 100 tuples a second; three workers, each at the end of a link of its own."""
STORMS = tuple(Burst(at * SECOND_US, SECOND_US, 0.3, Exponential(2.0 * SECOND_US)) for at in (3, 8))
SIZES = {"size_us": 2 * SECOND_US, "slide_us": SECOND_US, "tasks": 3, "max_age_us": SECOND_US}
OF_SLACK = SlackConfig.from_json({**SIZES, "control": "pd"})


@cache
def run(*changes: tuple[str, str]) -> TimedRun:
    """Run room ``slack`` with these settings instead of those above."""
    given = read_settings({**SETTINGS, **dict(changes)}, SLACK_SETTINGS)
    plan = replace(plan_of(given, SEED), disturbances=STORMS)
    return simulate_slack(plan, OF_SLACK, SEED)


def parts(*changes: tuple[str, str]) -> tuple[WindowCluster[Any], Arrived]:
    """Return the room of such a run, and what arrived."""
    plan = run(*changes).plan
    machines = [slack_machine(OF_SLACK, number) for number in range(3)]
    return run_room(
        plan, SEED, lambda env, seeds: WindowCluster(env, seeds, plan, OF_SLACK, machines)
    )


OF_THE_CLUSTER = {
    "pause": "pause worker-0 5000000 2000000",
    "slow": "slow worker-0 4000000 6000000 4",
    "fail": "fail worker-0 5400000 1000000",
    "two fail": "fail worker-0 5400000 1000000; fail worker-2 5700000 3000000",
    "fails twice": "fail worker-0 5400000 1000000; fail worker-0 6100000 2000000",
    "congest": "congest log>worker-1 5000000 3000000",
    "congest to a share": "congest log>worker-0 1000000 9000000 0.00001",
    "lose": "lose log>worker-1 100",
    "replay": "replay log>worker-1 100 5000",
    "pause corrector": "pause corrector 3000000 9000000",
    "fail corrector": "fail corrector 6000000 1000000",
    "block": "",
    "block and fail": "fail worker-0 5400000 1000000; lose log>worker-1 100",
}
"""Faults that cost time but change no arrival."""
SHEDDING = {"drop": "", "drop and congest": "congest log>worker-0 5000000 3000000"}
QUEUES = {
    "block": (("queue_limit", "3"), ("service_us", "12000")),
    "block and fail": (("queue_limit", "3"), ("service_us", "12000")),
    "drop": (("queue_limit", "3"), ("when_full", "drop"), ("service_us", "12000")),
    "drop and congest": (("queue_limit", "3"), ("when_full", "drop")),
}
FAULTS: Mapping[str, tuple[tuple[str, str], ...]] = {
    name: (*QUEUES.get(name, ()), *([("faults", faults)] if faults else []))
    for name, faults in {**OF_THE_CLUSTER, **SHEDDING}.items()
}


@pytest.mark.parametrize("fault", OF_THE_CLUSTER)
def test_faults_of_the_cluster_change_no_arrival(fault: str) -> None:
    calm, found = run(), run(*FAULTS[fault])
    assert found.workload.with_(faults=()) == calm.workload
    assert found.trace.digest() == calm.trace.digest()
    # Only a copy that is discarded, and a corrector that fails when idle, cost no time.
    assert found.digest != calm.digest or fault in ("replay", "fail corrector")


# -------------------------------------------------------------------- what each of them costs


def test_a_failed_worker_serves_again_from_its_last_mark() -> None:
    calm, found = run(), run(*FAULTS["fail"])
    assert "served_again" not in calm.summary
    assert 0 < int(found.summary["served_again"]) < 60
    # It failed at 5.4 s, in the micro-batch that had begun at 5 s.
    assert found.workload.faults == (Fault("kill", 5),)


def test_a_corrector_that_fails_kills_the_batch_of_its_correction() -> None:
    room, _ = parts()
    first = room.corrector.corrections[0]
    at_us = round(first.at_us) - 1_000  # under way
    changes = (("faults", f"fail corrector {at_us} 500000"),)
    found = run(*changes)
    (kill,) = found.workload.faults
    begun = min(step.batch for step in found.trace.of(Correction))
    assert kill == Fault("kill", begun)
    again, _ = parts(*changes)
    # All of its work, which is at least 0.3 s, is done again after half a second.
    assert again.corrector.corrections[0].at_us > first.at_us + 700_000
    assert again.corrector.corrections[0][1:] == first[1:]
    assert found.trace.digest() == model_slack(found.workload).digest()


# --------------------------------------------------------------------------- queues with limits


@pytest.mark.parametrize("fault", SHEDDING)
def test_a_full_worker_sheds_where_the_plan_says_so(fault: str) -> None:
    calm, found = run(), run(*FAULTS[fault])
    shed = int(found.summary["shed"])
    assert shed > 20
    assert int(found.summary["arrivals"]) + shed == int(calm.summary["arrivals"])
    room, _ = parts(*FAULTS[fault])
    kept = {event.source_id for event in found.workload.arrivals}
    assert kept < {event.source_id for event in calm.workload.arrivals}
    # Marks enter a full queue, too. What waits on a link that is down has its room by then.
    marks = room.batches + 1
    assert max(task.station.inside.peak for task in room.tasks) <= 1 + 3 + marks


# ------------------------------------------------------------------------- figures of the watermark


QUERY = WatermarkConfig(10 * SECOND_US, 10 * SECOND_US, 8 * SECOND_US, k=20, tasks=2)
AT_ONCE = Cluster(service=Constant(0.0))


def by_hand() -> Plan:
    """Return a plan with two windows of one key; a tuple of the first window is late."""
    times_s = [(1, 1, 1), (8, 8, 2), (12, 12, 4), (9, 13, 8), (22, 22, 16)]
    rows = [Row(at * SECOND_US, came * SECOND_US, "a", float(value)) for at, came, value in times_s]
    recording = Recording(tuple(rows))
    return Plan((recording,), cluster=AT_ONCE, epoch_us=SECOND_US, name="by hand")


def test_figures_of_a_run_by_hand() -> None:
    config = replace(QUERY, tasks=1, max_wait_us=0)
    timed = simulate(by_hand(), config, 0)
    assert timed.summary["late_pairs"] == 1
    # [0, 10) opens at 1 s and closes at 12 s with two tuples, [10, 20) at 12 s and 22 s with one.
    assert timed.summary["performance_ratio"] == pytest.approx((2 + 1) / (11 + 10))
    assert timed.summary["answered_by_flush"] == 1


def test_a_window_is_counted_over_all_tasks() -> None:
    keys = ("a", next(key for key in "bcdef" if task_of(key, 2) != task_of("a", 2)))
    # Both keys have tuples at 1 s and 12 s; the second key's part is answered 3 s later.
    times_s = [(1, 1, 0), (2, 2, 1), (3, 3, 1), (12, 12, 0), (15, 15, 1), (25, 25, 0)]
    rows = tuple(Row(at * SECOND_US, came * SECOND_US, keys[key], 1.0) for at, came, key in times_s)
    plan = Plan((Recording(rows),), cluster=AT_ONCE, epoch_us=SECOND_US, name="two tasks")
    config = replace(QUERY, max_wait_us=0, keyed=False)
    summary = simulate(plan, config, 0).summary
    # [0, 10) has a part of 1 tuple (1 s to 12 s) and one of 2 tuples (2 s to 15 s). [10, 20) is
    # left out, because the flush answers the part of the second key.
    assert summary["answered_by_flush"] == 2
    assert summary["performance_ratio"] == pytest.approx(3 / ((11 + 13) / 2))
    assert summary["performance_ratio_last"] == pytest.approx(3 / (15 - 1))
    keyed = simulate(plan, replace(config, keyed=True), 0).summary
    # Windows of one key have one part: [0, 10) and [10, 20) of the first key, [0, 10) of the other.
    assert keyed["performance_ratio"] == pytest.approx((1 + 2 + 1) / (11 + 13 + 13))
    assert keyed["performance_ratio_last"] == keyed["performance_ratio"]


def test_disorder_behind_upstreams_is_the_share_of_the_longest_wait() -> None:
    config = replace(QUERY, upstreams=2, keyed=False, tasks=1)
    series = simulate(phases_plan(1), config, 1).series
    seen = np.isfinite(series["disorder"])
    share = series["wait_us"][seen] / config.max_wait_us
    assert series["disorder"][seen] == pytest.approx(share)
    assert len(set(share)) > 10
