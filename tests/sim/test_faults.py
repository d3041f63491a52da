import json

import pytest
import simpy

from sim.kernel.distributions import Constant
from sim.kernel.faults import (
    Clog,
    Duplicate,
    Fail,
    Fault,
    Lose,
    Pause,
    Replay,
    Schedule,
    Slow,
    from_json,
    inject,
    to_json,
)
from sim.kernel.link import Link, Tier
from sim.kernel.station import Station, Worker, connect

EVERY_KIND: Schedule = (
    Pause("a", 10, 20),
    Fail("a", 10, 20),
    Slow("a", 10, 20, 2.5),
    Clog("a", 10, 20),
    Lose("a", 3),
    Replay("a", 3, 20),
    Duplicate("a", 3, 20),
)


def test_json_round_trip() -> None:
    text = json.dumps(to_json(EVERY_KIND))
    assert from_json(json.loads(text)) == EVERY_KIND
    assert text.startswith('[{"kind": "pause", "worker": "a", "at_us": 10, "for_us": 20}')


def test_printed_faults_are_python() -> None:
    assert eval(repr(EVERY_KIND)) == EVERY_KIND


def test_faults_of_different_kinds_differ() -> None:
    assert len(set(EVERY_KIND)) == len(EVERY_KIND)


@pytest.mark.parametrize(
    "row",
    [
        {},
        {"kind": "explode"},
        {"kind": "pause", "worker": "a", "at_us": 1},
        {"kind": "pause", "worker": "a", "at_us": 1, "for_us": 1, "factor": 2},
    ],
)
def test_what_is_not_a_fault_is_refused(row: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"not a fault: \{"):
        from_json([row])


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (Pause("w", -1, 1), r"pause.at_us is -1; it must be at least 0"),
        (Fail("w", 1, 0), r"fail.for_us is 0; it must be above 0"),
        (Slow("w", 1, 1, 0), r"slow.factor is 0; it must be above 0"),
        (Lose("l", -2), r"lose.nth is -2; it must be at least 0"),
        (Replay("l", 0, -1), r"replay.after_us is -1; it must be at least 0"),
        (Clog("x", 1, 1), r"there is no link 'x' to fault; there are: l"),
        (Pause("x", 1, 1), r"there is no worker 'x' to fault; there are: w"),
    ],
)
def test_bad_values_are_named(fault: Fault, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        served_at(fault)


def served_at(*schedule: Fault) -> list[tuple[float, int]]:
    """Four messages over link ``l`` (10 us each) to worker ``w`` (10 us each)."""
    env = simpy.Environment()
    served: list[tuple[float, int]] = []
    station: Station[int] = Station(
        env, Worker(Constant(10.0)), lambda item, *_: served.append((env.now, item))
    )
    link: Link[int] = Link(env, Tier(0.0, 1.0), print)
    connect(link, station)
    inject(env, schedule, {"w": station}, {"l": link})
    for item in range(4):
        link.send(item, 10)
    env.run()
    station.check()
    return served


def test_effects() -> None:
    assert served_at() == [(20, 0), (30, 1), (40, 2), (50, 3)]
    assert served_at(Duplicate("s", 0, 1)) == served_at()
    assert served_at(Pause("w", 15, 100)) == [(120, 0), (130, 1), (140, 2), (150, 3)]
    assert served_at(Fail("w", 15, 10)) == [(40, 2), (50, 3)]
    assert served_at(Slow("w", 20, 10, 2.0)) == [(20, 0), (35, 1), (45, 2), (55, 3)]
    assert served_at(Clog("l", 5, 100)) == [(120, 0), (130, 1), (140, 2), (150, 3)]
    assert served_at(Lose("l", 1)) == [(20, 0), (40, 2), (50, 3)]
    assert served_at(Replay("l", 0, 100)) == [(20, 0), (30, 1), (40, 2), (50, 3), (120, 0)]


def test_a_fault_comes_before_everything_else_of_its_instant() -> None:
    # At 20 the first tuple would be done and the second arrives; the failure takes both.
    assert served_at(Fail("w", 20, 5)) == [(40, 2), (50, 3)]
