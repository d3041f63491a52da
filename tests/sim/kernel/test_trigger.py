"""Triggers: where arrivals are cut, and what comes behind the last batch."""

from collections.abc import Callable, Sequence

import pytest
import simpy

from model.vocabulary import Event
from sim.kernel.link import Link
from sim.kernel.plan import EPOCH_2020_US, Plan, replay
from sim.kernel.run import Arrived, run
from sim.kernel.source import Tuple
from sim.kernel.station import Station
from sim.kernel.trigger import At, Every, EveryTuples, Trigger, When


class Recorder:
    """A room that does nothing but record its calls, with their times."""

    def __init__(self, env: simpy.Environment) -> None:
        self.env = env
        self.calls: list[tuple[str, float]] = []
        self.workers: dict[str, Station[int]] = {}
        self.links: dict[str, Link[int]] = {}

    def admits(self, _: Tuple) -> bool:
        return True

    def arrive(self, event: Event) -> None:
        self.calls.append((f"tuple {event.seq}", self.env.now))

    def end_batch(self) -> None:
        self.calls.append(("end", self.env.now))

    def flush(self) -> None:
        self.calls.append(("flush", self.env.now))

    def check(self) -> None:
        """Accept any plan."""


def triggered(
    when: When, times_us: Sequence[int], *, flush: bool = True
) -> tuple[list[tuple[str, float]], Arrived]:
    """Return the calls that a room gets if tuples arrive at these times."""
    start_us = EPOCH_2020_US
    events = [Event(n, n, "a", start_us, 1.0, start_us + at) for n, at in enumerate(times_us)]
    plan = Plan(replay(events, "by hand").sources, trigger=when, flush=flush)
    room, arrived = run(plan, 0, lambda env, _: Recorder(env))
    return room.calls, arrived


def test_a_batch_ends_at_each_multiple_of_the_interval() -> None:
    calls, arrived = triggered(Every(10), (0, 9, 13, 35))
    assert calls == [
        ("tuple 0", 0),
        ("tuple 1", 9),
        ("end", 10),
        ("tuple 2", 13),
        ("end", 20),
        ("tuple 3", 35),
        ("end", 40),
        ("flush", 40),
    ]
    assert (arrived.cuts, arrived.ends_us) == ((2, 3), (10.0, 20.0, 40.0))


def test_an_arrival_at_the_moment_of_a_trigger_belongs_to_the_next_batch() -> None:
    calls, arrived = triggered(Every(10), (0, 10, 10, 20))
    assert [name for name, _ in calls] == [
        *("tuple 0", "end", "tuple 1", "tuple 2", "end", "tuple 3", "end", "flush")
    ]
    assert (arrived.cuts, arrived.ends_us) == ((1, 3), (10.0, 20.0, 30.0))


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


def test_a_batch_ends_after_a_number_of_arrivals() -> None:
    calls, arrived = triggered(EveryTuples(2), (0, 5, 5, 7, 9))
    assert [name for name, _ in calls] == [
        *("tuple 0", "tuple 1", "end", "tuple 2", "tuple 3", "end", "tuple 4", "end", "flush")
    ]
    assert (arrived.cuts, arrived.ends_us) == ((2, 4), (5.0, 7.0, 9.0))


def test_batches_end_after_given_numbers_of_arrivals() -> None:
    calls, arrived = triggered(At((1, 1, 3)), (0, 5, 5, 7))
    assert [name for name, _ in calls] == [
        *("tuple 0", "end", "tuple 1", "tuple 2", "end", "tuple 3", "end", "flush")
    ]
    assert arrived.cuts == (1, 3)


@pytest.mark.parametrize("when", [Every(10), EveryTuples(2), At((1,))])
def test_a_run_without_arrivals_has_no_batch_but_a_flush(when: When) -> None:
    calls, arrived = triggered(when, ())
    assert calls == [("flush", 0)]
    assert (arrived.events, arrived.cuts, arrived.ends_us) == ((), (), ())


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Every(0), r"Every.interval_us is 0; it must be above 0"),
        (lambda: EveryTuples(-1), r"EveryTuples.tuples is -1; it must be above 0"),
        (lambda: At((9, 3)), r"At.cuts is \[9, 3\]; it must be ascending, from 0 on"),
        (lambda: At((-1, 3)), r"At.cuts is \[-1, 3\]; it must be ascending, from 0 on"),
    ],
)
def test_bad_values_are_named(build: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()
