"""The timed room ``watermark``: the same steps as the model, and correct figures."""

from dataclasses import replace

import numpy as np
import pytest

from model.vocabulary import WatermarkConfig, task_of
from model.vocabulary.watermark import Inserted
from model.watermark import run as model_run
from sim.kernel.distributions import Constant
from sim.kernel.plan import Cluster, Plan, Worker
from sim.kernel.source import Recording, Row
from sim.watermark import simulate
from sim.windows.scenarios import phases as phases_plan
from straggler.rooms.watermark.measures import measure

SECOND_US = 1_000_000
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


def test_measures_of_a_rule_count_windows_like_the_timed_run() -> None:
    timed = simulate(phases_plan(2), replace(QUERY, keyed=False, aggregate="count"), 2)
    config = WatermarkConfig.from_json(timed.workload.config)
    ratio = measure(config, timed.workload.arrivals).ratio
    assert ratio == pytest.approx(timed.summary["performance_ratio"], rel=0.01)


def test_inserted_watermarks_reach_a_slow_task_late() -> None:
    keys = [next(key for key in "abcdef" if task_of(key, 2) == number) for number in range(2)]
    times_s = [(1, 1, 0), (2, 2, 1), (12, 12, 0), (13, 13, 1), (14, 14, 1)]
    rows = tuple(Row(at * SECOND_US, came * SECOND_US, keys[key], 1.0) for at, came, key in times_s)
    config = replace(QUERY, max_wait_us=0, upstreams=2, keyed=False)
    slow = Cluster((Worker(), Worker(speed=0.5)), service=Constant(1.5 * SECOND_US))
    ended_us = {}
    for name, cluster in (("at once", AT_ONCE), ("slow", slow)):
        plan = Plan((Recording(rows),), cluster=cluster, epoch_us=SECOND_US, name=name)
        timed = simulate(plan, config, 0)
        # Both operators have passed the end of [0, 10) at 13 s, whatever the tasks do.
        assert [step.wm_us // SECOND_US for step in timed.trace.of(Inserted)] == [1, 2, 12]
        assert timed.trace.digest() == model_run(timed.workload).digest()
        ended_us[name] = timed.summary["mean_window_latency_us"]
    assert ended_us["at once"] == 3 * SECOND_US
    assert ended_us["slow"] > 3 * SECOND_US  # type: ignore[operator]  # figures are numbers here


def test_disorder_behind_upstreams_is_the_share_of_the_longest_wait() -> None:
    config = replace(QUERY, upstreams=2, keyed=False, tasks=1)
    series = simulate(phases_plan(1), config, 1).series
    seen = np.isfinite(series["disorder"])
    share = series["wait_us"][seen] / config.max_wait_us
    assert series["disorder"][seen] == pytest.approx(share)
    assert len(set(share)) > 10
