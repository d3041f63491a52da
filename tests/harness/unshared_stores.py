"""Queries of every room on two executors that do not share their stores with the driver.

``python -m tests.harness.unshared_stores FOLDER`` finds what :mod:`tests.harness.drivers` wants in
the folders ``slack`` and ``script``, and the workload of a chain in ``join``. Executors work
elsewhere, so an address below ``/proc/self/cwd`` is another folder for each process. Results go to
``FOLDER/results.json``.
"""

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from model.vocabulary import JoinConfig, ScriptConfig
from spark_impl.grouping import Grouping, GroupingProblem, MicroBatch, Work, at_instances
from spark_impl.join.chain import Chain
from spark_impl.join.system import rows_of
from spark_impl.runtime.histories import append
from spark_impl.runtime.queries import QueryProblem
from spark_impl.runtime.session import session
from spark_impl.runtime.storage import InputProblem
from spark_impl.runtime.systems import CASE
from spark_impl.script import ScriptQuery
from tests.harness.announcements import say
from tests.harness.drivers import open_windows, workload_in

CHAIN_WORKERS = 2
TUPLES = 60
"""Number of tuples of each stream of room ``grouping``."""
OWN = "/proc/self/cwd"
FOUND = pa.schema([("n", pa.int64())])


def modules_of_workers(spark: SparkSession) -> list[str]:
    """Return the files from which Python workers import our packages."""

    def where(_batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import spark_impl

        yield pa.RecordBatch.from_pylist([{"file": spark_impl.__file__}])

    return sorted({row.file for row in spark.range(1).mapInArrow(where, "file string").collect()})


def windows(spark: SparkSession, folder: Path) -> list[str | int]:
    """Run a windowed query; return the error that stopped it, and its last micro-batch."""
    query = open_windows(spark, folder, f"{OWN}/windows")
    return [_error_of(query.run_available, QueryProblem), query.store.at().view.last]


def scripts(spark: SparkSession, folder: Path) -> list[str | int]:
    """Run a query of scripts; return the error that stopped it, and its last micro-batch."""
    config = ScriptConfig.from_json(workload_in(folder).config)
    history, checkpoint = folder / "history", folder / "checkpoint"
    query = ScriptQuery(spark, config, history, f"{OWN}/scripts", [CASE], checkpoint=checkpoint)
    return [_error_of(query.run_available, QueryProblem), query.store.at().view.last]


def chain(spark: SparkSession, folder: Path) -> str:
    """Run the first epoch of a chain; return the error that stopped it."""
    workload = workload_in(folder)
    chain = Chain(spark, JoinConfig.from_json(workload.config), f"{OWN}/chain")
    return _error_of(lambda: chain.advance(rows_of(spark, workload.arrivals)), InputProblem)


def read_all(rows: DataFrame, batch: MicroBatch) -> None:
    """Read what all instances find: the number of their tuples."""

    def count(rows: pa.Table, state: pa.Table | None) -> tuple[pa.Table, pa.Table]:
        before = 0 if state is None else state.column("n")[0].as_py()
        return pa.table({"n": [len(rows)]}), pa.table({"n": [before + len(rows)]})

    at_instances(rows, batch, count, FOUND).collect()


def read_nothing(_rows: DataFrame, _batch: MicroBatch) -> None:
    """Read no rows; the stream runs its routers nevertheless."""


def grouping(spark: SparkSession, store: str, work: Work, checkpoint: str | None = None) -> str:
    """Run a stream of room ``grouping``; return the error that stopped it, or nothing."""
    rows = spark.readStream.schema("seq bigint, key string").parquet(f"file:{Path.cwd()}/in")
    stream = Grouping(2, senders=2).stream(
        rows, "key", store, work, "seq", spark_checkpoint=checkpoint
    )
    return _error_of(stream.run_available, GroupingProblem)


def _error_of(run: Callable[[], object], problem: type[Exception]) -> str:
    try:
        run()
    except problem as error:
        return str(error)
    return ""


def main(folder: Path) -> None:
    """Run all queries in one session."""
    os.chdir(folder)
    keys = [f"k{number % 7}" for number in range(TUPLES)]
    append(folder / "in", pa.table({"seq": range(TUPLES), "key": keys}))
    with session("local-cluster[2,1,1024]") as spark:
        results = {
            "modules": modules_of_workers(spark),
            "windows": windows(spark, folder / "slack"),
            "scripts": scripts(spark, folder / "script"),
            "chain": chain(spark, folder / "join"),
            "shared": grouping(spark, f"{folder}/shared", read_all),
            "work": grouping(spark, f"{OWN}/work", read_all),
            "no work": grouping(spark, f"{OWN}/no-work", read_nothing, f"{folder}/checkpoint"),
        }
    (folder / "results.json").write_text(json.dumps(results), encoding="utf-8")
    say("done")


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
