"""Tasks that die, alone or with their executors: answers stay exact (tier 4).

The tasks of :mod:`tests.harness.windows_executor_deaths` end their own processes, so the deaths
certainly happen while tasks run.
"""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from model.vocabulary import Workload
from spark_impl.slack.query import SLACK
from spark_impl.windows import history, processor
from spark_impl.windows.store import load_store
from tests.harness.driver_kills import assert_ended, needs_proc, run_to_its_end
from tests.harness.killed_queries import windows_workload
from tests.harness.windows_driver import prepare, run
from tests.harness.windows_executor_deaths import DEATHS, FATAL_BATCH, fatal_reader, fatal_writer
from tests.spark_impl.test_kill import assert_equal_to_model


def prepared(folder: Path, seed: int) -> Workload:
    """Write the files of a query with three micro-batches, and return its workload."""
    workload = windows_workload(0, seed)
    size = len(workload.arrivals)
    workload = workload.with_(cuts=(size // 3, 2 * size // 3))
    prepare(folder, workload)
    return workload


def end_task_once(note: Path) -> None:
    """End the calling Python worker and its task, unless ``note`` exists."""
    try:
        note.touch(exist_ok=False)
    except FileExistsError:
        return
    os._exit(1)


def assert_repeated(
    spark: SparkSession, folder: Path, workload: Workload, lines: Sequence[str]
) -> None:
    batches = [line for line in lines if line.startswith("begin ")]
    assert batches
    assert len(batches) == len(set(batches)), "Spark repeated a task, not a batch"
    _config, store, view = load_store(folder / "store", SLACK)
    assert store.read_kind(view, "result", FATAL_BATCH).num_rows
    assert assert_equal_to_model(spark, folder, workload)["late pairs"]


@pytest.mark.fails_tasks
def test_answers_are_exact_though_tasks_die_in_a_batch_and_in_a_correction(
    tmp_path: Path,
    spark: SparkSession,
    seed: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    workload, killed = prepared(tmp_path, seed), tmp_path / "killed"
    killed.mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(processor, "table_writer", fatal_writer(killed, end_task_once))
        patch.setattr(history, "row_group_reader", fatal_reader(killed, end_task_once))
        patch.setattr(history, "ROWS_ON_DRIVER", 0)
        run(spark, tmp_path)
    assert sorted(path.name for path in killed.iterdir()) == [*DEATHS]
    assert_repeated(spark, tmp_path, workload, capsys.readouterr().out.splitlines())


@needs_proc
@pytest.mark.long
@pytest.mark.timeout(600)
def test_answers_are_exact_though_executors_die_in_a_batch_and_in_a_correction(
    tmp_path: Path, spark: SparkSession, seed: int
) -> None:
    workload = prepared(tmp_path, seed)
    driver = run_to_its_end(tmp_path, "tests.harness.windows_executor_deaths")
    assert_ended(tmp_path / "killed", DEATHS)
    assert_repeated(spark, tmp_path, workload, driver.lines)
