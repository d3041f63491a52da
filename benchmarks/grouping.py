"""Speed of routing alone, and of whole jobs on twelve instances, half of them slow.

*Routing*: tuples a second of one sender, one core: micro-batches of 100,000 of a million tuples,
100,000 keys by Zipf's law with exponent 1, after a window that found hot keys.

*Jobs*: 240,000 tuples, exponent 1.5, are spread over twelve instances, each a task. An instance
sleeps for the time that its tuples take, so that twelve of them do not need twelve cores. With
``1.25x`` six instances take the time t for a tuple and six take 1.25 t, with ``4x`` six take 4 t; t
is such that the job takes ``IDEAL_S`` if no instance waits. Throughput is the number of tuples
divided by the time from the first plan to the last result, which includes finding heavy keys,
routing and the shuffle.

*Share of routing*: how much shorter the job is when a column of every row names its instance.

*Sums*: count and sum of two million rows by key, exponent 1.5, by Spark alone, which adds up before
it shuffles, and after ``tag`` has spread the rows.

All ratios are of medians, side by side in one run.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import mean, median

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from benchmarks._grouping_input import FOUND, serve, write, zipf
from benchmarks._windows import in_a_folder
from model.vocabulary.grouping import POLICIES
from spark_impl.grouping import Grouping
from spark_impl.grouping.router import SenderState, begin_window, route
from spark_impl.grouping.windows import rebalance, start
from spark_impl.runtime.session import session

INSTANCES = 12
ROUTED, BATCH = 1_000_000, 100_000
TUPLES, SUMMED = 240_000, 2_000_000
EXPONENT = 1.5
ROUNDS = 3
IDEAL_S = 2.0
"""Shortest time of a job on its instances."""


def measure() -> dict[str, float]:
    """Return all figures; rates are in tuples a second."""
    figures = routing()
    with session(f"local[{INSTANCES}]") as spark:
        figures |= in_a_folder(partial(jobs, spark))
    with session("local[2]", long_running=True) as spark:
        figures |= in_a_folder(partial(sums, spark))
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
    _, learned = route(grouping.config, table, learning, keys.slice(0, BATCH))
    table = rebalance(grouping.config, table, [learned], table.times)
    rates = []
    for _ in range(ROUNDS):
        state = begin_window(grouping.config, learned)
        begun_s = time.perf_counter()
        for first in range(0, ROUTED, BATCH):
            _, state = route(grouping.config, table, state, keys.slice(first, BATCH))
        rates.append(ROUTED / (time.perf_counter() - begun_s))
    return median(rates)


# ---------------------------------------------------------------------------------------- jobs


def jobs(spark: SparkSession, place: Path) -> dict[str, float]:
    """Return throughputs and their ratios for each set of instances."""
    write(zipf(TUPLES, EXPONENT), place / "zipf")
    figures: dict[str, float] = {}
    for slower, policies in ((1.25, ("tag", "dag", "key")), (4.0, ("tag", "dag"))):
        found = _job(spark, place / "zipf", slower, policies)
        figures |= {f"zipf, {slower:g}x, {each}": figure for each, figure in found.items()}
    return figures


def _job(
    spark: SparkSession, place: Path, slower: float, policies: Sequence[str]
) -> dict[str, float]:
    rows = spark.read.parquet(str(place))
    tuples = rows.count()
    speed = sum(1 / time_us for time_us in _times(slower, 1_000_000))
    times_us = _times(slower, round(IDEAL_S * 1e6 * speed / tuples * 1_000_000))
    contestants = {policy: _spread(policy, times_us) for policy in policies}
    contestants["tag"](rows).write.mode("overwrite").parquet(f"{place}-assigned")
    assigned = spark.read.parquet(f"{place}-assigned")
    contestants["assigned"] = lambda _: assigned
    _run_s(contestants["assigned"], rows, times_us)  # warms everything up
    runs_s: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(ROUNDS):
        for name, spread in contestants.items():
            runs_s[name].append(_run_s(spread, rows, times_us))
    whole_s = {name: median(own) for name, own in runs_s.items()}
    speeds = [1 / time_us for time_us in times_us]
    return {
        **{f"{policy}: tuples/s": tuples / whole_s[policy] for policy in policies},
        **{f"tag / {each}": whole_s[each] / whole_s["tag"] for each in policies[1:]},
        "mean(s)/min(s)": mean(speeds) / min(speeds),
        "tag: share of routing": 1 - whole_s["assigned"] / whole_s["tag"],
    }


def _times(slower: float, fastest_us: int) -> tuple[int, ...]:
    half = INSTANCES // 2
    return (fastest_us,) * half + (round(slower * fastest_us),) * half


def _spread(policy: str, times_us: tuple[int, ...]) -> Callable[[DataFrame], DataFrame]:
    grouping = Grouping(INSTANCES, policy, times_us=times_us)
    return lambda rows: grouping.assign(rows, "key")


def _run_s(
    assign: Callable[[DataFrame], DataFrame], rows: DataFrame, times_us: tuple[int, ...]
) -> float:
    begun_s = time.perf_counter()
    spread = assign(rows).repartitionById(INSTANCES, F.col("instance"))
    spread.mapInArrow(partial(serve, times_us=times_us), FOUND).collect()
    return time.perf_counter() - begun_s


# ---------------------------------------------------------------------------------------- sums


def sums(spark: SparkSession, place: Path) -> dict[str, float]:
    """Return throughputs of counts and sums by Spark alone and after ``tag``, and their ratio."""
    write(zipf(SUMMED, EXPONENT), place / "sums")
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
    assert answers["native"].equals(answers["tag"]), "the sums differ"
    rates = {name: SUMMED / median(own[1:]) for name, own in taken_s.items()}
    return {
        **{f"sums, {name}: tuples/s": rate for name, rate in rates.items()},
        "sums, tag / native": rates["tag"] / rates["native"],
    }
