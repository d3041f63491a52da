"""Streams of room ``grouping`` on two executors: one store is shared, two are not.

``python -m tests.harness.grouping_unshared FOLDER`` works in ``FOLDER``. Executors work elsewhere,
so an address below ``/proc/self/cwd`` is another folder for each process. Results go to
``FOLDER/results.json``: for each stream, by its name, the sentence that stopped it, or the number
of its tuples.
"""

import json
import os
import sys
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from spark_impl.grouping import Grouping, GroupingProblem, MicroBatch, Work, at_instances
from spark_impl.runtime.histories import append
from spark_impl.runtime.session import session

MASTER = "local-cluster[2,1,1024]"
TUPLES = 60
OWN = "/proc/self/cwd"
FOUND = pa.schema([("n", pa.int64())])


def count(rows: pa.Table, state: pa.Table | None) -> tuple[pa.Table, pa.Table]:
    """Count the tuples of an instance."""
    before = 0 if state is None else state.column("n")[0].as_py()
    return pa.table({"n": [len(rows)]}), pa.table({"n": [before + len(rows)]})


def read_all(rows: DataFrame, batch: MicroBatch) -> None:
    """Read what all instances find."""
    at_instances(rows, batch, count, FOUND).collect()


def read_nothing(_rows: DataFrame, _batch: MicroBatch) -> None:
    """Read no rows; the stream runs its routers nevertheless."""


def outcome(spark: SparkSession, store: str, work: Work, spark_checkpoint: str | None) -> str | int:
    """Run a stream; return the sentence that stopped it, or the tuples of its store."""
    rows = spark.readStream.schema("seq bigint, key string").parquet(f"file:{Path.cwd()}/in")
    stream = Grouping(2, senders=2).stream(
        rows, "key", store, work, "seq", spark_checkpoint=spark_checkpoint
    )
    try:
        stream.run_available()
    except GroupingProblem as problem:
        return str(problem)
    return int(json.loads(Path(store, "batches", "0.json").read_bytes())["routed"])


def main(folder: Path) -> None:
    """Run all streams."""
    os.chdir(folder)
    keys = [f"k{number % 7}" for number in range(TUPLES)]
    append(folder / "in", pa.table({"seq": range(TUPLES), "key": keys}))
    with session(MASTER) as spark:
        results = {
            "shared": outcome(spark, str(folder / "shared"), read_all, None),
            "work": outcome(spark, f"{OWN}/store", read_all, None),
            "no work": outcome(spark, f"{OWN}/other", read_nothing, str(folder / "checkpoint")),
        }
    (folder / "results.json").write_text(json.dumps(results), encoding="utf-8")
    sys.stdout.write("done\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
