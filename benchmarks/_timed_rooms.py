"""How fast timed rooms are, in a way that means something on another machine.

Rules of this file:

* It counts processor time of this process, for other processes may share the machine.
* A tuple costs as much as so many *bare events*: Timeouts with a callback that sets the next one,
  in a loop of SimPy that does nothing else, run right before and after. Seconds depend on the
  machine; this ratio hardly does.
* A room's standard run is what ``straggler sim ROOM`` simulates with its default settings, or with
  those of its standard scenario where it has one, from the seed to trace, series and figures;
  drawing and judging are left out.
* Memory is what a run holds at its peak, by what Python allocates (``tracemalloc``), for each
  tuple that arrives.
"""

import tracemalloc
from collections import defaultdict
from collections.abc import Callable, Mapping
from statistics import median
from time import process_time
from typing import Protocol

import simpy

from model.vocabulary import Workload

ROUNDS = 5
BARE_EVENTS = 50_000


class Run(Protocol):
    """A finished run of any room."""

    @property
    def workload(self) -> Workload:
        """What arrived."""
        ...


def bare_events_per_s() -> float:
    """Of processor time, in a loop of the kernel that does nothing else."""
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


def paces(tuples: int, once: Callable[[], Mapping[str, float]]) -> dict[str, float]:
    """Medians over five rounds; ``once`` goes through the tuples and says how long what took.

    By each of its names, two figures: how many tuples a second of processor time, and how many bare
    events take as long as a tuple.
    """
    rates: dict[str, list[float]] = defaultdict(list)
    for _ in range(ROUNDS):
        before_per_s = bare_events_per_s()
        took_s = once()
        bare_per_s = (before_per_s + bare_events_per_s()) / 2
        for name, seconds in took_s.items():
            rates[f"{name}tuples_per_s"].append(tuples / seconds)
            rates[f"{name}bare_events_a_tuple"].append(bare_per_s * seconds / tuples)
    return {name: median(found) for name, found in rates.items()}


def standard(simulate: Callable[[int], Run]) -> dict[str, float]:
    """Figures of a room's standard run, which is made for a seed."""
    tuples = len(simulate(1).workload.arrivals)

    def once() -> Mapping[str, float]:
        started_s = process_time()
        simulate(1)
        return {"standard_": process_time() - started_s}

    return {
        "standard_tuples": tuples,
        **paces(tuples, once),
        "standard_peak_bytes_a_tuple": _peak_bytes(simulate) / tuples,
    }


def _peak_bytes(simulate: Callable[[int], Run]) -> int:
    tracemalloc.start()
    try:
        run = simulate(1)
        peak_bytes = tracemalloc.get_traced_memory()[1]
        del run
    finally:
        tracemalloc.stop()
    return peak_bytes
