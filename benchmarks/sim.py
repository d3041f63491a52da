"""Speed of timed rooms (``sim_ROOM``), in a unit that carries over to other machines.

Rules of this file:

* Processor time of this process counts, because other processes may share the machine.
* The cost of a tuple is counted in *bare events*: Timeouts with a callback that sets the next one,
  in an otherwise empty event loop of SimPy that runs right before and after. Seconds depend on the
  machine; this ratio hardly does.
* The standard run of a room (``standard_...``) is the run that ``straggler sim ROOM`` makes with
  default settings, or with those of the room's standard scenario if it has one. It counts from the
  seed to trace, series and figures; drawing and judging are left out.
* ``..._timed_...`` is the part of a run that SimPy's event loop takes: without drawing what sources
  send, and without workload, trace, series and figures.
* Memory is the peak that Python allocates during a run (``tracemalloc``), per arriving tuple.
* All other figures are simulated, and the same on every machine.
"""

import tracemalloc
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from statistics import median
from time import perf_counter, process_time
from typing import Protocol
from unittest.mock import patch

import simpy

import sim.grouping
import sim.join
import sim.script
import sim.slack
import sim.watermark
from benchmarks.model import CONFIG, arrivals
from model.slack.machine import Task
from model.vocabulary import Event, Workload, task_of
from sim.grouping import experiments
from sim.join import STANDARD
from sim.join.tuning import ORDINARY
from sim.kernel.distributions import Exponential
from sim.kernel.plan import Cluster, Worker, replay
from sim.kernel.run import TimedRun

ROUNDS = 5
AT_LEAST_S = 10.0
"""Shortest time of all rounds, because a shared processor has slow and fast seconds."""
BARE_EVENTS = 50_000


class FinishedRun(Protocol):
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
    """Return medians over rounds of ``once``, which handles the tuples and returns seconds by name.

    Each name gets two figures: tuples a second of processor time, and the number of bare events
    that take as long as one tuple.
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


def standard(simulate: Callable[[int], FinishedRun]) -> dict[str, float]:
    """Return the figures of a room's standard run; ``simulate`` makes it for a seed."""
    tuples = len(simulate(1).workload.arrivals)
    return {
        "standard_tuples": tuples,
        **paces(tuples, lambda: parts("standard_", simulate)),
        "standard_peak_bytes_a_tuple": _peak_bytes(simulate) / tuples,
    }


def parts(name: str, simulate: Callable[[int], FinishedRun]) -> dict[str, float]:
    """Return the seconds of a run, and those of its event loop (``timed_``), for :func:`paces`."""
    with _clocked() as timed_s:
        started_s = process_time()
        simulate(1)
        return {name: process_time() - started_s, f"{name}timed_": sum(timed_s)}


@contextmanager
def _clocked() -> Iterator[list[float]]:
    """Yield a list that collects the seconds of each event loop."""
    took_s: list[float] = []
    run = simpy.Environment.run

    def clocked(env: simpy.Environment, until: float | simpy.Event | None = None) -> object:
        started_s = process_time()
        result = run(env, until)
        took_s.append(process_time() - started_s)
        return result

    with patch.object(simpy.Environment, "run", clocked):
        yield took_s


def _peak_bytes(simulate: Callable[[int], FinishedRun]) -> int:
    tracemalloc.start()
    try:
        run = simulate(1)
        peak_bytes = tracemalloc.get_traced_memory()[1]
        del run
    finally:
        tracemalloc.stop()
    return peak_bytes


# --------------------------------------------------------------------- slack and watermark

UNEQUAL = Cluster((Worker(), Worker(0.8)), Exponential(900.0))
"""Two tasks, each at about half of its capacity."""


def measure_slack() -> dict[str, float]:
    """Return medians over five rounds of the room ``slack``.

    Rates without a prefix are those of the stream of ``benchmarks/model.py`` (five windows a tuple,
    16 keys, conformal control) at two unequal tasks, with a micro-batch a second. ``model_...`` is
    the model's task alone, which takes tuple by tuple: no run is faster.
    """
    events, query = arrivals(), replace(CONFIG, tasks=2)
    plan = replay(events, "stream of the model's benchmark", cluster=UNEQUAL)

    def once() -> dict[str, float]:
        return {**parts("", simulate), "model_": _model_s(events)}

    def simulate(seed: int) -> TimedRun:
        return sim.slack.simulate(plan, query, seed)

    return {**standard(partial(sim.slack.from_settings, {})), **paces(len(events), once)}


def _model_s(events: Sequence[Event]) -> float:
    """Return the seconds that the tasks take by themselves."""
    query = replace(CONFIG, tasks=2)
    tasks = [Task(query, number) for number in range(query.tasks)]
    owners = {key: tasks[task_of(key, len(tasks))] for key in {event.key for event in events}}
    started_s = process_time()
    for event in events:
        owners[event.key].arrive(event, 0)
    return process_time() - started_s


def measure_watermark() -> dict[str, float]:
    """Return medians over five rounds of the room ``watermark``.

    In the standard run calm and storm take turns. ``sliding_...`` is the same stream with five
    windows a tuple and corrections from history.
    """
    sliding = partial(sim.watermark.from_settings, {"slide_us": "2000000", "corrections": "yes"})
    tuples = len(sliding(1).workload.arrivals)
    return {
        **standard(partial(sim.watermark.from_settings, {})),
        **paces(tuples, lambda: parts("sliding_", sliding)),
    }


# ------------------------------------------------------------------------------------ grouping

LARGE = {"tuples": "60000", "keys": "2000", "window_tuples": "10000"}


def measure_grouping() -> dict[str, float | str]:
    """Return medians over five rounds of the room ``grouping``, and its experiments.

    Rates without a prefix are those of 60,000 tuples of 2,000 keys in windows of 10,000 through
    ``tag`` and twelve unequal instances, with measured times. ``sim/grouping/experiments.py`` says
    what each experiment is.
    """
    large = partial(sim.grouping.from_settings, LARGE)
    return {
        **standard(partial(sim.grouping.from_settings, {})),
        **paces(int(LARGE["tuples"]), lambda: parts("", large)),
        **dict(experiments.sides(experiments.policies())),
        **dict(experiments.rho_over_instances()),
        **dict(experiments.throughput_over_speeds()),
        **dict(experiments.rho_over_windows()),
        **dict(experiments.rho_over_senders()),
        **dict(experiments.swap()),
        **dict(experiments.propagation()),
        **dict(experiments.tag_against_dag()),
        **dict(experiments.tag_against_nag()),
    }


# ---------------------------------------------------------------------------------------- join

CHAINS: Mapping[str, Mapping[str, str]] = {
    "blocks_of_20": {**STANDARD, "seconds": "2", "block_size": "20"},
    "default": {},
}
"""Settings of the runs beside the standard one."""


def measure_join() -> dict[str, float]:
    """Return medians over five rounds of the room ``join``.

    docs/join.md, section 13, gives the reason for the standard scenario. ``blocks_of_20_...`` is
    the same with blocks of at most 20 tuples, the published size. ``default_...`` is the run of the
    default settings, in which nearly every tuple is a message of its own. Messages are blocks,
    acknowledgements and hints between workers.
    """
    figures = {
        **standard(partial(sim.join.from_settings, STANDARD)),
        **_messages("standard", STANDARD),
    }
    for name, settings in CHAINS.items():
        simulate = partial(sim.join.from_settings, settings)
        tuples = len(simulate(1).workload.arrivals)
        figures |= paces(tuples, partial(parts, f"{name}_", simulate))
        figures |= _messages(name, settings)
    for name in ("standard", *CHAINS):
        per_s = figures[f"{name}_tuples_per_s"] * figures[f"{name}_messages_a_tuple"]
        figures[f"{name}_messages_per_s"] = per_s
    return figures


def _messages(name: str, settings: Mapping[str, str]) -> Mapping[str, float]:
    """Return the number of messages between workers for each arriving tuple."""
    run = sim.join.from_settings(settings, 1)
    blocks, hint_bytes_per_s = (float(run.summary[key]) for key in ("blocks", "hint_bytes_per_s"))
    span_us = run.workload.arrivals[-1].arrival_us - run.plan.epoch_us
    hints = hint_bytes_per_s * span_us / 1e6 / ORDINARY.header_bytes
    # Each block has one acknowledgement.
    return {f"{name}_messages_a_tuple": (2 * blocks + hints) / len(run.workload.arrivals)}


# -------------------------------------------------------------------------------------- script


def measure_script() -> dict[str, float | str]:
    """Return medians over five rounds of the room ``script``, and all placements side by side.

    ``longer_...`` is a run of 24 sensors of a bridge that send 20 times a second for two minutes to
    four workers. In the default run, of 40 seconds with gaps and bursts, all placements meet the
    same tuples.
    """
    longer = partial(sim.script.from_settings, {"rates_hz": "20", "seconds": "120"})
    tuples = len(longer(1).workload.arrivals)
    return {
        **standard(partial(sim.script.from_settings, {})),
        **paces(tuples, lambda: parts("longer_", longer)),
        **dict(_sides()),
    }


def _sides() -> Iterator[tuple[str, float | str]]:
    for side in sim.script.side_by_side({}, 1):
        figures = side._asdict()
        placement = figures.pop("placement")
        for name, figure in figures.items():
            yield f"{placement}: {name}", "-" if figure is None else figure
