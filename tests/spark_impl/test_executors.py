"""Executors killed with SIGKILL in the middle of a task: answers stay exact (tier 4).

The tasks that kill are in :mod:`properties.windows.cluster`; that they were running is beyond
doubt, because they did it themselves.
"""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from properties.windows.cluster import FATAL_BATCH
from properties.windows.driver import prepare
from properties.windows.subject import workload_of
from spark_impl.slack.room import SLACK
from spark_impl.windows.store import load_store
from tests.harness.driver_kills import assert_ended, needs_proc, run_to_its_end
from tests.spark_impl.test_kill import assert_equal_to_model


@needs_proc
@pytest.mark.timeout(600)
def test_answers_are_exact_though_executors_die_in_a_batch_and_in_a_correction(
    tmp_path: Path, spark: SparkSession, seed: int
) -> None:
    workload = workload_of(0, seed)
    size = len(workload.arrivals)
    workload = workload.with_(cuts=(size // 3, 2 * size // 3))
    prepare(tmp_path, workload)
    driver = run_to_its_end(tmp_path, "properties.windows.cluster")
    assert_ended(tmp_path / "killed", ["correction", "micro-batch"])
    batches = [line for line in driver.lines if line.startswith("begin ")]
    assert len(batches) == len(set(batches)), "Spark repeated a task, not a batch"
    _config, store = load_store(tmp_path / "store", SLACK)
    assert store.read("result", FATAL_BATCH).num_rows
    assert assert_equal_to_model(spark, tmp_path, workload)["late pairs"]
