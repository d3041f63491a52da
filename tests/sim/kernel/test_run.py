"""Runs: the same for the same seed, levels over time, and nothing left when they are over."""

import gc
from collections.abc import Callable, Mapping

import numpy as np
import pytest
import simpy

from model.vocabulary import Event, Trace, Workload
from sim import grouping, join, script, slack, watermark
from sim.kernel.faults import Congest, Duplicate, Lose, Pause
from sim.kernel.link import Link
from sim.kernel.plan import Plan, Worker
from sim.kernel.recorder import Level, Series, Summary, digest_of
from sim.kernel.run import TimedRun, run
from sim.kernel.seeds import Seeds
from sim.kernel.source import Source, Tuple
from sim.kernel.station import Station
from sim.kernel.trigger import Every

SECOND_US = 1_000_000
ROOMS: Mapping[str, Callable[..., TimedRun]] = {
    "slack": slack.from_settings,
    "watermark": watermark.from_settings,
    "join": join.from_settings,
    "grouping": grouping.from_settings,
    "script": script.from_settings,
}


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


# --------------------------------------------------------------------------------- levels over time


def steps() -> Level:
    """Return a level: 0 until 10, 2 until 20, 5 until 22, then 0."""
    level = Level()
    level.set(2.0, 10.0)
    level.set(5.0, 20.0)
    level.set(0.0, 22.0)
    return level


def test_a_level_is_weighted_by_time() -> None:
    level = steps()
    assert level.integral_us(40.0) == 30.0
    assert level.mean(40.0) == 0.75
    assert level.peak == 5.0
    assert level.value == 0.0
    assert level.changed_us == 22.0


def test_a_level_is_looked_at_just_before_a_moment() -> None:
    level = steps()
    assert level.at([0.0, 10.0, 10.1, 20.0, 22.0, 22.1]).tolist() == [0, 0, 2, 2, 5, 0]
    assert level.at(15.0) == 2.0


def test_several_changes_at_once_leave_the_last_one() -> None:
    level = Level()
    for value in (1.0, 9.0, 4.0):
        level.set(value, 5.0)
    assert level.at([5.0, 6.0]).tolist() == [0.0, 4.0]
    assert level.integral_us(7.0) == 8.0
    assert level.peak == 4.0  # 9 did not last


def test_the_current_value_counts_as_a_peak() -> None:
    level = Level()
    level.set(7.0, 5.0)
    assert level.peak == 7.0


def test_integrals_before_between_and_after_the_changes() -> None:
    times_us = [0.0, 5.0, 10.0, 15.0, 20.0, 21.0, 22.0, 30.0]
    assert steps().integral_us(times_us).tolist() == [0, 0, 0, 10, 20, 25, 30, 30]


def test_a_digest_depends_on_everything_that_a_run_gave() -> None:
    trace, workload = Trace("sim", ()), Workload("slack", (), {})
    summary: Summary = {"arrivals": 1, "input": "x"}
    series: Series = {"time_us": np.array([1.0])}
    digest = digest_of(trace, workload, summary, series)
    assert len(digest) == 64
    assert digest == digest_of(trace, workload, dict(summary), {"time_us": np.array([1.0])})
    others = (
        digest_of(trace, workload.with_(seed=1), summary, series),
        digest_of(trace, workload, {"arrivals": "1", "input": "x"}, series),
        digest_of(trace, workload, {"arrivals": 1, "input": "y"}, series),
        digest_of(trace, workload, summary, {"time_us": np.array([2.0])}),
        digest_of(trace, workload, summary, {"time": np.array([1.0])}),
    )
    assert len({digest, *others}) == 6
