"""Profile of a chain on Spark: the time of each part of an epoch, in the streams of ``join``.

Two workers, blocks of 64, and the files of ``join``. Figures are microseconds a tuple, medians over
the runs.

*Wall clock*: the parts follow each other and add up to the whole run, the flush included. The time
between the start of the last worker and the end of the last one is split by part, as the mean of
both workers. ``unexplained`` is what is left of the whole run.

*Processor time*: that of all processes. Java, the driver, and the Python workers outside and inside
of their tasks add up to the whole; the tasks are split by part.

Reading the clocks takes time as well: ``with clocks / without`` compares whole runs.
"""

import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple
from unittest.mock import patch

from pyspark import SparkContext
from pyspark.sql import SparkSession

from benchmarks._join_chain import FILES, TUPLES, inputs
from benchmarks._join_clock import Spent, read_spent, run_timed
from benchmarks.join import run_streams
from spark_impl.join import stage
from spark_impl.join.chain import Chain
from spark_impl.join.rendezvous import Rendezvous
from spark_impl.runtime.session import session

ROUNDS = 7
"""Measured runs with clocks, and as many without, after two that warm up."""
WORKERS, ZETA = 2, 64


class Moments(NamedTuple):
    """An epoch seen from the driver; moments are seconds since 1970."""

    called: float
    placed: float
    """The rendezvous was open, and the stage about to begin."""
    collected: float
    done: float


class Profile(NamedTuple):
    """Seconds of one run, by part."""

    wall: dict[str, float]
    cpu: dict[str, float]
    whole: float


def measure() -> dict[str, float]:
    """Return microseconds a tuple, by part."""
    profiles: list[Profile] = []
    plain: list[float] = []
    with session("local[4]", long_running=True) as spark, inputs(TUPLES, FILES) as place:
        for number in range(ROUNDS + 2):
            with tempfile.TemporaryDirectory(dir=place) as out:
                begun = time.time()
                run_streams(spark, place, Path(out) / "chain", WORKERS, ZETA)
                without = time.time() - begun
            with tempfile.TemporaryDirectory(dir=place) as out:
                found = profile(spark, place, Path(out))
            if number >= 2:
                plain.append(without)
                profiles.append(found)
    whole = median(each.whole for each in profiles)
    wall = _by_part([each.wall for each in profiles])
    cpu = _by_part([each.cpu for each in profiles])
    return {
        "wall clock: whole": _each(whole),
        **{f"wall clock: {name}": _each(took) for name, took in wall.items()},
        "wall clock: unexplained": _each(whole - sum(wall.values())),
        "processor time: whole": _each(median(sum(each.cpu.values()) for each in profiles)),
        **{f"processor time: {name}": _each(took) for name, took in cpu.items()},
        "with clocks / without": whole / median(plain),
    }


def profile(spark: SparkSession, place: Path, out: Path) -> Profile:
    """Run the chain once with clocks."""
    notes = out / "notes"
    notes.mkdir()
    epochs: list[list[float]] = []
    before = processor_times()
    begun = time.time()
    with patch.object(stage, "run_task", partial(run_timed, into=str(notes))), _observed(epochs):
        batches = run_streams(spark, place, out / "chain", WORKERS, ZETA)
    whole = time.time() - begun
    processes = {name: t - before[name] for name, t in processor_times().items()}
    parts = _split_epochs([Moments(*times) for times in epochs], read_spent(notes))
    for phase, name in _SPARK.items():
        parts.wall[f"Spark, {name}"] = sum(each.durationMs[phase] for each in batches) / 1e3
    # The flush, the last epoch, is no micro-batch.
    within = sum(done - called for called, _, _, done in epochs[:-1])
    called = sum(each.durationMs["addBatch"] for each in batches) / 1e3
    parts.wall["Spark, call of an epoch"] = called - within
    outside = processes.pop("workers") - sum(parts.cpu.values())
    return Profile(
        parts.wall, {**processes, "workers, outside of their tasks": outside, **parts.cpu}, whole
    )


class Parts(NamedTuple):
    """Seconds, by part."""

    wall: dict[str, float]
    cpu: dict[str, float]


def _split_epochs(epochs: list[Moments], spent: dict[int, list[Spent]]) -> Parts:
    """Return the parts of all epochs, from the call of each to its end."""
    wall: defaultdict[str, float] = defaultdict(float)
    cpu: defaultdict[str, float] = defaultdict(float)
    for epoch, at in enumerate(epochs):
        tasks = spent[epoch]
        first, last = max(each.begun for each in tasks), max(each.ended for each in tasks)
        wall["driver before the stage"] += at.placed - at.called
        wall["stage until its workers run"] += first - at.placed
        for each in tasks:
            share = (last - first) / sum(each.wall.values()) / len(tasks)
            for name, took in each.wall.items():
                wall[f"workers, {name}"] += share * took
            for name, took in each.cpu.items():
                cpu[f"workers, {name}"] += took
        wall["end of the stage"] += at.collected - last
        wall["commit"] += at.done - at.collected
    return Parts(wall, cpu)


_SPARK = {
    "latestOffset": "what is new",
    "walCommit": "log before a micro-batch",
    "commitOffsets": "log after a micro-batch",
    "queryPlanning": "planning",
    "getBatch": "planning, sources",
}
"""Phases of Spark's progress reports around an epoch."""


@contextmanager
def _observed(epochs: list[list[float]]) -> Iterator[None]:
    """Note the moments of every epoch, as :class:`Moments` has them."""
    advance, enter, leave = Chain.advance, Rendezvous.__enter__, Rendezvous.__exit__

    def note_advance(self: Chain, *given: Any) -> Any:
        epochs.append([time.time()])
        try:
            return advance(self, *given)
        finally:
            epochs[-1].append(time.time())

    def note_enter(self: Rendezvous) -> Rendezvous:
        epochs[-1].append(time.time())
        return enter(self)

    def note_leave(self: Rendezvous, *given: Any) -> None:
        epochs[-1].append(time.time())
        leave(self, *given)

    with (
        patch.object(Chain, "advance", note_advance),
        patch.object(Rendezvous, "__enter__", note_enter),
        patch.object(Rendezvous, "__exit__", note_leave),
    ):
        yield


def processor_times() -> dict[str, float]:
    """Return the processor time so far of Java, of the driver, and of all Python workers."""
    gateway = SparkContext._gateway
    assert gateway is not None
    java = gateway.proc.pid
    # User and system time of each process, and of its children that have ended.
    stats = {int(file.name): _stat(file) for file in Path("/proc").iterdir() if file.name.isdigit()}
    below = [number for number in stats if java in _ancestors(number, stats)]
    return {
        "Java": sum(stats[java][1:3]),
        "driver": time.process_time(),
        "workers": sum(stats[java][3:]) + sum(sum(stats[number][1:]) for number in below),
    }


def _stat(file: Path) -> tuple[float, ...]:
    """Return the parent of a process, and its processor times; zeros if it has ended."""
    try:
        fields = (file / "stat").read_text("utf-8").rpartition(")")[2].split()
    except OSError:
        return 0, 0.0, 0.0, 0.0, 0.0
    ticks = os.sysconf("SC_CLK_TCK")
    return int(fields[1]), *(int(each) / ticks for each in fields[11:15])


def _ancestors(number: int, stats: dict[int, tuple[float, ...]]) -> Iterator[int]:
    while (number := int(stats.get(number, (0,))[0])) > 0:
        yield number


def _by_part(runs: list[dict[str, float]]) -> dict[str, float]:
    names = dict.fromkeys(name for run in runs for name in run)
    return {name: median(run.get(name, 0.0) for run in runs) for name in names}


def _each(seconds: float) -> float:
    """Return microseconds a tuple."""
    return 1e6 * seconds / (2 * TUPLES)
