"""Packs: many generated cases in one Spark job, kept apart by a grouping column.

A failing pack names its failing cases. The smallest of them is shrunk without Spark, confirmed in a
Spark job of its own, and stored as a counterexample.
"""

import itertools
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import hypothesis
from hypothesis import HealthCheck, Phase
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from model.vocabulary import Trace, Workload, stable_hash
from properties import profiles
from sim.kernel.distributions import Exponential
from sim.kernel.log import simulate_arrivals
from sim.kernel.source import Source
from spark_impl.slack.query import SLACK
from spark_impl.watermark.query import WATERMARK
from spark_impl.windows.room import WindowRoom
from spark_impl.windows.system import run_workloads
from straggler.judging import counterexamples
from straggler.judging.judge import broken_sentences, compare_traces
from straggler.judging.systems import SPARK
from straggler.judging.trial import SHOWN_SENTENCES, Trial
from straggler.rooms import Room
from straggler.strategies import streams as strategies
from straggler.strategies.examples import RUN as RUN
from straggler.strategies.examples import collect as collect
from straggler.strategies.examples import collect_run

WINDOWED: Mapping[str, WindowRoom[Any]] = {room.name: room for room in (SLACK, WATERMARK)}
"""Rooms that run many cases in one job, by name."""


STEERED = 24
"""Number of dense streams that Hypothesis tries for a pack."""


class StreamPack(NamedTuple):
    """Different streams for one query."""

    config: strategies.Query
    cases: Mapping[str, Workload]


def draw_pack(config: strategies.Query, n: int, seed: int, dense: int = 0) -> StreamPack:
    """Draw ``n`` different streams for a query, ``dense`` of them with large windows.

    Except in profile ``nightly`` they have few cuts, because a pack has as many micro-batches as
    the stream with the most cuts, and each takes Spark a second, however small.
    """
    cuts = profiles.choose(2, nightly=strategies.CUTS_MAX)
    strategy = strategies.workloads(config)
    large = steer_to_large_windows(config, seed)[:dense] if dense else []
    different: dict[object, Workload] = {}
    runs = itertools.count()
    while len(different) < n:
        sparse = collect_run(strategy, RUN, stable_hash(f"{seed} {next(runs)}"))
        for drawn in (*large, *sparse):
            case = drawn.with_(cuts=drawn.cuts[:cuts])
            different.setdefault((case.arrivals, case.cuts, case.flush), case)
    named = zip((f"case-{number}" for number in range(n)), different.values(), strict=False)
    return StreamPack(config, {name: case.with_(name=name, seed=seed) for name, case in named})


@st.composite
def dense_workloads(draw: st.DrawFn, config: strategies.Query) -> Workload:
    """Draw a stream with tens to hundreds of tuples in each window, on any route to the log."""
    density = draw(st.sampled_from([40, 80, 160, 320]))
    source = Source(
        events=draw(st.sampled_from([160, 320, 640])),
        interval=Exponential(config.size_us / density),
        low=draw(st.sampled_from([0, 50])),
    )
    seed = draw(strategies.SEEDS)
    scale_us = max(config.size_us, config.slide_us)
    events = simulate_arrivals(draw(strategies.plans(scale_us, (source,), seed)), seed).events
    kept = events if config.dedup else strategies.without_redeliveries(events)
    cuts = tuple(cut * len(kept) // 99 for cut in draw(strategies.cuts(99)))
    room = strategies.ROOMS[type(config)]
    return Workload(room, tuple(kept), config.to_json(), cuts, flush=True, name="dense")


def steer_to_large_windows(config: strategies.Query, seed: int) -> list[Workload]:
    """Return dense streams for a query, each with another size of its largest window, falling.

    Hypothesis draws half of them, and changes these to make their largest windows larger.
    """
    found: dict[int, Workload] = {}

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=STEERED,
        database=None,
        deadline=None,
        derandomize=False,
        phases=[Phase.generate, Phase.target],
        suppress_health_check=list(HealthCheck),
    )
    @hypothesis.given(dense_workloads(config))
    def draw(case: Workload) -> None:
        tuples = largest_window(config, case)
        hypothesis.target(tuples, label="tuples of the largest window")
        found.setdefault(tuples, case)

    draw()
    return [found[tuples] for tuples in sorted(found, reverse=True)]


def largest_window(config: strategies.Query, case: Workload) -> int:
    """Return the most tuples of one key in a window, redeliveries included."""
    counts = Counter[tuple[str, int]]()
    for event in case.arrivals:
        last = event.event_time_us // config.slide_us
        first = (event.event_time_us - config.size_us) // config.slide_us + 1
        counts.update((event.key, number) for number in range(first, last + 1))
    return max(counts.values(), default=0)


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
