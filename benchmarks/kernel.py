"""Speed of simulations, in a unit that carries over to other machines.

Processor time of this process counts, because other processes may share the machine. The cost of a
tuple is counted in *bare events*: Timeouts with a callback that sets the next one, in an otherwise
empty event loop of SimPy that runs right before and after. Seconds depend on the machine; this
ratio hardly does.

``links``: one link after another is kept full; a message counts when it is received. ``stations``:
Poisson sources -> links -> workers; a tuple counts when it has been served. A room is the run that
``straggler sim ROOM`` makes, from the seed to trace, series and figures; drawing and judging are
left out. ``join, standard`` is the scenario of docs/join.md, section 13.
"""

from collections.abc import Callable, Mapping
from functools import partial
from statistics import median
from time import perf_counter, process_time

import numpy as np
import simpy

import sim.grouping
import sim.join
import sim.script
import sim.slack
import sim.watermark
from sim.join import STANDARD
from sim.kernel.distributions import Exponential, iterate_samples
from sim.kernel.link import Link, Tier, Tiers
from sim.kernel.plan import Worker
from sim.kernel.run import TimedRun
from sim.kernel.station import Station, connect

ROUNDS = 5
AT_LEAST_S = 10.0
"""Least time of all rounds together, because a shared processor has slow and fast seconds."""
BARE_EVENTS = 50_000
MESSAGES, TUPLES = 200_000, 100_000
WORKERS = 4
BITS = 800
RUNS: Mapping[str, Callable[[int], TimedRun]] = {
    "slack": partial(sim.slack.from_settings, {}),
    "watermark": partial(sim.watermark.from_settings, {}),
    "grouping": partial(sim.grouping.from_settings, {}),
    "join": partial(sim.join.from_settings, {}),
    "join, standard": partial(sim.join.from_settings, STANDARD),
    "script": partial(sim.script.from_settings, {}),
}
"""Function from a seed to a run, by the name in the figures; most have default settings."""


def measure() -> dict[str, float]:
    """Return the median pace of every run."""
    figures = pace("links", "message", MESSAGES, _full_links)
    figures |= pace("stations", "tuple", TUPLES, _stations)
    for name, simulate in RUNS.items():
        tuples = len(simulate(1).workload.arrivals)
        figures |= pace(name, "tuple", tuples, partial(simulate, 1))
    return figures


def pace(name: str, unit: str, units: int, once: Callable[[], object]) -> dict[str, float]:
    """Return medians over rounds: units a second of processor time, and bare events a unit."""
    rates: list[float] = []
    costs: list[float] = []
    began_s = perf_counter()
    while len(rates) < ROUNDS or perf_counter() - began_s < AT_LEAST_S:
        before_per_s = bare_events_per_s()
        started_s = process_time()
        once()
        took_s = process_time() - started_s
        bare_per_s = (before_per_s + bare_events_per_s()) / 2
        rates.append(units / took_s)
        costs.append(bare_per_s * took_s / units)
    return {f"{name}: {unit}s/s": median(rates), f"{name}: bare events a {unit}": median(costs)}


def bare_events_per_s() -> float:
    """Measure bare events a second of processor time, in an otherwise empty loop of SimPy."""
    env, left = simpy.Environment(), BARE_EVENTS

    def follow(_: simpy.Event) -> None:
        nonlocal left
        left -= 1
        if left:
            simpy.Timeout(env, 1.0).callbacks.append(follow)

    simpy.Timeout(env, 1.0).callbacks.append(follow)
    started_s = process_time()
    env.run()
    return BARE_EVENTS / (process_time() - started_s)


def _full_links() -> None:
    env = simpy.Environment()
    for tier in Tiers():
        _fill(env, tier)


def _fill(env: simpy.Environment, tier: Tier) -> None:
    """Send this tier's share of the messages over a link, 64 of them at a time."""
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


def _stations() -> None:
    env = simpy.Environment()
    for number in range(WORKERS):
        _lane(env, np.random.default_rng(number))
    env.run()


def _lane(env: simpy.Environment, rng: np.random.Generator) -> None:
    """Start one source with its link and its worker, at 80% utilisation."""
    station = Station[int](env, Worker(), lambda *_: None)
    link: Link[int] = Link(env, Tiers().rack, lambda _: None)
    works, intervals = (iterate_samples(Exponential(mean_us), rng) for mean_us in (80.0, 100.0))
    connect(link, lambda item, entered: station.offer(item, next(works), entered))

    def emit(_: simpy.Event) -> None:
        link.send(link.sent, BITS)
        if link.sent < TUPLES // WORKERS:
            simpy.Timeout(env, next(intervals)).callbacks.append(emit)

    simpy.Timeout(env, next(intervals)).callbacks.append(emit)
