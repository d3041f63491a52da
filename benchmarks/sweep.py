"""Gain of a sweep from a second process, and the cost of a sweep beyond its runs.

The same 32 runs of room ``grouping`` (20,000 tuples each): one after the other without a sweep,
swept by one process, and by two. ``second_process`` is the time of one process divided by that of
two; only two idle cores can give 2. ``overhead`` is the time of one process divided by that without
a sweep, less 1, and includes the start of the process. Each time is the median of three rounds, in
which the three ways take turns.
"""

import tempfile
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter

from sim.sweep.engine import Sweep
from sim.sweep.experiment import EFFORTS, Experiment, Factor, Grid, Level, Measure
from sim.sweep.jobs import Mapper, jobs_of, perform, run_on_processes
from sim.sweep.runs import runs_of
from sim.sweep.store import Store

ROUNDS = 3
BASE = {"tuples": "20000", "window_tuples": "2500", "load": "backlog"}
POLICIES = ("tag", "pkg", "shuffle", "cg")
GRID = Grid(
    BASE, (Factor("policy", tuple([Level(name, {"policy": name}) for name in POLICIES])),), 8
)
EXPERIMENT = Experiment(
    name="benchmark",
    room="grouping",
    run="sim",
    fan="",
    title="",
    claim="",
    source=None,
    published=None,
    grids=dict.fromkeys(EFFORTS, GRID),
    measures=(Measure("mean_rho", "mean_rho"),),
    expectations=(),
    plot=None,
    confidence=0.95,
    labels={},
)


def measure() -> dict[str, float]:
    """Return seconds and their ratios."""
    ways: dict[str, Callable[[], None]] = {
        "without_s": _without,
        "one_process_s": partial(_swept, partial(run_on_processes, processes=1)),
        "two_processes_s": partial(_swept, partial(run_on_processes, processes=2)),
    }
    rounds = [{name: _seconds(way) for name, way in ways.items()} for _ in range(ROUNDS)]
    seconds = {name: median(each[name] for each in rounds) for name in ways}
    return {
        "runs": len(runs_of(EXPERIMENT, "quick", 0)),
        **seconds,
        "second_process": _ratio(rounds, "one_process_s", "two_processes_s"),
        "overhead": _ratio(rounds, "one_process_s", "without_s") - 1,
    }


def _ratio(rounds: Sequence[dict[str, float]], first: str, second: str) -> float:
    return median(each[first] / each[second] for each in rounds)


def _seconds(way: Callable[[], None]) -> float:
    started_s = perf_counter()
    way()
    return perf_counter() - started_s


def _without() -> None:
    for job in jobs_of(EXPERIMENT, runs_of(EXPERIMENT, "quick", 0)):
        perform(job)


def _swept(mapper: Mapper) -> None:
    with tempfile.TemporaryDirectory() as folder:
        sweep = Sweep([EXPERIMENT], "quick", Store(Path(folder)), mapper)
        deque(sweep.events(), maxlen=0)
