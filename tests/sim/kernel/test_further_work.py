"""Work that follows from the work on an item so far, on the same item."""

from collections.abc import Callable

import pytest
import simpy

from sim.kernel.plan import Worker
from sim.kernel.station import Station


class Bench:
    """A station in which item n takes n steps of 10 us each."""

    def __init__(self, *, speed: float = 1.0, restarts: bool = False) -> None:
        self.env = simpy.Environment()
        self.steps: list[tuple[int, float]] = []
        self.served: list[tuple[int, float, float]] = []
        self.station = Station[list[int]](
            self.env,
            Worker(speed),
            lambda item, arrived_us, _: self.served.append((item[0], arrived_us, self.env.now)),
            restart=self.restart if restarts else None,
            more=self.more,
        )
        self.items: list[list[int]] = []

    def more(self, item: list[int]) -> float | None:
        self.steps.append((item[0], self.env.now))
        item[1] -= 1
        return 10.0 if item[1] else None

    def restart(self) -> None:
        for item in self.items:
            item[1] = item[0]

    def at(self, time_us: float, action: Callable[[], None]) -> None:
        simpy.Timeout(self.env, time_us).callbacks.append(lambda _: action())

    def offer(self, *numbers: int) -> None:
        for number in numbers:
            self.items.append([number, number])
            self.station.offer(self.items[-1], 10.0)


def test_further_work_comes_before_anything_else() -> None:
    bench = Bench()
    bench.offer(3, 1)
    bench.at(15, lambda: bench.offer(2))
    bench.env.run()
    assert bench.steps == [(3, 10), (3, 20), (3, 30), (1, 40), (2, 50), (2, 60)]
    assert bench.served == [(3, 0, 30), (1, 0, 40), (2, 15, 60)]
    assert bench.station.busy.mean(60) == 1
    assert bench.station.served == 3
    bench.station.check()


def test_a_pause_and_a_slowdown_stretch_further_work() -> None:
    bench = Bench(speed=2.0)
    bench.offer(2)
    bench.at(7, bench.station.pause)  # 2 us into the second step
    bench.at(17, bench.station.resume)
    bench.at(18, lambda: bench.station.slow(2.0))  # 2 us are left of it
    bench.env.run()
    assert bench.steps == [(2, 5), (2, 22)]
    bench.station.check()


def test_a_failure_takes_further_work_back() -> None:
    bench = Bench(restarts=True)
    bench.offer(3)
    bench.at(25, bench.station.fail)
    bench.at(100, bench.station.recover)
    bench.env.run()
    assert bench.steps == [(3, 10), (3, 20), (3, 110), (3, 120), (3, 130)]
    assert bench.served == [(3, 0, 130)]
    bench.station.check()


@pytest.mark.parametrize("limit", [0, 1])
def test_an_item_that_has_further_work_keeps_its_server(limit: int) -> None:
    env = simpy.Environment()
    offers: list[str] = []

    def more(item: str) -> float | None:
        if item == "first" and len(offers) < 3:
            offers.append(station.offer(f"other {len(offers)}", 1.0).value)
            return 5.0
        return None

    worker = Worker(queue_limit=limit, when_full="drop")
    station = Station[str](env, worker, lambda *_: None, more=more)
    station.offer("first", 5.0)
    env.run()
    assert offers == ["entered"] * limit + ["dropped"] * (3 - limit)
    station.check()
