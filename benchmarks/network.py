"""Speed of the simulator's foundations: messages over links, tuples through a small cluster.

``messages_per_s``: one link after another is kept full; a message counts when it is received.
``tuples_per_s``: Poisson sources -> links -> workers; a tuple counts when it has been served.
``benchmarks/sim.py`` says what bare events are.
"""

from collections.abc import Callable
from statistics import median
from time import process_time

import numpy as np
import simpy

from benchmarks.sim import bare_events_per_s
from sim.kernel.distributions import Exponential, iterate_samples
from sim.kernel.link import Link, Tier, Tiers
from sim.kernel.plan import Worker
from sim.kernel.station import Station, connect

MESSAGES = 200_000
TUPLES = 100_000
WORKERS = 4
BITS = 800
ROUNDS = 3


def measure() -> dict[str, float]:
    """Return median rates per second of processor time over three rounds."""
    return {**_rates("message", _messages_per_s), **_rates("tuple", _tuples_per_s)}


def _rates(name: str, per_s: Callable[[], float]) -> dict[str, float]:
    rounds = [(bare_events_per_s(), per_s()) for _ in range(ROUNDS)]
    return {
        f"{name}s_per_s": median(rate for _, rate in rounds),
        f"bare_events_a_{name}": median(bare / rate for bare, rate in rounds),
    }


def _messages_per_s() -> float:
    env = simpy.Environment()
    started = process_time()
    received = sum(_fill(env, tier) for tier in Tiers())
    return received / (process_time() - started)


def _fill(env: simpy.Environment, tier: Tier) -> int:
    """Send with a window of 64 messages until a share of the messages has gone over the link."""
    left = MESSAGES // len(Tiers())

    def receive(number: int) -> None:
        nonlocal left
        left -= 1
        if left >= 64:
            link.send(number + 64, BITS)

    link: Link[int] = Link(env, tier, receive)
    for number in range(64):
        link.send(number, BITS)
    env.run()
    return link.arrived


def _tuples_per_s() -> float:
    env = simpy.Environment()
    stations = [_lane(env, np.random.default_rng(number)) for number in range(WORKERS)]
    started = process_time()
    env.run()
    return sum(station.served for station in stations) / (process_time() - started)


def _lane(env: simpy.Environment, rng: np.random.Generator) -> Station[int]:
    """Start one source with its link, and return its worker, at 80% utilisation."""
    station = Station[int](env, Worker(), lambda *_: None)
    link: Link[int] = Link(env, Tiers().rack, lambda _: None)
    works, intervals = (iterate_samples(Exponential(mean_us), rng) for mean_us in (80.0, 100.0))
    connect(link, lambda item, entered: station.offer(item, next(works), entered))

    def emit(_: simpy.Event) -> None:
        link.send(link.sent, BITS)
        if link.sent < TUPLES // WORKERS:
            simpy.Timeout(env, next(intervals)).callbacks.append(emit)

    simpy.Timeout(env, next(intervals)).callbacks.append(emit)
    return station
