"""Recurrences against links and stations of the simulation: the same times, without its kernel."""

from functools import partial

import numpy as np
import pytest
import simpy

from sim.kernel.link import Link, Tier
from sim.kernel.station import Station, Worker
from sim.script.flows import over
from sim.script.server import Server


@pytest.mark.parametrize("tier", [Tier(350.0, 10.0), Tier(0.1, 20_000.0), Tier(0.0, 0.5)])
def test_a_line_is_a_link(tier: Tier) -> None:
    rng = np.random.default_rng(4)
    sent_us = np.sort(np.rint(rng.uniform(0, 50_000, 300)))
    env = simpy.Environment()
    came_us: list[float] = []
    link: Link[int] = Link(env, tier, lambda _: came_us.append(env.now))

    def send(number: int, _: simpy.Event) -> None:
        link.send(number, 800)

    for number, at_us in enumerate(sent_us.tolist()):
        simpy.Timeout(env, at_us).callbacks.append(partial(send, number))
    env.run()
    np.testing.assert_allclose(over(tier, 100, sent_us), came_us, rtol=1e-12, atol=1e-6)


@pytest.mark.parametrize("mean_us", [20.0, 150.0])
def test_a_server_is_a_station(mean_us: float) -> None:
    rng = np.random.default_rng(5)
    due_us = np.sort(rng.uniform(0, 50_000, 400)).tolist()
    work_us = rng.exponential(mean_us, 400).tolist()
    others = sorted(
        zip(rng.uniform(0, 50_000, 60).tolist(), rng.exponential(mean_us, 60).tolist(), strict=True)
    )
    env = simpy.Environment()
    ended_us: dict[str, float] = {}
    station: Station[str] = Station(
        env, Worker(), lambda name, *_: ended_us.__setitem__(name, env.now)
    )

    def offer(name: str, work: float, _: simpy.Event) -> None:
        station.offer(name, work)

    jobs = [
        (at, work, f"tuple {n}") for n, (at, work) in enumerate(zip(due_us, work_us, strict=True))
    ]
    jobs += [(at, work, f"other {n}") for n, (at, work) in enumerate(others)]
    for at_us, work, name in jobs:
        simpy.Timeout(env, at_us).callbacks.append(partial(offer, name, work))
    env.run()

    server = Server(due_us, work_us)
    for number, (at_us, work) in enumerate(others):
        # Looking ahead, however far, must change nothing.
        server.look(min(len(due_us) - 1, server.come(at_us) + number % 7))
        server.serve(server.come(at_us))
        assert server.work(at_us, work) == pytest.approx(ended_us[f"other {number}"])
    server.serve_all()
    assert server.ended_us == pytest.approx([ended_us[f"tuple {n}"] for n in range(len(due_us))])
    assert server.free_us == pytest.approx(max(ended_us.values()))


def test_what_has_been_served_is_done_now() -> None:
    server = Server([10.0, 20.0], [5.0, 5.0])
    assert server.look(1) == 25.0
    server.serve(1)
    assert (server.look(0), server.free_us) == (15.0, 15.0)
    assert server.work(16.0, 100.0) == 116.0
    assert server.look(1) == 121.0
