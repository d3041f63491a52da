"""Speed of timed rooms, in a unit that carries over to other machines.

Rules of this file:

* It counts processor time of this process, because other processes may share the machine.
* The cost of a tuple is counted in *bare events*: Timeouts with a callback that sets the next one,
  in an otherwise empty loop of SimPy that runs right before and after. Seconds depend on the
  machine; this ratio hardly does.
* A room's standard run is what ``straggler sim ROOM`` simulates with its default settings, or with
  those of its standard scenario where it has one, from the seed to trace, series and figures;
  drawing and judging are left out. ``..._timed_...`` is the part of a run that SimPy's event loop
  takes: without drawing what sources send, and without workload, trace, series and figures.
* Memory is what a run holds at its peak, by what Python allocates (``tracemalloc``), for each
  tuple that arrives.
"""

import tracemalloc
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from statistics import median
from time import perf_counter, process_time
from typing import Any, Protocol
from unittest.mock import patch

import simpy

from model.vocabulary import Workload

ROUNDS = 5
AT_LEAST_S = 10.0
"""Shortest time of all rounds, because a shared processor has slow and fast seconds."""
BARE_EVENTS = 50_000


class Run(Protocol):
    """A finished run of any room."""

    @property
    def workload(self) -> Workload:
        """Workload with all arrivals."""
        ...


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


def paces(tuples: int, once: Callable[[], Mapping[str, float]]) -> dict[str, float]:
    """Medians over rounds; ``once`` goes through the tuples and says how long what took.

    By each of its names, two figures: how many tuples a second of processor time, and how many bare
    events take as long as a tuple.
    """
    rates: dict[str, list[float]] = defaultdict(list)
    began_s, rounds = perf_counter(), 0
    while rounds < ROUNDS or perf_counter() - began_s < AT_LEAST_S:
        rounds += 1
        before_per_s = bare_events_per_s()
        took_s = once()
        bare_per_s = (before_per_s + bare_events_per_s()) / 2
        for name, seconds in took_s.items():
            rates[f"{name}tuples_per_s"].append(tuples / seconds)
            rates[f"{name}bare_events_a_tuple"].append(bare_per_s * seconds / tuples)
    return {name: median(found) for name, found in rates.items()}


def standard(simulate: Callable[[int], Run]) -> dict[str, float]:
    """Return the figures of a room's standard run, which is made for a seed."""
    tuples = len(simulate(1).workload.arrivals)
    return {
        "standard_tuples": tuples,
        **paces(tuples, lambda: parts("standard_", simulate)),
        "standard_peak_bytes_a_tuple": _peak_bytes(simulate) / tuples,
    }


def parts(name: str, simulate: Callable[[int], Run]) -> dict[str, float]:
    """Return for :func:`paces` how long a run takes, and how long its event loop (``timed_``)."""
    with _clocked() as timed_s:
        started_s = process_time()
        simulate(1)
        return {name: process_time() - started_s, f"{name}timed_": sum(timed_s)}


@contextmanager
def _clocked() -> Iterator[list[float]]:
    """Note how long each event loop runs."""
    took_s: list[float] = []
    run = simpy.Environment.run

    def clocked(env: simpy.Environment, until: Any = None) -> Any:
        started_s = process_time()
        result = run(env, until)
        took_s.append(process_time() - started_s)
        return result

    with patch.object(simpy.Environment, "run", clocked):
        yield took_s


def _peak_bytes(simulate: Callable[[int], Run]) -> int:
    tracemalloc.start()
    try:
        run = simulate(1)
        peak_bytes = tracemalloc.get_traced_memory()[1]
        del run
    finally:
        tracemalloc.stop()
    return peak_bytes
