"""Run many workloads of one query in few jobs on real Spark."""

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import SparkSession

from model.vocabulary import Fault, Trace, Workload
from spark_impl import grouping, script
from spark_impl.slack import SLACK
from spark_impl.watermark import WATERMARK
from spark_impl.windows.system import run_workloads


class PackTraces(NamedTuple):
    """Spark's traces of one pack."""

    traces: Mapping[str, Trace]
    """Trace of each workload, by its name."""
    kills: Sequence[int]
    """Numbers of the micro-batches in which the query was killed, as the Spark side reports."""


def run_on_spark(
    spark: SparkSession, workloads: Mapping[str, Workload], kills: int, **reading: bool
) -> PackTraces:
    """Run workloads of one room together; in most rooms all must have the same configuration.

    A kill strikes the pack as a whole. At most ``kills`` are carried out, because each costs
    another start of the query. Kills that strike when there is state to resume from come first.
    If ``finals`` is False, the last answers of a windowed query are not read.
    """
    room = next(iter(workloads.values())).room
    with tempfile.TemporaryDirectory(prefix="straggler-pack-") as folder:
        return RUNNERS[room](spark, workloads, Path(folder), kills, **reading)


_Runner = Callable[..., PackTraces]


def choose_faults(faults: Iterable[Fault], batches: int, kills: int) -> tuple[Fault, ...]:
    """Return at most ``kills`` faults of micro-batches, those that strike existing state first.

    The flush is never killed.
    """
    struck = {fault for fault in faults if fault.at < batches}
    return tuple(sorted(struck, key=lambda fault: (fault.at == 0, fault))[:kills])


def _in_one_query(run: Callable[..., dict[str, Trace]], *given: object) -> _Runner:
    """Return a runner that keeps workloads apart by a grouping column."""

    def run_all(
        spark: SparkSession,
        cases: Mapping[str, Workload],
        folder: Path,
        kills: int,
        **reading: bool,
    ) -> PackTraces:
        batches = max(len(list(each.batches())) for each in cases.values())
        drawn = chain.from_iterable(each.faults for each in cases.values())
        faults, killed = choose_faults(drawn, batches, kills), list[int]()
        kept = {name: each.with_(faults=faults) for name, each in cases.items()}
        return PackTraces(run(*given, spark, kept, folder, killed.append, **reading), killed)

    return run_all


RUNNERS: Mapping[str, _Runner] = {
    "slack": _in_one_query(run_workloads, SLACK),
    "watermark": _in_one_query(run_workloads, WATERMARK),
    "script": _in_one_query(script.run_workloads),
    "grouping": _in_one_query(grouping.run_workloads),
}
"""Runner of each room, by its name; chains have :mod:`properties.chain_runs`."""
