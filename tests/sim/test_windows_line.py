"""A worker as a recurrence: held to a station of the simulation."""

from functools import partial
from itertools import accumulate

import numpy as np
import pytest
import simpy
from hypothesis import given
from hypothesis import strategies as st

from sim.cluster import Station, Worker
from sim.windows.line import Line, line_of

Items = list[tuple[int, int]]
"""Time since the one before, and work."""

ITEMS: st.SearchStrategy[Items] = st.lists(
    st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=30
)
SPEEDS = st.sampled_from((0.5, 1.0, 2.0))


class AtStation:
    """The same with an event queue, looked at now and then."""

    def __init__(self, came_us: list[float], work_us: list[float], speed: float, look_us: float):
        self.env = env = simpy.Environment()
        self.times: list[tuple[float, float, float]] = []
        self.looks: list[tuple[float, float, float]] = []
        self.station = Station[int](env, Worker(speed=speed), self.done)
        for number, (at_us, work) in enumerate(zip(came_us, work_us, strict=True)):
            simpy.Timeout(env, at_us).callbacks.append(partial(self.offer, number, work))
        for n in range(30):
            simpy.Timeout(env, (n + 0.5) * look_us).callbacks.append(self.look)
        env.run()
        self.station.check()

    def offer(self, number: int, work_us: float, _: simpy.Event) -> None:
        self.station.offer(number, work_us)

    def done(self, _item: int, arrived_us: float, started_us: float) -> None:
        self.times.append((arrived_us, started_us, self.env.now))

    def look(self, _: simpy.Event) -> None:
        busy_us = self.station.utilisation() * self.env.now
        self.looks.append((self.env.now, self.station.inside.value, busy_us))


def both(items: Items, speed: float, look_us: float = 7.0) -> tuple[Line, AtStation]:
    came_us = [float(at) for at in accumulate(gap for gap, _ in items)]
    work_us = [float(work) for _, work in items]
    return line_of(came_us, work_us, speed), AtStation(came_us, work_us, speed, look_us)


@given(ITEMS, SPEEDS)
def test_items_go_through_as_through_a_station(items: Items, speed: float) -> None:
    line, other = both(items, speed)
    assert list(zip(*(column.tolist() for column in line), strict=True)) == other.times
    now_us = other.env.now
    assert line.mean_inside(now_us) == pytest.approx(other.station.inside.mean(now_us))
    assert line.utilisation(now_us) == pytest.approx(other.station.utilisation())
    # In whole microseconds; at speed 2 services end at halves.
    at_us, inside, busy_us = (np.array(column) for column in zip(*other.looks, strict=True))
    off = ~np.isin(at_us, line.ended_us)
    assert line.inside(at_us)[off].tolist() == inside[off].tolist()
    assert line.busy_us(at_us)[off] == pytest.approx(busy_us[off])


@given(ITEMS, SPEEDS)
def test_the_most_that_were_inside(items: Items, speed: float) -> None:
    line, other = both(items, speed)
    if np.intersect1d(line.arrived_us, line.ended_us).size:
        # Who leaves at a moment makes room for whoever comes then; a station takes turns.
        assert line.peak_inside <= other.station.inside.peak
    else:
        assert line.peak_inside == other.station.inside.peak


def test_a_line_by_hand() -> None:
    line = line_of([0.0, 5.0, 20.0], [10.0, 10.0, 10.0], 1.0)
    assert line.began_us.tolist() == [0.0, 10.0, 20.0]
    assert line.ended_us.tolist() == [10.0, 20.0, 30.0]
    # The third one comes when the second one leaves.
    assert line.peak_inside == 2
    assert line.mean_inside(40.0) == (10 + 15 + 10) / 40
    assert line.utilisation(40.0) == 0.75
    assert line.end_us == 30.0
    assert line.inside(np.array([0.0, 5.0, 6.0, 20.0, 25.0, 31.0])).tolist() == [0, 1, 2, 1, 1, 0]
    assert line.busy_us(np.array([0.0, 5.0, 20.0, 35.0])).tolist() == [0, 5, 20, 30]


def test_nobody_comes() -> None:
    line = line_of((), (), 1.0)
    assert (line.end_us, line.peak_inside, line.utilisation(9.0), line.mean_inside(9.0)) == (0,) * 4
    assert line.inside(np.array([3.0])).tolist() == line.busy_us(np.array([3.0])).tolist() == [0.0]
