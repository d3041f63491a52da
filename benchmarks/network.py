"""Speed of the simulator's foundations: messages over links, tuples through a small cluster.

``messages_per_s``: one link after another is kept full; a message counts when it is received.
``tuples_per_s``: Poisson sources -> links -> workers; a tuple counts when it has been served.
"""

from statistics import median
from time import perf_counter

import numpy as np
import simpy

from sim.cluster import Station, Worker, connect
from sim.distributions import Exponential, endless
from sim.network import Link, Tier, Tiers

MESSAGES = 200_000
TUPLES = 100_000
WORKERS = 4
BITS = 800
ROUNDS = 3


def measure() -> dict[str, float]:
    """Median rates per second of wall-clock time over three rounds."""
    return {
        "messages_per_s": median(_messages_per_s() for _ in range(ROUNDS)),
        "tuples_per_s": median(_tuples_per_s() for _ in range(ROUNDS)),
    }


def _messages_per_s() -> float:
    env = simpy.Environment()
    started = perf_counter()
    received = sum(_fill(env, tier) for tier in Tiers())
    return received / (perf_counter() - started)


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
    started = perf_counter()
    env.run()
    return sum(station.served for station in stations) / (perf_counter() - started)


def _lane(env: simpy.Environment, rng: np.random.Generator) -> Station[int]:
    """One source, its link and its worker at 80% utilisation."""
    station = Station[int](env, Worker(Exponential(80.0)), lambda *_: None, rng)
    link: Link[int] = Link(env, Tiers().rack, lambda _: None)
    connect(link, station)
    intervals = endless(Exponential(100.0), rng)

    def emit(_: simpy.Event) -> None:
        link.send(link.sent, BITS)
        if link.sent < TUPLES // WORKERS:
            simpy.Timeout(env, next(intervals)).callbacks.append(emit)

    simpy.Timeout(env, next(intervals)).callbacks.append(emit)
    return station
