"""Stations: queues, speed, pauses, failures with and without a checkpoint."""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pytest
import simpy

from sim.kernel.plan import Worker
from sim.kernel.station import Station

TEN_US = 10.0


class Run:
    """A station and what it served: (item, arrived, started, ended)."""

    def __init__(self, worker: Worker, *, restarts: bool = False) -> None:
        self.env = simpy.Environment()
        self.served: list[tuple[int, float, float, float]] = []
        self.entered: list[tuple[float, int]] = []
        self.restarted_us: list[float] = []
        restart = self.restart if restarts else None
        self.station: Station[int] = Station(self.env, worker, self.done, restart=restart)

    def done(self, item: int, arrived_us: float, started_us: float) -> None:
        self.served.append((item, arrived_us, started_us, self.env.now))

    def restart(self) -> None:
        self.restarted_us.append(self.env.now)

    def at(self, time_us: float, action: Callable[..., Any], *arguments: Any) -> None:
        simpy.Timeout(self.env, time_us).callbacks.append(lambda _: action(*arguments))

    def offer(self, item: int, work_us: float = TEN_US) -> bool:
        entered = lambda: self.entered.append((self.env.now, item))  # noqa: E731  # it stands in for a method
        return self.station.offer(item, work_us, entered)

    def finish(self) -> list[tuple[int, float, float, float]]:
        self.env.run()
        self.station.check()
        return self.served


def test_first_come_first_served() -> None:
    run = Run(Worker())
    assert [run.offer(item) for item in (1, 2)] == [False] * 2
    run.at(50.0, run.offer, 3)
    assert run.finish() == [(1, 0, 0, 10), (2, 0, 10, 20), (3, 50, 50, 60)]
    assert run.station.busy.mean(60.0) == 0.5
    assert run.station.inside.peak == 2
    assert run.station.inside.mean(60.0) == (2 * 10 + 10 + 10) / 60


def test_what_was_let_in_enters_even_a_full_queue_that_drops() -> None:
    run = Run(Worker(queue_limit=1, when_full="drop"))
    assert [run.offer(item) for item in range(4)] == [False] * 4
    assert [item for item, *_ in run.finish()] == [0, 1, 2, 3]


def test_blocking_when_full() -> None:
    run = Run(Worker(queue_limit=1))
    outcomes = [run.offer(item) for item in range(4)]
    assert outcomes == [False, False, True, True]
    # A blocked item arrives when it enters: the wait at the door does not count.
    assert run.finish() == [(0, 0, 0, 10), (1, 0, 10, 20), (2, 10, 20, 30), (3, 20, 30, 40)]
    assert run.entered == [(10, 2), (20, 3)]
    assert (run.station.blocked, run.station.at_door) == (2, 0)


def test_nobody_overtakes_those_at_the_door() -> None:
    run = Run(Worker(queue_limit=0))
    run.station.pause()
    # Told that 1 has entered, its sender offers 3 at once, while 2 still stands at the door.
    run.station.offer(1, TEN_US, lambda: run.offer(3))
    run.offer(2)
    run.at(5.0, run.station.resume)
    assert run.finish() == [(1, 5, 5, 15), (2, 15, 15, 25), (3, 25, 25, 35)]


def test_a_pause_keeps_everything() -> None:
    run = Run(Worker())
    run.offer(1)
    run.offer(2)
    run.at(4.0, run.station.pause)
    run.at(5.0, run.station.pause)
    run.at(50.0, run.station.resume)
    run.at(60.0, run.offer, 3)
    run.at(104.0, run.station.resume)
    assert run.finish() == [(1, 0, 0, 110), (2, 0, 110, 120), (3, 60, 120, 130)]
    assert run.station.busy.mean(130.0) == 30 / 130
    with pytest.raises(ValueError, match="pauses to undo is 0; it must be above 0"):
        run.station.resume()


def test_slowdowns_apply_at_once_and_multiply() -> None:
    run = Run(Worker())
    run.offer(1)
    run.at(2.0, run.station.slow, 2.0)  # 8 us of work left
    run.at(6.0, run.station.slow, 3.0)  # 6 left, six times slower
    run.at(24.0, run.station.unslow, 2.0)  # 3 left, three times slower
    run.at(27.0, run.station.unslow, 3.0)  # 2 left, at full speed
    assert run.finish() == [(1, 0, 0, 29)]
    with pytest.raises(ValueError, match=r"factor is 3.0; it must be that of a slowdown in force"):
        run.station.unslow(3.0)


def test_a_failure_loses_what_the_worker_holds() -> None:
    run = Run(Worker(queue_limit=1))
    for item in (1, 2, 3):
        run.offer(item)
    run.at(5.0, run.station.fail)
    run.at(6.0, run.offer, 4)
    run.at(30.0, run.station.recover)
    run.at(40.0, run.offer, 5)
    assert run.finish() == [(5, 40, 40, 50)]
    assert run.entered == [(5, 3)]  # the sender must not wait for ever
    assert run.station.lost == 4
    with pytest.raises(ValueError, match="failures to undo is 0; it must be above 0"):
        run.station.recover()


# --------------------------------------------------------------------------------- checkpoints


def test_a_worker_that_restarts_serves_again_what_came_since_its_checkpoint() -> None:
    run = Run(Worker(), restarts=True)
    for item in (1, 2, 3, 4):
        run.offer(item)
    run.at(10.0, run.station.checkpoint)  # 1 is done, 2 in service
    run.at(35.0, run.station.fail)  # 2 and 3 are done since, 4 is half done
    run.at(40.0, run.offer, 5)  # the queue is durable: it takes in what comes meanwhile
    run.at(50.0, run.station.recover)
    served = run.finish()
    assert served[:3] == [(1, 0, 0, 10), (2, 0, 10, 20), (3, 0, 20, 30)]
    # What was done and is to be done again has come again when the worker failed.
    assert served[3:] == [(2, 35, 50, 60), (3, 35, 60, 70), (4, 0, 70, 80), (5, 40, 80, 90)]
    station = run.station
    assert run.restarted_us == [35]
    assert (station.repeated, station.served, station.lost, station.offered) == (2, 7, 0, 5)
    assert station.inside.at([34, 36, 41, 91]).tolist() == [1, 3, 4, 0]
    area_us = 4 * 10 + 3 * 10 + 2 * 10 + 1 * 5 + 3 * 5 + 4 * 20 + 3 * 10 + 2 * 10 + 1 * 10
    assert station.inside.mean(90.0) == pytest.approx(area_us / 90)


# ---------------------------------------------------------------------------------- invariants


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_little_and_conservation_whatever_goes_wrong(seed: int, *, restarts: bool) -> None:
    rng = np.random.default_rng(seed)
    when_full: Literal["block", "drop"] = "block" if seed % 2 else "drop"
    worker = Worker(queue_limit=3, when_full=when_full)
    run = Run(worker, restarts=restarts)
    for item, time_us in enumerate(rng.uniform(0, 1_000, 200)):
        run.at(float(time_us), run.offer, item, float(rng.exponential(5)))
    station = run.station
    for begin, end in ((station.pause, station.resume), (station.fail, station.recover)):
        for time_us in rng.uniform(0, 1_000, 5):
            run.at(float(time_us), begin)
            run.at(float(time_us) + 30.0, end)
    for time_us in rng.uniform(0, 1_000, 5):
        run.at(float(time_us), station.slow, 3.0)
        run.at(float(time_us) + 50.0, station.unslow, 3.0)
        run.at(float(time_us), station.checkpoint)
    for stop_us in range(50, 1_500, 50):
        run.env.run(until=stop_us)
        station.check()
    run.finish()
    assert station.offered == 200
    assert station.inside.value == 0
    assert station.served > 0
    assert (station.repeated if restarts else station.lost) > 0
    assert (station.blocked > 0) == (when_full == "block")
    items = [item for item, *_ in run.served]
    assert len(set(items)) == 200 - station.lost
    assert len(items) - len(set(items)) == station.repeated
