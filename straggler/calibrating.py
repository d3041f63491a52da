"""Measurements of a cluster, put together as a calibration (docs/cluster.md)."""

import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from model.vocabulary import GroupingConfig, JoinConfig
from model.vocabulary.join import STREAMS, Equi
from sim.calibration import Calibration, Spread, spread_of
from spark_impl.grouping import MicroBatch, at_instances
from spark_impl.grouping.query import Spreader
from spark_impl.grouping.tasks import Columns
from spark_impl.join.chain import Chain
from spark_impl.join.slot_probe import Slot, probe_slots, speeds_of
from spark_impl.join.stage import check_slots
from spark_impl.join.work_probe import fit_costs, measure_sizes
from spark_impl.runtime.queries import frame_of
from spark_impl.runtime.session import EnvironmentProblem
from spark_impl.runtime.storage import locate
from straggler.errors import UsageError

STARTS = 5
"""Measured epochs and micro-batches, after those that warm up."""
WARM = 6
SECOND_US = 1_000_000
FOUND = pa.schema([("tuples", pa.int64())])


def calibrate(
    spark: SparkSession, folder: Path, seed: int, comparison_us: float | None = None
) -> Calibration:
    """Measure a cluster whose driver and workers share ``folder``.

    ``comparison_us`` is the stated cost of comparisons that workers emulate.
    Raise :class:`UsageError` if there are fewer than two slots.
    """
    slots = count_slots(spark)
    reports = probe_slots(spark, slots, seed)
    costs = [fit_costs(each) for each in reports[0].work]
    spread: dict[str, Any] = {name: spread_of([each[name] for each in costs]) for name in costs[0]}
    if comparison_us is not None:
        spread["comparison_us"] = (float(comparison_us),) * 3
    names = [report.host for report in reports]
    hosts = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return Calibration(
        master=str(spark.sparkContext.master),
        seed=seed,
        speeds=speeds_of(reports),
        hosts=tuple(hosts[name] for name in names),
        epoch_us=measure_epochs(spark, folder / "chain"),
        batch_us=measure_batches(spark, folder / "grouping", slots),
        **(spread | measure_links(reports) | measure_sizes(seed)),
    )


def count_slots(spark: SparkSession) -> int:
    """Return how many tasks can run at the same time, once the executors are there."""
    try:
        check_slots(spark, 2)
    except EnvironmentProblem as problem:
        msg = f"a calibration needs two task slots: {problem}"
        raise UsageError(msg) from problem
    context = spark.sparkContext._jsc.sc()
    profile = context.resourceProfileManager().defaultResourceProfile()
    found, before = int(context.maxNumConcurrentTasks(profile)), 0
    while found != before:  # executors that start together come within a second
        time.sleep(1.0 if not str(spark.sparkContext.master).startswith("local") else 0.0)
        before, found = found, int(context.maxNumConcurrentTasks(profile))
    return found


def measure_links(reports: Sequence[Slot]) -> dict[str, Spread]:
    """Return the spread of latency and bandwidth, between hosts and within one.

    If there is no boundary of a kind, that of the other kind stands for it.
    """
    found: dict[bool, tuple[list[float], list[float]]] = {True: ([], []), False: ([], [])}
    for left, right in pairwise(reports):
        latencies_us, bandwidths_mbps = found[left.host == right.host]
        latencies_us.append(median(left.latency_us))
        latencies_us += [min(left.latency_us), max(left.latency_us)]
        bandwidths_mbps += right.bandwidth_mbps
    far, near = (
        found[is_near] if found[is_near][0] else found[not is_near] for is_near in (False, True)
    )
    return {
        "latency_us": spread_of(far[0]),
        "bandwidth_mbps": spread_of(far[1]),
        "near_latency_us": spread_of(near[0]),
        "near_bandwidth_mbps": spread_of(near[1]),
    }


def measure_epochs(spark: SparkSession, store: Path) -> Spread:
    """Return how long an epoch of a chain of two workers takes that has one tuple a stream (us)."""
    config = JoinConfig(SECOND_US, (("join", Equi("key")),), workers=2, lateness_us=0)
    chain = Chain(spark, config, store)

    def start(number: int) -> None:
        ids = [2 * number, 2 * number + 1]
        chain.advance(_rows(spark, ids, stream=list(STREAMS), source_id=ids))

    return _times_us(start)


def measure_batches(spark: SparkSession, store: Path, instances: int) -> Spread:
    """Return how long a micro-batch takes that has one tuple an instance (us)."""
    config = GroupingConfig(instances, "tag", window_tuples=instances)
    spreader = Spreader(config, Columns("key", "seq"), locate(store))

    def start(number: int) -> None:
        ids = list(range(number * instances, (number + 1) * instances))
        spreader.advance(_rows(spark, ids), _work, number)

    return _times_us(start)


def _rows(
    spark: SparkSession, seq: list[int], **more: list[object] | list[int] | list[str]
) -> DataFrame:
    columns = {
        "seq": pa.array(seq, pa.int64()),
        "key": [f"key-{number}" for number in seq],
        "event_time_us": pa.array([SECOND_US * number for number in seq], pa.int64()),
        "value": [0.0] * len(seq),
    }
    return frame_of(spark, pa.table({**columns, **more}))


def _work(rows: DataFrame, batch: MicroBatch) -> None:
    at_instances(rows, batch, _count, FOUND).collect()


def _count(rows: pa.Table, _state: pa.Table | None) -> tuple[pa.Table, None]:
    return pa.table({"tuples": [len(rows)]}, FOUND), None


def _times_us(start: Callable[[int], None]) -> Spread:
    found = []
    for number in range(WARM + STARTS):
        begun_ns = time.perf_counter_ns()
        start(number)
        found.append((time.perf_counter_ns() - begun_ns) / 1_000)
    return spread_of(found[WARM:])
