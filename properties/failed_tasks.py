"""Fails a test in which a task of Spark failed, unless the test expects failed tasks.

Rules of this file:

* Spark may repeat a failed task, so without this check nobody would see the failure of the first.
* Spark counts. A task that was killed, because its query was stopped or because another task of its
  barrier stage had failed, is no failed one.
* A test that expects failed tasks is marked ``fails_tasks``.
"""

from collections.abc import Generator, Mapping
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

MARK = "fails_tasks"
DESCRIPTION = f"{MARK}: tasks of Spark fail in this test on purpose; in others none may"
COUNTING: Mapping[str, Any] = {"spark__ui__liveUpdate__period": "0"}
"""Option of :func:`spark_impl.runtime.session.session` with which Spark publishes its counts with
every event; by default they may be 100 ms old."""
PATIENCE_MS = 60_000
"""Longest time until Spark has counted what has ended."""


def watch(item: pytest.Item) -> Generator[None, Any, Any]:
    """Run a test; fail it if it passes although a task failed that no mark announces."""
    spark = getattr(item, "funcargs", {}).get("spark")
    if not isinstance(spark, SparkSession) or item.get_closest_marker(MARK):
        return (yield)
    context = spark.sparkContext
    before = count(context)
    result = yield
    failed = count(context) - before
    if failed:
        msg = f"failed tasks of Spark, which no mark {MARK} announces: {failed}; its log says why"
        pytest.fail(msg, pytrace=False)
    return result


def count(context: SparkContext) -> int:
    """Return the number of tasks that have failed in a session."""
    java = context._jsc.sc()
    java.listenerBus().waitUntilEmpty(PATIENCE_MS)
    executors = java.statusStore().executorList(False)
    return sum(int(executors.apply(at).failedTasks()) for at in range(executors.size()))
