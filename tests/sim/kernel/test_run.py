"""Runs: levels over time, digests, and triggers, where arrivals are cut."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
import simpy

from model.vocabulary import Event, Trace, Workload
from sim.kernel.link import Link
from sim.kernel.plan import EPOCH_2020_US, Plan, replay
from sim.kernel.recorder import Level, Series, Summary
from sim.kernel.run import Arrived, TimedRun, run
from sim.kernel.source import Tuple
from sim.kernel.station import Station
from sim.kernel.trigger import At, Every, EveryTuples, Trigger, When

# --------------------------------------------------------------------------------- levels over time


def test_a_level_is_looked_at_just_before_a_moment() -> None:
    level = Level()
    for value, at_us in ((2.0, 10.0), (5.0, 20.0), (0.0, 22.0)):
        level.set(value, at_us)
    assert level.at([0.0, 10.0, 10.1, 20.0, 22.0, 22.1]).tolist() == [0, 0, 2, 2, 5, 0]
    assert level.at(15.0) == 2.0


def test_the_current_value_counts_as_a_peak() -> None:
    level = Level()
    level.set(7.0, 5.0)
    assert level.peak == 7.0


def test_a_digest_depends_on_everything_that_a_run_gave() -> None:
    summary: Summary = {"arrivals": 1, "input": "x"}
    series: Series = {"time_us": np.array([1.0])}
    one = TimedRun(Plan(()), Workload("slack", (), {}), Trace("sim", ()), series, summary)
    assert len(one.digest) == 64
    same = replace(one, summary=dict(summary), series={"time_us": np.array([1.0])})
    assert one.digest == same.digest
    others = (
        replace(one, workload=one.workload.with_(seed=1)),
        replace(one, summary={"arrivals": "1", "input": "x"}),
        replace(one, summary={"arrivals": 1, "input": "y"}),
        replace(one, series={"time_us": np.array([2.0])}),
        replace(one, series={"time": np.array([1.0])}),
    )
    assert len({one.digest, *(each.digest for each in others)}) == 6


# ----------------------------------------------------------------------------------------- triggers


class Recorder:
    """A room that admits all but one tuple, and records its calls, with their times."""

    def __init__(self, env: simpy.Environment) -> None:
        self.env = env
        self.calls: list[tuple[str, float]] = []
        self.workers: dict[str, Station[int]] = {}
        self.links: dict[str, Link[int]] = {}
        self.is_checked = False

    def admits(self, item: Tuple) -> bool:
        return item.source_id != SHED

    def arrive(self, event: Event) -> None:
        self.calls.append((f"tuple {event.seq}", self.env.now))

    def end_batch(self) -> None:
        self.calls.append(("end", self.env.now))

    def flush(self) -> None:
        self.calls.append(("flush", self.env.now))

    def check(self) -> None:
        self.is_checked = True


SHED = 99


def triggered(when: When, times_us: Sequence[int]) -> tuple[list[tuple[str, float]], Arrived]:
    """Return the calls that a room gets if tuples arrive at these times."""
    start_us = EPOCH_2020_US
    events = [Event(n, n, "a", start_us, 1.0, start_us + at) for n, at in enumerate(times_us)]
    plan = Plan(replay(events, "by hand").sources, trigger=when)
    room, arrived = run(plan, 0, lambda env, _: Recorder(env))
    assert room.is_checked
    return room.calls, arrived


def test_a_tuple_that_the_room_does_not_admit_is_shed() -> None:
    events = [Event(0, n, "a", 0, 1.0, 7) for n in (3, SHED, 4)]
    room, arrived = run(replay(events, "by hand"), 0, lambda env, _: Recorder(env))
    assert [event.source_id for event in arrived.events] == [3, 4]
    assert [name for name, _ in room.calls] == ["tuple 0", "tuple 1", "end", "flush"]
    assert (arrived.counts["shed"], arrived.counts["arrived"]) == (1, 2)


def test_a_batch_ends_at_each_multiple_of_the_interval() -> None:
    calls, arrived = triggered(Every(10), (0, 9, 13, 35))
    assert calls == [
        *(("tuple 0", 0), ("tuple 1", 9), ("end", 10), ("tuple 2", 13), ("end", 20)),
        *(("tuple 3", 35), ("end", 40), ("flush", 40)),
    ]
    assert (arrived.cuts, arrived.ends_us) == ((2, 3), (10.0, 20.0, 40.0))


@pytest.mark.parametrize(
    ("when", "times_us", "course", "cuts", "ends_us"),
    [
        # An arrival at the moment of a trigger belongs to the next batch.
        (Every(10), (0, 10, 10, 20), "0 end 1 2 end 3 end flush", (1, 3), (10, 20, 30)),
        (EveryTuples(2), (0, 5, 5, 7, 9), "0 1 end 2 3 end 4 end flush", (2, 4), (5, 7, 9)),
        (At((1, 1, 3)), (0, 5, 5, 7), "0 end 1 2 end 3 end flush", (1, 3), (0, 5, 7)),
        # A run without arrivals has no batch, but a flush.
        *((when, (), "flush", (), ()) for when in (Every(10), EveryTuples(2), At((1,)))),
    ],
)
def test_a_trigger_ends_batches(
    when: When,
    times_us: tuple[int, ...],
    course: str,
    cuts: tuple[int, ...],
    ends_us: tuple[float, ...],
) -> None:
    calls, arrived = triggered(when, times_us)
    assert " ".join(name.removeprefix("tuple ") for name, _ in calls) == course
    assert (arrived.cuts, arrived.ends_us) == (cuts, ends_us)


def test_an_arrival_that_rounds_to_the_moment_of_a_trigger_belongs_to_the_next_batch() -> None:
    """The log stamps whole microseconds, and the cuts must agree with the stamps."""
    calls: list[str] = []

    def fire(name: str) -> Callable[[], None]:
        return lambda: calls.append(name)

    env = simpy.Environment()
    trigger = Trigger(env, Every(10), fire("end"), fire("over"))

    def arrive(name: str) -> None:
        trigger.before_arrival(round(env.now))
        calls.append(name)
        trigger.after_arrival()

    for name, at_us in (("a", 2.0), ("b", 9.4), ("c", 9.6)):
        simpy.Timeout(env, at_us, name).callbacks.append(lambda event: arrive(event.value))
    simpy.Timeout(env, 9.7).callbacks.append(lambda _: trigger.arrivals_ended())
    env.run()
    assert calls == ["a", "b", "end", "c", "end", "over"]
