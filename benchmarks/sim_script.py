"""The timed room ``script``: how fast it is, and what it says of the placements.

Rates are by processor time: ``tuples_per_s`` from the first arrival to the figures of the finished
run, ``timed_tuples_per_s`` without trace and figures, ``with_arrivals_per_s`` with the network that
brings tuples from the sensors as well. ``kernel_events_a_tuple``: a tuple of the whole by an event
of a bare SimPy loop in the same process. 24 sensors of a bridge send 20 times a second for two
minutes to four workers. ``bytes_a_tuple`` is the most memory that the run held, without the
arrivals.

Everything else is simulated, and the same on every machine: 40 seconds by default, with gaps and
bursts, in which all placements meet the same tuples.
"""

import tracemalloc
from statistics import median
from time import process_time

import simpy

from model.vocabulary import Workload
from sim.arrivals import simulate_arrivals
from sim.collecting import uncollected
from sim.script import side_by_side
from sim.script.run import trace_of
from sim.script.series import series_of
from sim.script.settings import Given, given
from sim.script.summary import summary_of
from sim.script.timed import Room

ROUNDS = 3
STANDARD = {"rates_hz": "20", "seconds": "120"}
KERNEL_EVENTS = 100_000


def measure() -> dict[str, float | str]:
    """Median rates over three rounds, memory, and all placements side by side."""
    rounds = [_seconds() for _ in range(ROUNDS)]
    asked = given(STANDARD, 1)
    workload = _workload(asked)
    tuples = len(workload.arrivals)
    arrivals_s, timed_s, whole_s, event_s = (median(each) for each in zip(*rounds, strict=True))
    return {
        "tuples_per_s": tuples / whole_s,
        "timed_tuples_per_s": tuples / timed_s,
        "with_arrivals_per_s": tuples / (arrivals_s + whole_s),
        "kernel_events_a_tuple": whole_s / tuples / event_s,
        "bytes_a_tuple": _bytes(asked, workload) / tuples,
        **dict(_sides()),
    }


def _workload(asked: Given) -> Workload:
    events = simulate_arrivals(asked.plan, seed=1).events
    return Workload("script", events, asked.config.to_json(), seed=1)


@uncollected()
def _seconds() -> tuple[float, float, float, float]:
    """For the arrivals, the timed run, the same with its figures, and an event of the kernel."""
    asked = given(STANDARD, 1)
    started_s = process_time()
    workload = _workload(asked)
    arrived_s = process_time()
    room = Room(workload, asked.crew, asked.plan.epoch_us)
    room.run()
    timed_s = process_time()
    trace_of(room)
    series_of(room)
    summary_of(room, asked.period_us)
    ended_s = process_time()
    return arrived_s - started_s, timed_s - arrived_s, ended_s - arrived_s, _event_s()


def _event_s() -> float:
    """Of a bare loop: a Timeout, and a callback that sets the next one."""
    env = simpy.Environment()
    left = iter(range(KERNEL_EVENTS))

    def go_on(_: simpy.Event) -> None:
        if next(left, None) is not None:
            simpy.Timeout(env, 1.0).callbacks.append(go_on)

    started_s = process_time()
    simpy.Timeout(env, 1.0).callbacks.append(go_on)
    env.run()
    return (process_time() - started_s) / KERNEL_EVENTS


def _bytes(asked: Given, workload: Workload) -> int:
    tracemalloc.start()
    room = Room(workload, asked.crew, asked.plan.epoch_us)
    room.run()
    summary_of(room, asked.period_us)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


def _sides() -> list[tuple[str, float | str]]:
    found: list[tuple[str, float | str]] = []
    for side in side_by_side({}, 1):
        figures = side._asdict()
        placement = figures.pop("placement")
        found += [
            (f"{placement}: {name}", "-" if figure is None else figure)
            for name, figure in figures.items()
        ]
    return found
