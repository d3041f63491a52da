"""Queries on two executors that do not share their stores with the driver.

``python -m tests.harness.unshared_stores FOLDER`` finds what :mod:`tests.harness.drivers` wants in
the folder ``slack``. Windows stand for all that write tables: scripts and chains do so, too.
Executors work elsewhere, so an address below ``/proc/self/cwd`` is another folder for each process.
Results go to ``FOLDER/results.json``.
"""

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from spark_impl.grouping import Grouping, GroupingProblem, MicroBatch
from spark_impl.runtime.histories import append
from spark_impl.runtime.queries import QueryProblem
from spark_impl.runtime.session import session
from tests.harness.announcements import say
from tests.harness.drivers import open_windows

TUPLES = 60
"""Number of tuples of each stream of room ``grouping``."""
OWN = "/proc/self/cwd"


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


def read_nothing(_rows: DataFrame, _batch: MicroBatch) -> None:
    """Read no rows; the stream runs its routers nevertheless."""


def routers(spark: SparkSession, folder: Path) -> str:
    """Run a stream of room ``grouping``; return the error that stopped it."""
    rows = spark.readStream.schema("seq bigint, key string").parquet(f"file:{folder}/in")
    checkpoint = str(folder / "checkpoint")
    stream = Grouping(2, senders=2).stream(
        rows, "key", f"{OWN}/routers", read_nothing, "seq", spark_checkpoint=checkpoint
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
            "routers": routers(spark, folder),
        }
    (folder / "results.json").write_text(json.dumps(results), encoding="utf-8")
    say("done")


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
