"""Speed of simulations, in a unit that carries over to other machines.

Processor time of this process counts, because other processes may share the machine. The cost of a
tuple is counted in *bare events*: Timeouts with a callback that sets the next one, in an otherwise
empty event loop of SimPy that runs right before and after. Seconds depend on the machine; this
ratio hardly does.

A room is a run with the default settings of the room, from the seed to trace, series and figures;
drawing and judging are left out. ``join, standard`` is the scenario of docs/join.md, section 13.
"""

from collections.abc import Callable, Mapping
from functools import partial
from statistics import median
from time import perf_counter, process_time

import simpy

import sim.grouping
import sim.join
import sim.script
import sim.slack
import sim.watermark
from sim.kernel.run import TimedRun

ROUNDS = 5
AT_LEAST_S = 10.0
"""Least time of all rounds together, because a shared processor has slow and fast seconds."""
BARE_EVENTS = 50_000
STANDARD: Mapping[str, str] = {
    "scenario": "steady",
    "rate_r_hz": "5000",
    "rate_s_hz": "5000",
    "seconds": "10",
    "window_us": "1000000",
    "eps": "1",
    "block_size": "256",
    "capacity": "8000",
    "intake_us": "50000",
}
"""Standard scenario of `join`, a busy chain (docs/join.md)."""
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
    figures: dict[str, float] = {}
    for name, simulate in RUNS.items():
        tuples = len(simulate(1).workload.arrivals)
        figures |= pace(name, tuples, partial(simulate, 1))
    return figures


def pace(name: str, tuples: int, once: Callable[[], object]) -> dict[str, float]:
    """Return medians over rounds: tuples a second of processor time, and bare events a tuple."""
    rates: list[float] = []
    costs: list[float] = []
    began_s = perf_counter()
    while len(rates) < ROUNDS or perf_counter() - began_s < AT_LEAST_S:
        before_per_s = bare_events_per_s()
        started_s = process_time()
        once()
        took_s = process_time() - started_s
        bare_per_s = (before_per_s + bare_events_per_s()) / 2
        rates.append(tuples / took_s)
        costs.append(bare_per_s * took_s / tuples)
    return {f"{name}: tuples/s": median(rates), f"{name}: bare events a tuple": median(costs)}


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
