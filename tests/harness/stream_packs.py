"""Packs: many generated cases in one Spark job, kept apart by a grouping column.

A failing pack names its failing cases. The smallest of them is shrunk without Spark, confirmed in a
Spark job of its own, and stored as a counterexample.
"""

import itertools
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import SparkSession

from model.vocabulary import Trace, Workload, stable_hash
from properties.generators import streams as strategies
from properties.generators.examples import RUN as RUN
from properties.generators.examples import collect as collect
from properties.generators.examples import collect_run
from properties.judging import counterexamples
from properties.judging.judge import broken_sentences, compare_traces
from properties.judging.systems import SPARK
from properties.judging.trial import SHOWN_SENTENCES, Trial
from properties.rooms import Room
from spark_impl.slack.query import SLACK
from spark_impl.watermark.query import WATERMARK
from spark_impl.windows.room import WindowRoom
from spark_impl.windows.system import run_workloads
from tests.harness import profiles

WINDOWED: Mapping[str, WindowRoom[Any]] = {room.name: room for room in (SLACK, WATERMARK)}
"""Rooms that run many cases in one job, by name."""


class StreamPack(NamedTuple):
    """Different streams for one query."""

    config: strategies.Query
    cases: Mapping[str, Workload]


def draw_pack(config: strategies.Query, n: int, seed: int) -> StreamPack:
    """Draw ``n`` different streams for a query.

    Except in profile ``nightly`` they have few cuts, because a pack has as many micro-batches as
    the stream with the most cuts, and each takes Spark a second, however small.
    """
    cuts = profiles.choose(2, nightly=strategies.CUTS_MAX)
    strategy = strategies.workloads(config)
    different: dict[object, Workload] = {}
    runs = itertools.count()
    while len(different) < n:
        for drawn in collect_run(strategy, RUN, stable_hash(f"{seed} {next(runs)}")):
            case = drawn.with_(cuts=drawn.cuts[:cuts])
            different.setdefault((case.arrivals, case.cuts, case.flush), case)
    named = zip((f"case-{number}" for number in range(n)), different.values(), strict=False)
    return StreamPack(config, {name: case.with_(name=name, seed=seed) for name, case in named})


def run_in_spark(spark: SparkSession, cases: Mapping[str, Workload]) -> dict[str, Trace]:
    """Run all cases in one job and leave no files behind."""
    room = WINDOWED[next(iter(cases.values())).room]
    with tempfile.TemporaryDirectory(prefix="straggler-pack-") as folder:
        return run_workloads(room, spark, cases, Path(folder))


def list_failing(
    room: Room, cases: Mapping[str, Workload], traces: Mapping[str, Trace]
) -> dict[str, tuple[str, ...]]:
    """Return the broken cases by name, each with sentences on what is broken."""
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
    """Shrink, confirm and store the smallest failing case; describe it before and after.

    A Spark session must be running.
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
