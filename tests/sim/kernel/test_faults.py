"""Faults: the effects of a schedule on workers and links, and its notation."""

from collections.abc import Callable

import pytest
import simpy

from sim.kernel.faults import (
    Congest,
    Duplicate,
    Fail,
    Fault,
    Lose,
    Pause,
    Replay,
    Schedule,
    Slow,
    inject,
    schedule_of,
)
from sim.kernel.link import QUIET, Link, Noise, Tier
from sim.kernel.plan import Worker
from sim.kernel.station import Station, connect

EVERY_KIND: Schedule = (
    Pause("a", 10, 20),
    Fail("a", 10, 20),
    Slow("a", 10, 20, 2.5),
    Congest("a", 10, 20),
    Lose("a", 3),
    Replay("a", 3, 20),
    Duplicate("a", 3, 20),
)


# ---------------------------------------------------------------------------- as a command line


def test_a_schedule_is_read_from_a_line() -> None:
    text = (
        "pause a 10 20; fail a 10 20;slow a 10 20 2.5; congest a 10 20; "
        "lose a 3; replay a 3 20; duplicate a 3 20;"
    )
    assert schedule_of(text) == EVERY_KIND
    assert schedule_of("congest source-0>log 10 20 0.25") == (
        Congest("source-0>log", 10, 20, 0.25),
    )
    assert schedule_of(" ; ") == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("explode a 1 2", r"there is no fault 'explode'; there are pause, slow, fail, congest"),
        ("pause a 1", r"'pause a 1' is not a fault; write pause worker at_us for_us"),
        ("pause a 1.5 2", r"is not a fault; write pause worker at_us for_us"),
        ("slow a 1 2 inf", r"slow.factor is inf; it must be finite"),
        ("pause a soon 2", r"'pause a soon 2' is not a fault; write pause worker at_us for_us"),
        ("pause a -1 2", r"pause.at_us is -1; it must be at least 0"),
    ],
)
def test_an_invalid_fault_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as refusal:
        schedule_of(text)
    assert "\n" not in str(refusal.value)


# ------------------------------------------------------------------------------------- effects


def served_at(
    *schedule: Fault, restart: Callable[[], object] | None = None, noise: Noise = QUIET
) -> list[tuple[float, int]]:
    """Send four messages over link ``l`` to worker ``w``; each takes 10 us at either."""
    env = simpy.Environment()
    served: list[tuple[float, int]] = []
    station: Station[int] = Station(
        env, Worker(), lambda item, *_: served.append((env.now, item)), restart=restart
    )
    link: Link[int] = Link(env, Tier(0.0, 1.0), print, noise)
    connect(link, lambda item, entered: station.offer(item, 10.0, entered))
    inject(env, schedule, {"w": station}, {"l": link})
    for item in range(4):
        link.send(item, 10)
    env.run()
    station.check()
    link.check()
    return served


def test_effects() -> None:
    assert served_at() == [(20, 0), (30, 1), (40, 2), (50, 3)]
    assert served_at(Duplicate("s", 0, 1)) == served_at()
    assert served_at(Pause("w", 15, 100)) == [(120, 0), (130, 1), (140, 2), (150, 3)]
    assert served_at(Fail("w", 15, 10)) == [(40, 2), (50, 3)]
    assert served_at(Slow("w", 20, 10, 2.0)) == [(20, 0), (35, 1), (45, 2), (55, 3)]
    assert served_at(Congest("l", 5, 100)) == [(120, 0), (130, 1), (140, 2), (150, 3)]
    assert served_at(Lose("l", 1)) == [(20, 0), (40, 2), (50, 3)]
    assert served_at(Replay("l", 0, 100)) == [(20, 0), (30, 1), (40, 2), (50, 3), (120, 0)]


def test_a_message_that_is_sent_again_holds_up_the_others() -> None:
    served = served_at(Lose("l", 1), noise=Noise(retry_us=100.0))
    assert served == [(20, 0), (130, 1), (140, 2), (150, 3)]


def test_a_worker_with_a_checkpoint_serves_again() -> None:
    restarts: list[int] = []
    served = served_at(Fail("w", 35, 10), restart=lambda: restarts.append(1))
    assert served == [(20, 0), (30, 1), (55, 0), (65, 1), (75, 2), (85, 3)]
    assert restarts == [1]


def test_a_fault_comes_before_everything_else_of_its_instant() -> None:
    # At 20 the first item would be done and the second arrives; the failure takes both.
    assert served_at(Fail("w", 20, 5)) == [(40, 2), (50, 3)]


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (Pause("w", -1, 1), r"pause.at_us is -1; it must be at least 0"),
        (Fail("w", 1, 0), r"fail.for_us is 0; it must be above 0"),
        (Fail("w", 1, 10**58), r"fail.for_us is 10{58}; it must be less than 2\^61"),
        (Replay("l", 0, 2**61), r"replay.after_us is \d+; it must be less than 2\^61"),
        (Slow("w", 1, 1, 0), r"slow.factor is 0; it must be above 0"),
        (Congest("l", 1, 1, 1.0), r"congest.share is 1.0; it must be at least 0 and below 1"),
        (Lose("l", -2), r"lose.nth is -2; it must be at least 0"),
        (Replay("l", 0, -1), r"replay.after_us is -1; it must be at least 0"),
        (Congest("x", 1, 1), r"target of congest is 'x'; it must be one of l"),
        (Pause("x", 1, 1), r"target of pause is 'x'; it must be one of w"),
        (Fail("l", 1, 1), r"target of fail is 'l'; it must be one of w"),
    ],
)
def test_bad_values_are_named(fault: Fault, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        served_at(fault)


def test_a_target_may_be_a_slip_of_the_pen() -> None:
    env = simpy.Environment()
    station: Station[int] = Station(env, Worker(), print)
    with pytest.raises(ValueError, match=r"one of worker-0, worker-1; did you mean 'worker-1'\?"):
        inject(env, [Pause("workr-1", 1, 1)], {"worker-0": station, "worker-1": station}, {})
    with pytest.raises(ValueError, match=r"target of lose is 'a>b'; this run has no links"):
        inject(env, [Lose("a>b", 1)], {}, {})
