"""A task that fails unseen, because Spark repeats it, fails its test."""

import os
from collections.abc import Iterable
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import cast

import pytest
from pyspark.sql import SparkSession

from properties import failed_tasks
from properties.failed_tasks import MARK, count, newest_errors

pytestmark = pytest.mark.fails_tasks


def run_watched(spark: SparkSession, *marks: str) -> object:
    """Run a test of another item, whose task fails once, under watch."""
    closest = {name: name for name in marks}
    found = SimpleNamespace(funcargs={"spark": spark}, get_closest_marker=closest.get)
    watching = failed_tasks.watch(cast(pytest.Item, found))
    next(watching)
    fail_once(spark)
    try:
        watching.send("result")
    except StopIteration as done:
        return done.value
    return None


def fail_once(spark: SparkSession, how: str = "raise") -> None:
    """Let one of two tasks fail at its first attempt."""

    def run(numbers: Iterable[int]) -> Iterable[int]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        if context.attemptNumber() == 0 and context.partitionId() == 1:
            if how == "raise":
                msg = "not at the first attempt"
                raise ValueError(msg)
            os._exit(1)
        yield from numbers

    assert spark.sparkContext.range(4, numSlices=2).mapPartitions(run).count() == 4


@pytest.mark.parametrize("how", ["raise", "exit"])
def test_a_task_that_spark_repeats_is_counted(spark: SparkSession, how: str) -> None:
    before = count(spark.sparkContext)
    fail_once(spark, how)
    assert count(spark.sparkContext) == before + 1


def test_a_test_in_which_a_task_fails_fails(spark: SparkSession) -> None:
    with pytest.raises(pytest.fail.Exception) as failed:
        run_watched(spark)
    said = str(failed.value)
    assert "no mark fails_tasks announces: 1\n" in said
    assert "ValueError: not at the first attempt" in said
    assert run_watched(spark, MARK) == "result"


def test_a_killed_task_is_no_failed_one(spark: SparkSession, tmp_path: Path) -> None:
    context = spark.sparkContext
    begun = tmp_path / "begun"

    def wait(_: Iterable[int]) -> Iterable[int]:
        import time

        begun.touch()
        time.sleep(60)
        yield 1

    def run() -> None:
        context.setJobGroup("waits", "", interruptOnCancel=True)
        with pytest.raises(Exception, match="cancelled"):
            context.range(1, numSlices=1).mapPartitions(wait).count()

    before = count(context)
    running = Thread(target=run)
    running.start()
    while not begun.exists():
        running.join(0.05)
    context.cancelJobGroup("waits")
    running.join()
    assert count(context) == before


def test_the_newest_error_comes_first(spark: SparkSession) -> None:
    fail_once(spark)
    assert "not at the first attempt" in next(newest_errors(spark.sparkContext))
