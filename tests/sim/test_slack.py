"""The timed room ``slack``: figures by hand and by a loop, and runs without workers."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from simpy import Environment

from model.vocabulary import Event, SlackConfig, Workload, task_of
from model.vocabulary.windows import Late
from model.windows.state import Window
from sim.kernel.distributions import Constant, Exponential
from sim.kernel.plan import Cluster, Plan, Worker
from sim.kernel.plan import replay as replayed
from sim.kernel.run import run as run_room
from sim.kernel.seeds import Seeds
from sim.kernel.source import Recording, Row
from sim.kernel.trigger import Every
from sim.slack import TimedRun, simulate
from sim.slack.room import machine_of
from sim.slack.stream_figures import Course, FirstAnswer, figures_at
from sim.sweep.measurable import measurable
from sim.windows.cluster import WindowCluster, WindowTuning
from sim.windows.observations import FinishedRun, Observations, observe
from sim.windows.scenarios import bursts as bursts_plan
from straggler.strategies.streams import cases

SECOND_US = 1_000_000
QUERY = SlackConfig(size_us=10 * SECOND_US, slide_us=2 * SECOND_US, tasks=2)
BUSY = Cluster((Worker(), Worker(0.5)), Exponential(5_000.0))


def bursty(cluster: Cluster = BUSY, **changes: Any) -> Plan:
    return replace(bursts_plan(0), cluster=cluster, **changes)


def run_of(plan: Plan, config: SlackConfig, seed: int) -> Observations:
    """Run a plan, and look at all of it."""
    machines = [machine_of(config, number) for number in range(config.tasks)]

    def build(env: Environment, seeds: Seeds) -> WindowCluster[SlackConfig]:
        return WindowCluster(env, seeds, plan, config, machines)

    room, arrived = run_room(plan, seed, build)
    return observe(FinishedRun(room, arrived))


# -------------------------------------------------------------------------------------- the times


START_US = 1_000_000


def rows(*times_us: tuple[int, int, float], cluster: Cluster, **changes: Any) -> Plan:
    """Return tuples by event time, arrival and value."""
    recorded = [Row(START_US + ts, START_US + at, "a", value) for ts, at, value in times_us]
    return Plan((Recording(tuple(recorded)),), cluster=cluster, epoch_us=START_US, **changes)


BY_HAND = rows(
    *((0, 0, 1.0), (5, 6, 2.0), (12, 13, 4.0), (3, 20, 8.0), (31, 32, 16.0)),
    cluster=Cluster(service=Constant(1.0)),
    tuning=WindowTuning(correction_us=7.0, row_us=2.0),
    trigger=Every(25),
)
"""Served one after the other, 1 us each; the fourth is late, the fifth closes the second."""
TUMBLING = SlackConfig(size_us=10, slide_us=10, control="max", max_age_us=5)


def by_hand() -> TimedRun:
    return simulate(BY_HAND, TUMBLING, 0)


def test_a_run_small_enough_to_be_computed_by_hand() -> None:
    run = by_hand()
    assert run.workload.cuts == (4,)
    # Window 0 is answered at 14, when the third tuple has been served; window 10 at 33. The mark
    # of the first batch comes at 25; the correction reads three rows and can be seen at 38.
    expected = {
        "arrivals": 5,
        "batches": 2,
        "windows": 3,
        "answered_by_stream": 2,
        "answered_by_flush": 1,
        "late_pairs": 1,
        "late_share": 1 / 5,
        "corrections": 1,
        "history_rows_read": 3,
        "mean_latency_us": ((14 - 0) + (14 - 6) + (33 - 13)) / 3,
        "mean_window_latency_us": ((14 - 10) + (33 - 20)) / 2,
        "mean_correction_latency_us": 38 - 20,
        "mean_slack_us": (9 + 9) / 5,
        "mean_coverage": (2 / 3 + 1) / 2,
        "mean_first_error": (8 / 11 + 0) / 2,
        "duration_us": 50,
        "mean_buffered": ((14 - 1) + (14 - 7) + (33 - 14) + (50 - 33)) / 50,
        "utilisation_0": 5 / 50,
        "utilisation_corrector": 13 / 50,
    }
    assert {name: run.summary[name] for name in expected} == pytest.approx(expected)


def test_one_worker_sheds_while_another_one_never_does() -> None:
    """Tuples of the task that is slow and full are shed, and none of the other task."""
    workers = Worker(), Worker(0.001, queue_limit=1, when_full="drop")
    run = simulate(bursty(Cluster(workers, Exponential(5_000.0))), QUERY, 1)
    seen = {task_of(event.key, 2) for event in run.workload.arrivals}
    assert int(run.summary["shed"]) > 0
    assert seen == {0, 1}


def test_series_of_the_run_by_hand() -> None:
    series = by_hand().series
    assert series["time_us"].tolist() == [10, 20, 30, 40, 50]
    assert series["buffered"].tolist() == [2, 1, 1, 1, 0]
    assert series["pending_pairs"].tolist() == [0, 0, 1, 0, 0]
    assert series["corrections"].tolist() == [0, 0, 0, 1, 1]
    expected = {
        "slack_us": [0, 0, 9, 9, np.nan],
        "watermark_lag_us": [10 - 5, 20 - 12, 30 - 12, 40 - 22, np.nan],
        "latency_us": [np.nan, 11, np.nan, 20, np.nan],
        "coverage": [np.nan, 2 / 3, np.nan, 1, np.nan],
        "first_error": [np.nan, 8 / 11, 8 / 11, 4 / 11, 4 / 11],
        "current_error": [np.nan, 8 / 11, 8 / 11, 0, 0],
    }
    for name, column in expected.items():
        np.testing.assert_allclose(series[name], column, err_msg=name)


@given(case=cases())
def test_pairs_are_those_that_a_loop_would_find(case: Workload) -> None:
    config, cluster = SlackConfig.from_json(case.config), Cluster(service=Constant(0.5))
    plan = replayed(case.arrivals, "again", case.cuts, cluster=cluster)
    seen = run_of(plan, config, 0)
    closed, query = seen.answers.by_stream, seen.run.query
    first_us = dict(zip(closed.window.tolist(), closed.at_us.tolist(), strict=True))
    numbers = {window: number for number, window in enumerate(seen.answers.windows)}
    for task, pairs in zip(seen.run.tasks, seen.pairs, strict=True):
        found = task.of(Late)
        late = set(zip(found.rows, [step.start_us for step in found.steps], strict=True))
        waits, total = [], 0
        for row, event in enumerate(task.accepted.events):
            for index in query.windows.indices(event.event_time_us):
                total += 1
                start = query.windows.start_us(index)
                key = event.key if query.keyed else ""
                number = numbers.get(Window(task.number, start, key), -1)
                if (row, start) not in late and number in first_us:
                    waits.append(first_us[number] - (event.arrival_us - plan.epoch_us))
        assert pairs.total == total
        assert sorted(pairs.latency_us.tolist()) == pytest.approx(sorted(waits))


# ---------------------------------------------------------------------------------- without workers


GAME = {"scenario": "game-2", "messages": "30000", "size_us": "500000", "slide_us": "100000"}
AT_ONCE = {"keyed": "no", "tasks": "1", "speeds": "1", "service": "constant", "service_us": "0.001"}
SAME = (
    *("mean_slack_us", "mean_latency_us", "mean_coverage"),
    *("mean_first_error", "wrong_share", "miss_share"),
)


def stream(**settings: str) -> dict[str, Any]:
    return dict(measurable("slack", "stream").measure({**GAME, **settings}, 1))


@pytest.mark.parametrize(
    "control",
    ["conformal", *(pytest.param(each, marks=pytest.mark.long) for each in ("max", "pd", "aq"))],
)
def test_a_run_without_workers_is_a_timed_run_whose_work_takes_no_time(control: str) -> None:
    timed = measurable("slack", "sim").measure({**GAME, **AT_ONCE, "control": control}, 1)
    alone = stream(control=control)
    for name in SAME:
        assert alone[name] == pytest.approx(timed[name], rel=0.01, abs=1e-9), name


def test_levels_that_run_side_by_side_have_the_figures_of_separate_runs() -> None:
    known, game = measurable("slack", "stream"), {**GAME, "messages": "2000"}
    for name, levels in (("control", ("pd", "aq")), ("at", ("0.4", "1"))):
        together = known.fans[name](game, 1, levels)
        assert together == [known.measure({**game, name: level}, 1) for level in levels]


def test_aq_k_slack_corrects_nothing_and_follows_recent_delays() -> None:
    found = stream(control="aq")
    assert found["current_error"] == found["first_error"] > 0
    assert found["slack_us"] != stream(control="aq", recent_us="1000000")["slack_us"]


def test_a_moment_is_a_share_of_the_time_until_the_last_arrival() -> None:
    config = SlackConfig(size_us=10, slide_us=10, control="max")
    times_us = [*range(10, 110, 10), 200]
    events = [Event(seq, seq, "a", at_us, 1.0, at_us) for seq, at_us in enumerate(times_us)]
    answers = [FirstAnswer(event.event_time_us, event.seq + 1, 1.0, 1) for event in events[:-1]]
    course = Course(config, events, 0, np.arange(11.0), answers, [], [])
    found = [figures_at(course, moment)["slack_us"] for moment in (0.1, 0.5, 1.0)]
    assert found == [0.5, 8.5, 10.0]
