from collections.abc import Callable
from typing import Any, Literal, cast

import numpy as np
import pytest
import simpy

from sim.kernel.distributions import Constant, Exponential
from sim.kernel.link import Link, Tier
from sim.kernel.station import Offer, Station, Worker, connect

TEN = Constant(10.0)


class Run:
    """A station and what it served: (item, arrived, started, ended)."""

    def __init__(self, worker: Worker, seed: int = 0) -> None:
        self.env = simpy.Environment()
        self.served: list[tuple[int, float, float, float]] = []
        self.entered: list[tuple[float, int]] = []
        rng = np.random.default_rng(seed)
        self.station: Station[int] = Station(self.env, worker, self.done, rng)

    def done(self, item: int, arrived_us: float, started_us: float) -> None:
        self.served.append((item, arrived_us, started_us, self.env.now))

    def at(self, time_us: float, action: Callable[..., Any], *arguments: Any) -> None:
        simpy.Timeout(self.env, time_us).callbacks.append(lambda _: action(*arguments))

    def offer(self, item: int, work_us: float | None = None) -> Offer:
        return self.station.offer(item, work_us, lambda: self.entered.append((self.env.now, item)))

    def finish(self) -> list[tuple[int, float, float, float]]:
        self.env.run()
        self.station.check()
        return self.served


def test_first_come_first_served() -> None:
    run = Run(Worker(TEN))
    assert [run.offer(item) for item in (1, 2)] == [Offer.ENTERED] * 2
    run.at(50.0, run.offer, 3)
    assert run.finish() == [(1, 0, 0, 10), (2, 0, 10, 20), (3, 50, 50, 60)]
    assert run.station.utilisation() == 0.5
    assert run.station.inside.peak == 2
    assert run.station.inside.mean(60.0) == (2 * 10 + 10 + 10) / 60


def test_servers_and_speed_and_own_work() -> None:
    run = Run(Worker(TEN, speed=0.5, servers=2))
    for item, work_us in ((1, None), (2, 5.0), (3, None)):
        run.offer(item, work_us)
    assert run.finish() == [(2, 0, 0, 10), (1, 0, 0, 20), (3, 0, 10, 30)]


def test_dropping_when_full() -> None:
    run = Run(Worker(TEN, queue_limit=1, when_full="drop"))
    outcomes = [run.offer(item) for item in range(4)]
    assert outcomes == [Offer.ENTERED, Offer.ENTERED, Offer.DROPPED, Offer.DROPPED]
    assert [item for item, *_ in run.finish()] == [0, 1]
    assert run.station.dropped == 2


def test_blocking_when_full() -> None:
    run = Run(Worker(TEN, queue_limit=1))
    outcomes = [run.offer(item) for item in range(4)]
    assert outcomes == [Offer.ENTERED, Offer.ENTERED, Offer.BLOCKED, Offer.BLOCKED]
    # A blocked tuple arrives when it enters: the wait at the door is counted apart.
    assert run.finish() == [(0, 0, 0, 10), (1, 0, 10, 20), (2, 10, 20, 30), (3, 20, 30, 40)]
    assert run.entered == [(10, 2), (20, 3)]
    assert (run.station.blocked, run.station.blocked_us, run.station.at_door) == (2, 30, 0)


def test_nobody_overtakes_those_at_the_door() -> None:
    run = Run(Worker(TEN, servers=2, queue_limit=0))
    run.station.pause()
    # Told that 1 has entered, its sender offers 3 at once, while 2 still stands at the door.
    run.station.offer(1, entered=lambda: run.offer(3))
    run.offer(2)
    run.at(5.0, run.station.resume)
    assert run.finish() == [(1, 5, 5, 15), (2, 5, 5, 15), (3, 15, 15, 25)]


def test_a_pause_keeps_everything() -> None:
    run = Run(Worker(TEN))
    run.offer(1)
    run.offer(2)
    run.at(4.0, run.station.pause)
    run.at(5.0, run.station.pause)
    run.at(50.0, run.station.resume)
    run.at(60.0, run.offer, 3)
    run.at(104.0, run.station.resume)
    assert run.finish() == [(1, 0, 0, 110), (2, 0, 110, 120), (3, 60, 120, 130)]
    assert run.station.utilisation() == 30 / 130
    with pytest.raises(ValueError, match="pauses to take back is 0"):
        run.station.resume()


def test_slowdowns_apply_at_once_and_multiply() -> None:
    run = Run(Worker(TEN))
    run.offer(1)
    run.at(2.0, run.station.slow, 2.0)  # 8 us of work left
    run.at(6.0, run.station.slow, 3.0)  # 6 left, six times slower
    run.at(24.0, run.station.unslow, 2.0)  # 3 left, three times slower
    run.at(27.0, run.station.unslow, 3.0)  # 2 left, at full speed
    assert run.finish() == [(1, 0, 0, 29)]
    with pytest.raises(ValueError, match=r"factor is 3.0; it must be"):
        run.station.unslow(3.0)


def test_a_pause_during_a_slowdown() -> None:
    run = Run(Worker(TEN))
    run.offer(1)
    run.station.slow(2.0)
    run.at(10.0, run.station.pause)  # 5 us of work left
    run.at(15.0, run.station.unslow, 2.0)
    run.at(20.0, run.station.resume)
    assert run.finish() == [(1, 0, 0, 25)]


def test_a_failure_loses_what_the_worker_holds() -> None:
    run = Run(Worker(TEN, queue_limit=1))
    for item in (1, 2, 3):
        run.offer(item)
    run.at(5.0, run.station.fail)
    run.at(6.0, run.offer, 4)
    run.at(30.0, run.station.recover)
    run.at(40.0, run.offer, 5)
    assert run.finish() == [(5, 40, 40, 50)]
    assert run.entered == [(5, 3)]  # the sender must not wait for ever
    assert run.station.lost == 4
    with pytest.raises(ValueError, match="failures to take back is 0"):
        run.station.recover()


def test_a_link_stands_still_while_a_worker_is_full() -> None:
    run = Run(Worker(TEN, queue_limit=1))
    link: Link[int] = Link(run.env, Tier(0.0, 1.0), print)
    connect(link, run.station)
    for item in range(5):
        link.send(item, 1)  # one a microsecond, ten times what the worker can do
    served = run.finish()
    assert [ended for *_, ended in served] == [11, 21, 31, 41, 51]
    # 0 serves, 1 waits, 2 stands at the door and stops the link; then one by one.
    assert [arrived for _, arrived, _, _ in served] == [1, 2, 11, 21, 31]
    assert (run.station.blocked, link.inside) == (3, 0)


def test_check_notices_a_lost_tuple() -> None:
    run = Run(Worker(TEN))
    run.offer(1)
    run.offer(2)
    run.station._queue.clear()
    with pytest.raises(AssertionError):
        run.finish()


@pytest.mark.parametrize("seed", range(20))
def test_little_and_conservation_whatever_goes_wrong(seed: int) -> None:
    rng = np.random.default_rng(seed)
    when_full: Literal["block", "drop"] = "block" if seed % 2 else "drop"
    run = Run(Worker(Exponential(10.0), servers=2, queue_limit=3, when_full=when_full), seed)
    for item, time_us in enumerate(rng.uniform(0, 1_000, 200)):
        run.at(float(time_us), run.offer, item)
    station = run.station
    for begin, end in ((station.pause, station.resume), (station.fail, station.recover)):
        for time_us in rng.uniform(0, 1_000, 5):
            run.at(float(time_us), begin)
            run.at(float(time_us) + 30.0, end)
    for time_us in rng.uniform(0, 1_000, 5):
        run.at(float(time_us), station.slow, 3.0)
        run.at(float(time_us) + 50.0, station.unslow, 3.0)
    for stop_us in range(50, 1_500, 50):
        run.env.run(until=stop_us)
        station.check()
    run.finish()
    assert station.offered == 200
    assert station.inside.value == 0
    assert station.served > 0
    assert station.lost > 0
    assert (station.blocked if seed % 2 else station.dropped) > 0


def test_bad_values_are_named() -> None:
    with pytest.raises(ValueError, match=r"Worker.speed is 0; it must be finite and above 0"):
        Worker(speed=0)
    with pytest.raises(ValueError, match=r"Worker.servers is 0; it must be at least 1"):
        Worker(servers=0)
    with pytest.raises(ValueError, match=r"Worker.when_full is 'wait'; it must be 'block' or"):
        Worker(when_full=cast("Literal['block']", "wait"))
    with pytest.raises(ValueError, match=r"Worker.queue_limit is -1; it must be at least 0"):
        Worker(queue_limit=-1)
    with pytest.raises(ValueError, match=r"factor is -2; it must be"):
        Run(Worker()).station.slow(-2)
    with pytest.raises(ValueError, match="needs a random stream"):
        Station(simpy.Environment(), Worker(Exponential(1.0)), print)


def test_work_may_depend_on_what_was_done_before() -> None:
    env = simpy.Environment()
    done: list[tuple[str, float]] = []
    station: Station[str] = Station(
        env,
        Worker(Constant(1.0), speed=0.5),
        lambda item, _arrived_us, _started_us: done.append((item, env.now)),
        work=lambda _item: 10.0 * (1 + len(done)),
    )
    for item in ("a", "b"):
        station.offer(item)
    simpy.Timeout(env, 30.0).callbacks.append(lambda _: station.pause())
    simpy.Timeout(env, 130.0).callbacks.append(lambda _: station.resume())
    env.run()
    # The next service begins before the end of the last one is told; what is interrupted is not
    # asked for again.
    assert done == [("a", 20.0), ("b", 140.0)]
