"""Run many workloads of one query in few jobs on real Spark."""

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from model.vocabulary import Fault, Trace, Workload
from properties.join.packing import taken_apart, together
from properties.promises.recomputation import Answer, Windows
from spark_impl import grouping, join, script
from spark_impl.slack.room import SLACK
from spark_impl.watermark.room import WATERMARK
from spark_impl.windows.system import run_workloads

AT_ONCE = 4
"""Streams of room ``grouping`` whose micro-batches are spread at the same time."""


class Ran(NamedTuple):
    """What a pack gave."""

    traces: Mapping[str, Trace]
    """By name of the workload."""
    shared: Trace
    """Steps that belong to no single workload: the protocol of a chain that all of them share."""
    kills: Sequence[int]
    """Micro-batches in which the query was killed, as the Spark side reports them."""


def run_on_spark(spark: SparkSession, workloads: Mapping[str, Workload], kills: int) -> Ran:
    """Run workloads of one room together; those of most rooms have one configuration.

    A kill strikes the pack as a whole. Not more than ``kills`` are carried out, for each costs
    another start of the query: those that strike when there is state to go on from come first.
    """
    room = next(iter(workloads.values())).room
    with tempfile.TemporaryDirectory(prefix="straggler-pack-") as folder:
        return RUNNERS[room](spark, workloads, Path(folder), kills)


_Runner = Callable[[SparkSession, Mapping[str, Workload], Path, int], Ran]
NOTHING = Trace("spark", ())


def chosen(faults: Iterable[Fault], batches: int, kills: int) -> tuple[Fault, ...]:
    """Return so many faults of the micro-batches; those that strike when there is state come first.

    The flush is not killed.
    """
    struck = {fault for fault in faults if fault.at < batches}
    return tuple(sorted(struck, key=lambda fault: (fault.at == 0, fault))[:kills])


def _in_one_query(run: Callable[..., dict[str, Trace]], *given: object) -> _Runner:
    """Tell the workloads apart by a grouping column."""

    def run_all(
        spark: SparkSession, cases: Mapping[str, Workload], folder: Path, kills: int
    ) -> Ran:
        batches = max(len(list(each.batches())) for each in cases.values())
        faults = chosen(chain.from_iterable(each.faults for each in cases.values()), batches, kills)
        kept, killed = (
            {name: each.with_(faults=faults) for name, each in cases.items()},
            list[int](),
        )
        return Ran(run(*given, spark, kept, folder, killed.append), NOTHING, killed)

    return run_all


def _in_one_chain(
    spark: SparkSession, cases: Mapping[str, Workload], folder: Path, kills: int
) -> Ran:
    """Let the workloads follow one another in a chain, and share its epochs."""
    whole, killed = together(list(cases.values())), list[int]()
    epochs = len(list(whole.batches()))
    struck = whole.with_(faults=chosen(whole.faults, epochs, kills))
    trace = join.run_workloads(spark, {"chain": struck}, folder, killed.append)["chain"]
    apart = taken_apart(trace, list(cases.values()))
    return Ran(dict(zip(cases, apart, strict=True)), trace, killed)


def _side_by_side(
    spark: SparkSession, cases: Mapping[str, Workload], folder: Path, _kills: int
) -> Ran:
    """Spread several streams at the same time: their jobs wait more than they work.

    A stream that is killed does a micro-batch twice, and is not started anew; so all are.
    """
    killed: list[int] = []

    def run(number: int, name: str) -> Trace:
        own, place = {name: cases[name]}, folder / str(number)
        return grouping.run_workloads(spark, own, place, killed.append)[name]

    with ThreadPoolExecutor(AT_ONCE) as pool:
        traces = dict(zip(cases, pool.map(run, range(len(cases)), cases), strict=True))
    return Ran(traces, NOTHING, killed)


RUNNERS: Mapping[str, _Runner] = {
    "slack": _in_one_query(run_workloads, SLACK),
    "watermark": _in_one_query(run_workloads, WATERMARK),
    "script": _in_one_query(script.run_workloads),
    "join": _in_one_chain,
    "grouping": _side_by_side,
}
"""By room."""


def windows_in_spark(spark: SparkSession, workloads: Sequence[Workload]) -> list[Windows]:
    """Recompute the windows of keyed queries as a batch job with Spark's own ``F.window``.

    All queries have one configuration; a tuple that was delivered twice counts once.
    """
    size_us, slide_us = (workloads[0].config[name] for name in ("size_us", "slide_us"))
    rows = [
        (number, event.source_id, event.key, event.event_time_us, event.value)
        for number, workload in enumerate(workloads)
        for event in workload.arrivals
    ]
    columns = ["number", "source_id", "key", "event_time_us", "value"]
    table = pa.table(dict(zip(columns, map(list, zip(*rows, strict=True)), strict=True)))
    at = F.timestamp_micros("event_time_us")
    window = F.window(at, f"{size_us} microseconds", f"{slide_us} microseconds")
    aggregate = getattr(F, workloads[0].config["aggregate"])
    found = (
        spark.createDataFrame(table)
        .dropDuplicates(["number", "source_id"])
        .groupBy("number", "key", F.unix_micros(window["start"]).alias("start_us"))
        .agg(aggregate("value").cast("double").alias("value"), F.count("*").alias("n"))
    )
    answers: list[dict[tuple[str, int], Answer]] = [{} for _ in workloads]
    for row in found.toArrow().to_pylist():
        answers[row["number"]][row["key"], row["start_us"]] = Answer(row["value"], row["n"])
    return list(answers)
