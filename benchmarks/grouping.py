"""Speed of routing alone, and of whole jobs on twelve instances, half of them slow.

*Routing*: tuples a second of one sender, one core: micro-batches of 100,000 of a million tuples,
100,000 keys by Zipf's law with exponent 1, after a window that found hot keys.

*Jobs*: 240,000 tuples, exponent 1.5, or the URLs of one day of the NASA recording where it is
there, are spread over twelve instances, each a task. An instance sleeps for the time that its
tuples take, so that twelve of them do not need twelve cores. With ``1.25x`` six instances take the
time t for a tuple and six take 1.25 t, with ``4x`` six take 4 t; t is such that the job takes a few
seconds if nobody waits. Throughput is the number of tuples divided by the time from the first plan
to the last result, which includes finding heavy keys, routing and the shuffle. ``dag, alpha 0``
looks at loads alone and gives all instances the same number of tuples: it loses mean(s)/min(s) for
speeds s. ``dag`` gives some instances more than others and loses more, as the busiest instance
predicts.

*Share of routing*: how much shorter the job is when every row brings its instance along.
``longer`` has four times as many tuples, and each takes as long.

*Assigning*: two million rows, exponent 1.5, get their instance on two slots, and nothing else: rows
go to Python and back, and ``tag`` first finds hot keys in a pass of its own. A hundred rows show
the fixed cost of a job.

*Sums*: count and sum of the same rows by key, by Spark alone, which adds up before it shuffles, and
after ``tag`` has spread the rows.

All ratios are of medians, side by side in one run.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import mean, median
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from benchmarks._grouping_input import (
    FOUND,
    LONGER,
    RECORDED,
    SKEWED,
    TIMES_LONGER,
    inputs,
    serve,
    write,
    zipf,
)
from model.vocabulary.grouping import POLICIES
from spark_impl.grouping import Grouping
from spark_impl.grouping.router import SenderState, begin_window, route
from spark_impl.grouping.windows import rebalance, start
from spark_impl.runtime.session import session

INSTANCES = 12
ROUTED, BATCH = 1_000_000, 100_000
SUMMED, FEW = 2_000_000, 100
ROUNDS = 3
IDEAL_S = 2.0
"""Shortest time of a job on its instances."""
EVEN = "dag, alpha 0"


def measure() -> dict[str, float]:
    """Return all figures; rates are in tuples a second."""
    figures = routing()
    with inputs() as place:
        with session(f"local[{INSTANCES}]") as spark:
            figures |= jobs(spark, place)
        with session("local[2]", long_running=True) as spark:
            figures |= sums(spark, place)
    return figures


# ------------------------------------------------------------------------------------- routing


def routing() -> dict[str, float]:
    """Return tuples a second of one sender under every policy."""
    keys = zipf(ROUTED, 1.0)
    rates = {policy: _routing_rate(policy, keys) for policy in POLICIES}
    return {
        **{f"routing, {policy}: tuples/s": rate for policy, rate in rates.items()},
        "goal, routing, pkg": 1_000_000.0,
        "goal, routing, tag": 500_000.0,
    }


def _routing_rate(policy: str, keys: pa.StringArray) -> float:
    grouping = Grouping(INSTANCES, policy, times_us=_times(4.0, 100))
    table = start(grouping.config).table
    learning = begin_window(grouping.config, SenderState())
    _, learned = route(grouping.config, table, 0, learning, keys.slice(0, BATCH))
    table = rebalance(grouping.config, table, [learned], table.times)
    rates = []
    for _ in range(ROUNDS):
        state = begin_window(grouping.config, learned)
        begun_s = time.perf_counter()
        for first in range(0, ROUTED, BATCH):
            _, state = route(grouping.config, table, 0, state, keys.slice(first, BATCH))
        rates.append(ROUTED / (time.perf_counter() - begun_s))
    return median(rates)


# ---------------------------------------------------------------------------------------- jobs


class Job(NamedTuple):
    """Times of a whole job."""

    whole_s: float
    busiest_s: float
    """Time of the instance with the most tuples."""


def jobs(spark: SparkSession, place: Path) -> dict[str, float]:
    """Return throughputs and their ratios, for each input and both sets of instances."""
    figures: dict[str, float] = {}
    cases = [
        (SKEWED, 1.25, ("tag", "dag", EVEN, "key"), IDEAL_S),
        (SKEWED, 4.0, ("tag", "dag", EVEN), IDEAL_S),
        (LONGER, 1.25, ("tag",), TIMES_LONGER * IDEAL_S),
    ]
    if (place / RECORDED).exists():
        cases.append((RECORDED, 1.25, ("tag", "dag", EVEN, "key"), IDEAL_S))
    for name, slower, policies, ideal_s in cases:
        found = _job(spark, place / name, slower, policies, ideal_s)
        figures |= {f"{name}, {slower:g}x, {each}": figure for each, figure in found.items()}
    return figures


def _job(
    spark: SparkSession, place: Path, slower: float, policies: Sequence[str], ideal_s: float
) -> Mapping[str, float]:
    rows = spark.read.parquet(str(place))
    tuples = rows.count()
    speed = sum(1 / time_us for time_us in _times(slower, 1_000_000))
    times_us = _times(slower, round(ideal_s * 1e6 * speed / tuples * 1_000_000))
    contestants = {policy: _spread(policy, times_us) for policy in policies}
    runs: dict[str, list[Job]] = {policy: [] for policy in policies}
    contestants["tag"](rows).write.mode("overwrite").parquet(f"{place}-assigned")
    assigned = spark.read.parquet(f"{place}-assigned")
    brought: list[Job] = []
    _run(lambda _: assigned, rows, times_us)  # warms everything up
    for _ in range(ROUNDS):
        for policy, spread in contestants.items():
            runs[policy].append(_run(spread, rows, times_us))
        brought.append(_run(lambda _: assigned, rows, times_us))
    whole_s = {policy: median(run.whole_s for run in own) for policy, own in runs.items()}
    busiest_s = {policy: own[0].busiest_s for policy, own in runs.items()}
    speeds = [1 / time_us for time_us in times_us]
    return {
        **{f"{policy}: tuples/s": tuples / each for policy, each in whole_s.items()},
        **{f"tag / {each}": whole_s[each] / whole_s["tag"] for each in policies[1:]},
        **{
            f"tag / {each}, by the busiest instance": busiest_s[each] / busiest_s["tag"]
            for each in policies[1:]
        },
        "mean(s)/min(s)": mean(speeds) / min(speeds),
        "tag: share of routing": 1 - median(run.whole_s for run in brought) / whole_s["tag"],
    }


def _times(slower: float, fastest_us: int) -> tuple[int, ...]:
    half = INSTANCES // 2
    return (fastest_us,) * half + (round(slower * fastest_us),) * half


def _spread(policy: str, times_us: tuple[int, ...]) -> Callable[[DataFrame], DataFrame]:
    if policy == EVEN:
        grouping = Grouping(INSTANCES, "dag", times_us=times_us, alpha=0.0)
    else:
        grouping = Grouping(INSTANCES, policy, times_us=times_us)
    return lambda rows: grouping.assign(rows, "key")


def _run(
    assign: Callable[[DataFrame], DataFrame], rows: DataFrame, times_us: tuple[int, ...]
) -> Job:
    begun_s = time.perf_counter()
    spread = assign(rows).repartitionById(INSTANCES, F.col("instance"))
    found = spread.mapInArrow(partial(serve, times_us=times_us), FOUND).collect()
    whole_s = time.perf_counter() - begun_s
    busy_s = [0.0] * INSTANCES
    for row in found:
        busy_s[row.instance] += row.tuples * times_us[row.instance] / 1e6
    return Job(whole_s, max(busy_s))


# ---------------------------------------------------------------------------------------- sums


def sums(spark: SparkSession, place: Path) -> dict[str, float]:
    """Compare Spark's own aggregation with ``tag`` on sums alone."""
    write(zipf(SUMMED, 1.5), place / "sums")
    rows = spark.read.parquet(str(place / "sums"))
    grouping = Grouping(2)

    def summed(given: DataFrame) -> DataFrame:
        return given.groupBy("key").agg(F.count("value").alias("n"), F.sum("value").alias("total"))

    taken_s: dict[str, list[float]] = {"native": [], "tag": []}
    answers = {}
    for _ in range(ROUNDS + 1):
        for name in taken_s:
            begun_s = time.perf_counter()
            given = rows if name == "native" else grouping.spread(rows, "key")
            answers[name] = summed(given).toArrow().sort_by("key")
            taken_s[name].append(time.perf_counter() - begun_s)
    assert answers["native"].equals(answers["tag"]), "all the same"
    rates = {name: SUMMED / median(own[1:]) for name, own in taken_s.items()}
    assign_s = {policy: _assign_s(rows, policy) for policy in ("pkg", "tag")}
    write(zipf(FEW, 1.5), place / "few")
    few = spark.read.parquet(str(place / "few"))
    return {
        **{f"assign, {name}: rows/s": SUMMED / each for name, each in assign_s.items()},
        **{f"assign, {FEW} rows, {name}: s": _assign_s(few, name) for name in assign_s},
        **{f"sums, {name}: tuples/s": rate for name, rate in rates.items()},
        "sums, tag / native": rates["tag"] / rates["native"],
    }


def _assign_s(rows: DataFrame, policy: str) -> float:
    taken_s = []
    for _ in range(ROUNDS):
        begun_s = time.perf_counter()
        Grouping(INSTANCES, policy).assign(rows, "key").write.format("noop").mode("append").save()
        taken_s.append(time.perf_counter() - begun_s)
    return median(taken_s)
