"""Generated cases a second on Spark: packs of every room, compared with one job a case.

The packs are those of the property tests, with their cuts, flushes, restarts and kills, but with
more cases. A pack and its first cases alone run on the same warm session. Every micro-batch, flush
and correction counts, and so does reading the traces; drawing and comparing the cases does not.

Not every room can run many cases in one query:

* A query of ``slack``, ``watermark`` or ``script`` keeps its cases apart by a grouping column.
* Epochs of a chain of ``join`` follow each other in time, and a later tuple makes earlier ones
  late. Its cases run one after the other in one chain, with disjoint keys and times; neighbours
  share an epoch.
* A router of ``grouping`` has one configuration. Its cases are streams with a store each, of which
  four run at the same time.
"""

import statistics
import time
from collections.abc import Callable, Mapping
from itertools import islice
from typing import NamedTuple

from pyspark.sql import SparkSession

from benchmarks.join_profile import processor_times
from model.vocabulary import Workload
from properties import packs as cluster_packs
from properties import stream_packs
from properties.on_spark import run_on_spark
from spark_impl.runtime.session import session
from straggler.strategies import queries
from straggler.strategies import script as strategies
from tests.properties.grouping import test_spark as grouping_tests
from tests.properties.script import test_spark as script_tests
from tests.properties.slack import test_spark as slack_tests
from tests.properties.watermark import test_spark as watermark_tests

Cases = Mapping[str, Workload]
ALONE = 3
"""Number of cases that run alone, after one that warms everything up."""
SEED = 1
GOAL = 250
"""Wanted cases of a pack a second."""
KILLS = 1
"""Kills of a chain; with more, most of the time would pass in starts of the query."""


class RoomPack(NamedTuple):
    """A pack of the property tests of one room."""

    cases: int
    draw: Callable[[int], Cases]
    """Draws so many cases."""
    run: Callable[[SparkSession, Cases], Mapping[str, object]]
    """Runs them; returns the trace of each."""
    slots: int = 2
    """Task slots of the session: a chain needs one for each worker."""


def draw_slack(cases: int) -> Cases:
    """Draw a pack whose first streams have large windows."""
    dense = cases // slack_tests.DENSE_SHARE
    return stream_packs.draw_pack(slack_tests.CHANGING, cases, SEED, dense).cases


def draw_watermark(cases: int) -> Cases:
    """Draw a pack with corrections, a restart and a kill."""
    drawn = watermark_tests.draw_pack(0, SEED, cases).cases
    return {name: case.with_(faults=watermark_tests.FAULTS) for name, case in drawn.items()}


def draw_join(cases: int) -> Cases:
    """Draw and simulate clusters of one chain."""
    drawn = cluster_packs.packs("join", cases, queries.join_queries(), queries.chain_shape)
    clusters = cluster_packs.simulate(stream_packs.collect(drawn, 2, SEED)[-1])
    return {name: run.workload.with_(name=name) for name, (_, run) in clusters.items()}


def draw_script(cases: int) -> Cases:
    """Draw a pack with a restart and a kill."""
    streams = stream_packs.collect(strategies.cases(), cases, SEED)
    drawn = script_tests.pack_of(script_tests.written(), streams)
    return {name: case.with_(faults=script_tests.FAULTS) for name, case in drawn.items()}


def run_promise(spark: SparkSession, cases: Cases) -> Mapping[str, object]:
    """Run cases as the tests of the main promises do."""
    return run_on_spark(spark, cases, KILLS).traces


PACKS: Mapping[str, RoomPack] = {
    "slack": RoomPack(1_000, draw_slack, stream_packs.run_in_spark),
    "watermark": RoomPack(500, draw_watermark, stream_packs.run_in_spark),
    "join": RoomPack(16, draw_join, run_promise, slots=8),
    "grouping": RoomPack(16, lambda cases: grouping_tests.draw_streams(cases, SEED), run_promise),
    "script": RoomPack(500, draw_script, run_promise),
}
"""The pack of each room, by its name."""


def measure() -> dict[str, float]:
    """Return cases a second both ways, and their ratio, for every room."""
    figures: dict[str, float] = {}
    for name, pack in PACKS.items():
        cases = pack.draw(pack.cases)
        with session(f"local[{pack.slots}]") as spark:
            found = _measure(spark, pack, cases)
        figures |= {f"{name}: {label}": figure for label, figure in found.items()}
    return {**figures, "goal of packed cases/s": float(GOAL)}


def _measure(spark: SparkSession, pack: RoomPack, cases: Cases) -> dict[str, float]:
    alone = [{name: case} for name, case in islice(cases.items(), ALONE)]
    _seconds(spark, pack, alone[0])  # warms everything up
    alone_hz = 1 / statistics.median(_seconds(spark, pack, each) for each in alone)
    used_s = sum(processor_times().values())
    packed_hz = len(cases) / _seconds(spark, pack, cases)
    used_s = sum(processor_times().values()) - used_s
    return {
        "cases in the pack": float(len(cases)),
        "packed cases/s": packed_hz,
        "cases/s, one job a case": alone_hz,
        "ratio": packed_hz / alone_hz,
        "processor time of a packed case, ms": 1_000 * used_s / len(cases),
    }


def _seconds(spark: SparkSession, pack: RoomPack, cases: Cases) -> float:
    started_s = time.perf_counter()
    traces = pack.run(spark, cases)
    assert set(traces) == set(cases)
    return time.perf_counter() - started_s
