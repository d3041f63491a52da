"""Runs: the same for the same seed, faults of what there is not, and Python's collector."""

import gc
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import simpy

from model.vocabulary import Event, SlackConfig
from sim import grouping, join, script, slack, watermark
from sim.kernel.faults import Congest, Duplicate, Fail, Lose, Pause, Slow
from sim.kernel.link import Link
from sim.kernel.log import simulate_arrivals
from sim.kernel.plan import Plan, Worker
from sim.kernel.run import TimedRun, run
from sim.kernel.seeds import Seeds
from sim.kernel.source import Source, Tuple
from sim.kernel.station import Station
from sim.kernel.trigger import Every
from sim.scenarios import umts
from tests.sim.kernel.test_log import STORMY

ROOT = Path(__file__).parents[3]
SCRIPT = "from tests.sim.kernel.test_run import digests; print(*digests())"
SECOND_US = 1_000_000
ROOMS: Mapping[str, Callable[..., TimedRun]] = {
    "slack": slack.from_settings,
    "watermark": watermark.from_settings,
    "join": join.from_settings,
    "grouping": grouping.from_settings,
    "script": script.from_settings,
}
QUERY = SlackConfig(10 * SECOND_US, 2 * SECOND_US, tasks=2)
FAULTY = replace(
    umts(3, messages=100),
    faults=(Slow("worker-1", 9_000_000, 9_000_000, 4.0), Fail("worker-0", 20_000_000, 500_000)),
)


class Room:
    """The smallest room: one worker, which notes what it is told."""

    def __init__(self, env: simpy.Environment, seeds: Seeds) -> None:
        self.worker = Station[Event](env, Worker(), self._serve)
        self.workers = {"worker-0": self.worker}
        self.links: dict[str, Link[Event]] = {}
        self.first = int(seeds.stream("room").integers(1_000_000))
        self.served: list[Event] = []
        self.batches = 0
        self.is_flushed = self.is_checked = False

    def _serve(self, event: Event, _arrived_us: float, _started_us: float) -> None:
        self.served.append(event)

    def admits(self, item: Tuple) -> bool:
        return item.source_id != 1

    def arrive(self, event: Event) -> None:
        self.worker.offer(event, 10.0)

    def end_batch(self) -> None:
        self.batches += 1

    def flush(self) -> None:
        self.is_flushed = True

    def check(self) -> None:
        self.worker.check()
        self.is_checked = True


# --------------------------------------------------------------------------------------- a run


def test_a_run_gives_the_room_what_arrives_and_reports_where_it_was_cut() -> None:
    room, arrived = run(Plan((Source(4),), trigger=Every(2 * SECOND_US)), 5, Room)
    assert [event.source_id for event in room.served] == [0, 2, 3]
    assert room.served == list(arrived.events)
    assert (arrived.cuts, arrived.ends_us) == ((1,), (2.0 * SECOND_US, 4.0 * SECOND_US))
    assert (arrived.counts["shed"], arrived.counts["arrived"]) == (1, 3)
    assert (room.batches, room.is_flushed, room.is_checked) == (2, True, True)


def test_a_run_without_a_flush() -> None:
    room, _ = run(Plan((Source(1),), flush=False), 5, Room)
    assert not room.is_flushed


def test_streams_of_a_room_are_those_of_the_seed() -> None:
    drawn = [run(Plan(()), seed, Room)[0].first for seed in (5, 5, 6)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_faults_reach_the_workers_of_the_room() -> None:
    plan = Plan((Source(1),), faults=(Pause("worker-0", 0, 500),))
    room, _ = run(plan, 5, Room)
    assert room.worker.inside.changed_us == 510.0


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (Pause("worker-1", 1, 1), r"target of pause is 'worker-1'; it must be one of worker-0"),
        (Pause("relay-0", 1, 1), r"target of pause is 'relay-0'; it must be one of worker-0"),
        (Lose("log>worker-0", 1), r"target of lose is 'log>worker-0'; this run has no links"),
        (Congest("worker-0", 1, 1), r"target of congest is 'worker-0'; this run has no links"),
        (Duplicate("source-1", 1, 1), r"target of duplicate is 'source-1'; it must be one of sou"),
    ],
)
def test_faults_of_what_there_is_not_are_refused(
    fault: Pause | Lose | Congest | Duplicate, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        run(Plan((Source(1),), faults=(fault,)), 5, Room)


# --------------------------------------------------------------------------------- determinism


def digests() -> list[str]:
    return [simulate_arrivals(STORMY, 3).digest(), slack.simulate(FAULTY, QUERY, 3).digest]


def test_the_same_seed_gives_the_same_run_twice_in_a_process() -> None:
    assert digests() == digests()
    assert slack.simulate(FAULTY, QUERY, 4).digest != slack.simulate(FAULTY, QUERY, 3).digest


def test_the_same_seed_gives_the_same_run_under_two_hash_seeds() -> None:
    for hash_seed in ("0", "4242"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
        there = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            capture_output=True,
            check=True,
            cwd=ROOT,
            env=environment,
            text=True,
            timeout=60,
        )
        assert there.stdout.split() == digests()


# ----------------------------------------------------------------------- Python's own collector


class Collecting(Room):
    """Notes whether the collector of cyclic garbage is on while it works."""

    was_on: bool | None = None

    def arrive(self, event: Event) -> None:
        Collecting.was_on = gc.isenabled()
        super().arrive(event)


def test_the_collector_stands_still_and_goes_on() -> None:
    assert gc.isenabled()
    run(Plan((Source(1),)), 5, Collecting)
    assert Collecting.was_on is False
    assert gc.isenabled()


def test_the_collector_goes_on_after_a_failure() -> None:
    with pytest.raises(ValueError, match="target of pause"):
        run(Plan((Source(1),), faults=(Pause("nobody", 1, 1),)), 5, Room)
    assert gc.isenabled()


def test_a_disabled_collector_stays_disabled_after_a_run() -> None:
    gc.disable()
    try:
        run(Plan((Source(1),)), 5, Room)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_frozen_objects_stay_frozen_after_a_run() -> None:
    gc.freeze()
    try:
        run(Plan((Source(1),)), 5, Room)
        assert gc.get_freeze_count() > 1_000
    finally:
        gc.unfreeze()


def test_the_collector_does_not_scan_a_runs_objects_after_its_end() -> None:
    gc.collect()
    kept, arrived = run(Plan((Source(20_000),)), 5, Room)
    assert sum(gc.get_count()) < len(arrived.events) / 10
    assert any(each is kept for each in gc.get_objects(generation=2))
    assert gc.get_freeze_count() == 0


IN_WINDOWS = {
    "messages": "300",
    "tiers": "node,rack",
    "faults": "fail worker-0 9000000 500000; lose log>worker-1 5; pause corrector 20000000 5",
}
SETTINGS: Mapping[str, Mapping[str, str]] = {
    "slack": IN_WINDOWS,
    "watermark": IN_WINDOWS,
    "join": {
        "seconds": "1",
        "trigger_interval_us": "250000",
        "faults": "fail worker-0 300000 50000; pause worker-1 100000 5; "
        "lose worker-0>worker-1 5; replay worker-2>worker-1 3 500",
    },
    "grouping": {
        "tuples": "2000",
        "faults": "fail worker-0 3000 500; lose log>worker-1 5; pause worker-1 100 5",
    },
    "script": {
        "seconds": "2",
        "placement": "all-split",
        "tiers": "node,rack",
        "faults": "fail worker-0 300000 50000; lose log>worker-1 5; pause worker-1 100000 5",
    },
}
"""Digests of a short run of every room with many faults."""


@pytest.mark.parametrize("name", ROOMS)
def test_nothing_is_left_of_a_run_that_is_over(name: str) -> None:
    """Hundreds of them, in a sweep, would fill the memory."""
    simulate, settings = ROOMS[name], SETTINGS[name]
    simulate(settings, 1)  # whatever is made once and kept
    gc.collect()
    gc.disable()
    try:
        summary = simulate(settings, 1).summary
        assert summary["sent_again"]
        assert summary.get("served_again") or summary.get("failures")
        # An environment of SimPy is a circle, of a few objects.
        assert gc.collect() < 20
    finally:
        gc.enable()


def test_a_failure_of_the_room_is_not_hidden() -> None:
    class Losing(Room):
        def check(self) -> None:
            self.worker.offered += 1
            super().check()

    with pytest.raises(AssertionError):
        run(Plan((Source(1),)), 5, Losing)
