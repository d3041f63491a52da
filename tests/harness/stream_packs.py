"""Packs: many generated cases in one Spark job, told apart by a grouping column.

A failing pack names its failing cases; the smallest of them is shrunk without Spark, confirmed in
Spark as a job of its own, and stored as a counterexample.
"""

import itertools
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import hypothesis
from hypothesis import HealthCheck, Phase
from hypothesis.strategies import SearchStrategy
from pyspark.sql import SparkSession

from model.vocabulary import Trace, Workload, stable_hash
from properties.generators import streams as strategies
from properties.judging import counterexamples
from properties.judging.judge import broken_sentences, compare_traces
from properties.judging.systems import SPARK
from properties.judging.trial import SHOWN_SENTENCES, Trial
from properties.rooms import Room
from spark_impl.slack.query import SLACK
from spark_impl.watermark.query import WATERMARK
from spark_impl.windows.room import WindowRoom
from spark_impl.windows.system import run_workloads

T = TypeVar("T")

WINDOWED: Mapping[str, WindowRoom[Any]] = {room.name: room for room in (SLACK, WATERMARK)}
"""Rooms that run many cases in one job."""
RUN = 50
"""Examples that are drawn in one run of Hypothesis."""


def collect(strategy: SearchStrategy[T], n: int, seed: int) -> list[T]:
    """``n`` examples of a strategy, the same ones for the same seed.

    In runs, each with a seed of its own: within a run Hypothesis likes to draw what it drew before.
    """
    found: list[T] = []
    for run in range(-(-n // RUN)):
        found += _collect_run(strategy, min(RUN, n - len(found)), stable_hash(f"{seed} {run}"))
    return found


def _collect_run(strategy: SearchStrategy[T], n: int, seed: int) -> list[T]:
    found: list[T] = []

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=n,
        database=None,
        deadline=None,
        derandomize=False,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @hypothesis.given(strategy)
    def draw(example: T) -> None:
        found.append(example)

    draw()
    return found[:n]


class StreamPack(NamedTuple):
    """Different streams for one query."""

    config: strategies.Query
    cases: Mapping[str, Workload]


def draw_pack(config: strategies.Query, n: int, seed: int) -> StreamPack:
    """``n`` generated streams for a query, no two of them alike."""
    strategy = strategies.workloads(config)
    different: dict[object, Workload] = {}
    runs = itertools.count()
    while len(different) < n:
        for case in _collect_run(strategy, RUN, stable_hash(f"{seed} {next(runs)}")):
            different.setdefault((case.arrivals, case.cuts, case.flush), case)
    named = zip((f"case-{number}" for number in range(n)), different.values(), strict=False)
    return StreamPack(config, {name: case.with_(name=name, seed=seed) for name, case in named})


def run_in_spark(spark: SparkSession, cases: Mapping[str, Workload]) -> dict[str, Trace]:
    """All cases in one job; nothing is left behind."""
    room = WINDOWED[next(iter(cases.values())).room]
    with tempfile.TemporaryDirectory(prefix="straggler-pack-") as folder:
        return run_workloads(room, spark, cases, Path(folder))


def list_failing(
    room: Room, cases: Mapping[str, Workload], traces: Mapping[str, Trace]
) -> dict[str, tuple[str, ...]]:
    """What is broken about each case of which something is, in sentences."""
    reference = room.reference()
    found = {}
    for name, case in cases.items():
        agreement, _ = compare_traces(room, case, reference(case), traces[name], room.step_types)
        broken = broken_sentences((*room.check(case, traces[name]).verdicts, agreement))
        if broken:
            found[name] = broken
    return found


def report(
    room: Room,
    pack: StreamPack,
    broken: Mapping[str, tuple[str, ...]],
    folder: Path = counterexamples.FOLDER,
) -> str:
    """Shrink, confirm and store the smallest failing case; say what it is and what it was.

    The room's Spark pipeline is asked, so a session must be running.
    """
    name = min(broken, key=lambda each: len(pack.cases[each].arrivals))
    trial = Trial(room, room.spark(), SPARK, room.step_types)
    lines = [
        f"{len(broken)} of {len(pack.cases)} cases are broken; {name}, in its pack:",
        *broken[name][:SHOWN_SENTENCES],
        "",
        "The smallest like it, alone:",
        *trial.report(pack.cases[name], folder),
    ]
    return "\n".join(lines)
