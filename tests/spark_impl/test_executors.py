"""Executors that are killed with SIGKILL, or that write into folders of their own (tier 4).

The tasks of :mod:`tests.harness.windows_executor_deaths` kill their own executors, so the kills
certainly happen while tasks run.
"""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_impl.slack.query import SLACK
from spark_impl.windows.store import load_store
from tests.harness.driver_kills import assert_ended, needs_proc, run_to_its_end
from tests.harness.killed_queries import windows_workload
from tests.harness.windows_driver import prepare
from tests.harness.windows_executor_deaths import FATAL_BATCH
from tests.harness.windows_unshared import STORE
from tests.spark_impl.test_kill import assert_equal_to_model


@needs_proc
@pytest.mark.timeout(600)
def test_answers_are_exact_though_executors_die_in_a_batch_and_in_a_correction(
    tmp_path: Path, spark: SparkSession, seed: int
) -> None:
    workload = windows_workload(0, seed)
    size = len(workload.arrivals)
    workload = workload.with_(cuts=(size // 3, 2 * size // 3))
    prepare(tmp_path, workload)
    driver = run_to_its_end(tmp_path, "tests.harness.windows_executor_deaths")
    assert_ended(tmp_path / "killed", ["correction", "micro-batch"])
    batches = [line for line in driver.lines if line.startswith("begin ")]
    assert len(batches) == len(set(batches)), "Spark repeated a task, not a batch"
    _config, store = load_store(tmp_path / "store", SLACK)
    assert store.read("result", FATAL_BATCH).num_rows
    assert assert_equal_to_model(spark, tmp_path, workload)["late pairs"]


@needs_proc
@pytest.mark.timeout(600)
def test_store_that_is_not_shared_is_noticed(tmp_path: Path, seed: int) -> None:
    prepare(tmp_path, windows_workload(0, seed))
    begun, stopped, complete, _done = run_to_its_end(
        tmp_path, "tests.harness.windows_unshared"
    ).lines
    assert begun == "begin 0"
    assert stopped.startswith(f"stopped: {STORE} has 0 of the "), stopped
    assert stopped.endswith("all workers have to reach one folder under this address")
    assert complete == "complete: -1"
