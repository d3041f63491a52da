"""The timed room ``slack``: same steps as the model, and figures that are what they say."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from math import nan
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from simpy import Environment

from model.checking.claims import Outcome
from model.slack import run as model_run
from model.slack.claims import check
from model.vocabulary import Event, Fault, SlackConfig, Workload, task_of
from model.vocabulary.windows import Cleared, Correction, Final, Late, Result
from model.windows.state import Window
from sim.kernel import faults
from sim.kernel.distributions import Constant, Exponential
from sim.kernel.plan import Cluster, Plan, Worker
from sim.kernel.plan import replay as replayed
from sim.kernel.run import run as run_room
from sim.kernel.seeds import Seeds
from sim.kernel.source import Recording, Row, Source
from sim.kernel.trigger import Every
from sim.scenarios import umts
from sim.slack import TimedRun, from_settings, simulate
from sim.slack.room import TIMED_ROOM, machine_of
from sim.windows.cluster import WindowCluster, WindowTuning
from sim.windows.observations import FinishedRun, Observations, observe
from sim.windows.scenarios import bursts as bursts_plan
from tests.sim.output_analysis import batch_means

ROOT = Path(__file__).resolve().parents[2]
SECOND_US = 1_000_000
QUERY = SlackConfig(size_us=10 * SECOND_US, slide_us=2 * SECOND_US, tasks=2)
BUSY = Cluster((Worker(), Worker(0.5)), Exponential(5_000.0))
CONTROLS = ("conformal", "fixed", "max", "pd", "pd-clamped")


def bursty(cluster: Cluster = BUSY, **changes: Any) -> Plan:
    return replace(bursts_plan(0), cluster=cluster, **changes)


@pytest.fixture(scope="module")
def bursts() -> TimedRun:
    return simulate(bursty(), QUERY, 1)


def run_of(plan: Plan, config: SlackConfig, seed: int) -> Observations:
    """Run a plan, and look at all of it."""
    machines = [machine_of(config, number) for number in range(config.tasks)]

    def build(env: Environment, seeds: Seeds) -> WindowCluster[SlackConfig]:
        return WindowCluster(env, seeds, plan, config, machines)

    room, arrived = run_room(plan, seed, build)
    return observe(FinishedRun(room, arrived))


def random_workload(seed: int) -> Workload:
    """Draw a small, nasty case: ties, redeliveries, refused values, empty batches, any control."""
    random = Random(seed)
    config = SlackConfig(
        size_us=random.choice((5, 10, 12)),
        slide_us=random.choice((3, 5, 15)),
        keyed=random.random() < 0.5,
        tasks=random.choice((1, 2, 3)),
        control=random.choice(CONTROLS),
        fixed_slack_us=random.choice((0, 4)),
        gamma_us=random.choice((0, 8)),
        max_age_us=random.choice((None, 6)),
        max_future_us=random.choice((None, 20)),
    )
    arrivals: list[Event] = []
    arrival_us = 1_000_000
    for seq in range(random.randrange(60)):
        arrival_us += random.choice((0, 1, 1, 2))
        if arrivals and random.random() < 0.2:
            again = random.choice(arrivals)
            arrivals.append(again._replace(seq=seq, arrival_us=arrival_us))
            continue
        event_time_us = arrival_us - int(random.expovariate(0.2)) + 40 * (random.random() < 0.05)
        value = random.choice((-1.0, 1.0, 2.0, 5.0, 8.0))
        arrivals.append(Event(seq, seq, random.choice("abc"), event_time_us, value, arrival_us))
    cuts = tuple(sorted(random.randrange(len(arrivals) + 1) for _ in range(random.randrange(8))))
    faults = tuple(Fault(random.choice(("kill", "restart")), n) for n in range(2))
    flush = random.random() < 0.8
    return Workload("slack", tuple(arrivals), config.to_json(), cuts, faults, seed, flush)


# ------------------------------------------------------------------------------ same as the model


def test_a_replayed_workload_has_the_trace_of_the_model() -> None:
    seen = dict.fromkeys((Result, Late, Correction, Final), 0)
    for seed in range(300):
        workload = random_workload(seed)
        trace = TIMED_ROOM.make_system()(workload)
        assert list(trace.steps()) == list(model_run(workload).steps()), f"seed {seed}"
        for word in seen:
            seen[word] += len(trace.of(word))
    assert min(seen.values()) > 100, f"too little happened: {seen}"


@pytest.mark.parametrize("control", CONTROLS)
def test_a_simulated_run_has_the_trace_of_the_model_and_keeps_every_promise(control: str) -> None:
    config = replace(QUERY, control=control, gamma_us=SECOND_US)
    run = simulate(replace(umts(5, messages=500), cluster=BUSY), config, 5)
    assert run.trace.digest() == model_run(run.workload).digest()
    assert run.trace.digest() == TIMED_ROOM.make_system()(run.workload).digest()
    verdicts = check(run.workload, run.trace)
    assert {verdict.outcome for verdict in verdicts} == {Outcome.HOLDS}, verdicts


def test_slower_workers_and_slower_corrections_change_no_step(bursts: TimedRun) -> None:
    workers = (Worker(), Worker(0.05))
    slow = simulate(
        bursty(Cluster(workers, Exponential(9_000.0)), tuning=WindowTuning(Worker(0.01))), QUERY, 1
    )
    assert slow.workload == bursts.workload
    assert slow.trace.digest() == bursts.trace.digest()


def test_everything_is_exact_in_the_end(bursts: TimedRun) -> None:
    assert bursts.trace.of(Late), "nothing was late"
    assert all(final.exact for final in bursts.trace.of(Final))
    assert len(bursts.trace.of(Cleared)) == bursts.summary["late_pairs"]
    assert bursts.summary["final_error"] == 0.0
    for name in ("current_error", "pending_pairs", "buffered", "queue"):
        assert bursts.series[name][-1] == 0.0, name
    assert np.nanmax(bursts.series["first_error"]) > 0.0


# ------------------------------------------------------------------------------------ determinism


def test_the_same_seed_gives_the_same_run_whatever_the_hash_seed() -> None:
    program = "from sim.slack import from_settings as f; print(f({'messages': '200'}, 3).digest)"
    here = from_settings({"messages": "200"}, 3).digest
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
        there = subprocess.run(
            [sys.executable, "-c", program],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert there.stdout.strip() == here
    assert from_settings({"messages": "200"}, 4).digest != here


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
        "peak_latency_us": 20,
        "mean_window_latency_us": ((14 - 10) + (33 - 20)) / 2,
        "mean_correction_latency_us": 38 - 20,
        "mean_slack_us": (9 + 9) / 5,
        "mean_coverage": (2 / 3 + 1) / 2,
        "mean_first_error": (8 / 11 + 0) / 2,
        "final_error": 0,
        "duration_us": 50,
        "mean_buffered": ((14 - 1) + (14 - 7) + (33 - 14) + (50 - 33)) / 50,
        "peak_buffered": 2,
        "utilisation_0": 5 / 50,
        "utilisation_corrector": 13 / 50,
    }
    assert {name: run.summary[name] for name in expected} == pytest.approx(expected)


def test_a_correction_at_the_end_reads_its_rows_once() -> None:
    never_us = 10 * SECOND_US
    config = replace(TUMBLING, max_age_us=never_us, gamma_us=never_us)
    run = simulate(BY_HAND, config, 0)
    assert [each.reason for each in run.trace.of(Correction)] == ["flush"]
    assert run.summary["history_rows_read"] == by_hand().summary["history_rows_read"]


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


def test_pairs_are_those_that_a_loop_would_find() -> None:
    # Windows with and without many pairs.
    many = from_settings({"messages": "40"}, 1).workload
    for workload in (many, *map(random_workload, range(40))):
        plan = replayed(
            workload.arrivals, "again", workload.cuts, cluster=Cluster(service=Constant(0.5))
        )
        seen = run_of(plan, SlackConfig.from_json(workload.config), 0)
        observed, answers, query = seen.run, seen.answers, seen.run.query
        closed = answers.by_stream
        first_us = dict(zip(closed.window.tolist(), closed.at_us.tolist(), strict=True))
        numbers = {window: number for number, window in enumerate(answers.windows)}
        for task, pairs in zip(observed.tasks, seen.pairs, strict=True):
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


def test_max_waits_longer_than_conformal_on_umts() -> None:
    """Mean latency over the same arrivals and service times, paired by seed."""
    seeds = range(6)
    waiting: dict[str, list[float]] = {}
    for control in ("max", "conformal"):
        config = replace(QUERY, control=control)
        runs = [
            simulate(replace(umts(seed, messages=600), cluster=BUSY), config, seed)
            for seed in seeds
        ]
        waiting[control] = [float(run.summary["mean_latency_us"]) for run in runs]
    differences = np.subtract(waiting["max"], waiting["conformal"])
    interval = batch_means(differences, confidence=0.95, batches=len(differences))
    assert interval.low > 0, f"95% interval of the mean difference in us: {interval}"


def test_slower_workers_mean_longer_waiting() -> None:
    """The same arrivals, the same draws of service times, workers of one half to a tenth."""
    summaries = [
        simulate(bursty(replace(BUSY, workers=(Worker(speed),))), QUERY, 1).summary
        for speed in (1.0, 0.5, 0.2)
    ]
    for name in ("mean_latency_us", "mean_window_latency_us", "mean_queue", "utilisation_0"):
        fast, middle, slow = (float(summary[name]) for summary in summaries)
        assert fast < middle < slow, name


def test_busy_workers_do_the_work_they_are_given(bursts: TimedRun) -> None:
    """Utilisation law: busy time is the number of tuples times the mean service time."""
    busy_us = sum(
        float(bursts.summary[f"utilisation_{n}"])
        * float(bursts.summary["duration_us"])
        * BUSY.workers[n].speed
        for n in range(2)
    )
    mean_us = busy_us / int(bursts.summary["arrivals"])
    error_us = 5_000.0 / float(bursts.summary["arrivals"]) ** 0.5
    assert abs(mean_us - 5_000.0) < 5 * error_us


def test_series_are_one_table(bursts: TimedRun) -> None:
    series, summary = bursts.series, bursts.summary
    assert len({len(column) for column in series.values()}) == 1
    assert (np.diff(series["time_us"]) > 0).all()
    assert series["time_us"][-1] == summary["duration_us"]
    assert series["late_pairs"][-1] == summary["late_pairs"]
    assert series["corrections"][-1] == summary["corrections"]
    assert series["buffered"].max() <= summary["peak_buffered"]
    assert (series["queue"] == series["queue_0"] + series["queue_1"]).all()
    assert np.nanmax(series["alpha"]) == 1.0


# ------------------------------------------------------------------------------------ at the edges


def test_nothing_arrives() -> None:
    run = simulate(Plan((Source(events=0),)), QUERY, 0)
    assert len(run.trace) == 0
    assert run.summary["arrivals"] == 0
    assert "mean_latency_us" not in run.summary
    assert len(run.series["time_us"]) == 1


def test_tuples_between_windows_are_nobodys() -> None:
    config = SlackConfig(size_us=1, slide_us=10, control="max")
    run = simulate(rows((5, 5, 1.0), (15, 15, 1.0), cluster=BUSY), config, 0)
    assert len(run.trace.of(Result)) == 0
    assert run.summary["pairs"] == 0


TWO_SERVERS = Cluster((Worker(servers=2),))
REFUSED: tuple[tuple[Callable[[], Plan], str], ...] = (
    (lambda: bursty(Cluster(())), "Cluster.workers is (); it must be at least one worker"),
    (lambda: bursty(TWO_SERVERS), "servers of a worker is 2; it must be 1"),
    (
        lambda: bursty(tuning=WindowTuning(Worker(queue_limit=5))),
        "queue_limit of the corrector is 5; it must be None, which is no limit",
    ),
    (lambda: bursty(tuning=WindowTuning(row_us=-1.0)), "row_us is -1.0; it must be finite and at"),
    (lambda: bursty(tuning=WindowTuning(correction_us=nan)), "correction_us is nan; it must be"),
    (lambda: bursty(tuning="slow"), "Plan.tuning is 'slow'; it must be a WindowTuning"),
    (
        lambda: bursty(faults=(faults.Pause("worker-2", 1, 1),)),
        "target of pause is 'worker-2'; it must be one of worker-0, worker-1, corrector",
    ),
    (
        lambda: bursty(faults=(faults.Lose("log>worker-0", 1),)),
        "target of lose is 'log>worker-0'; it must be one of source-0>log",
    ),
)


@pytest.mark.parametrize(("build", "message"), REFUSED)
def test_impossible_values_are_refused(build: Callable[[], Plan], message: str) -> None:
    with pytest.raises(ValueError) as refusal:  # noqa: PT011 (compared below)
        simulate(build(), QUERY, 0)
    assert str(refusal.value).startswith(message)
    assert "\n" not in str(refusal.value)
