"""Fails a test in which a task of Spark failed, unless the test expects failed tasks.

Rules of this file:

* Spark may repeat a failed task, so without this check nobody would see the failure of the first.
* Spark counts. A task that was killed, because its query was stopped or because another task of its
  barrier stage had failed, is no failed one.
* A test that expects failed tasks is marked ``fails_tasks``.
"""

import re
from collections.abc import Generator, Iterator, Mapping
from itertools import islice
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
SHOWN = 3
"""Most errors of tasks that a message shows."""


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
        newest = islice(newest_errors(context), min(failed, SHOWN))
        errors = "".join(f"\n* {error}" for error in newest)
        msg = f"failed tasks of Spark, which no mark {MARK} announces: {failed}{errors}"
        pytest.fail(msg, pytrace=False)
    return result


def count(context: SparkContext) -> int:
    """Return the number of tasks that have failed in a session."""
    java = context._jsc.sc()
    java.listenerBus().waitUntilEmpty(PATIENCE_MS)
    executors = _each(java.statusStore().executorList(False))
    return sum(int(each.failedTasks()) for each in executors)


def newest_errors(context: SparkContext) -> Iterator[str]:
    """Yield the last line of the error of each failed task, those of the newest stages first."""
    java, gateway = context._jsc.sc(), context._gateway
    store, jvm = java.statusStore(), context._jvm
    assert gateway is not None
    assert jvm is not None
    empty = jvm.java.util.ArrayList(), False, False, gateway.new_array(jvm.double, 0)
    stages = _each(store.stageList(*empty, jvm.java.util.ArrayList()))
    for stage in sorted(stages, key=lambda each: (each.stageId(), each.attemptId()), reverse=True):
        if stage.numFailedTasks():
            for task in _each(store.taskList(stage.stageId(), stage.attemptId(), stage.numTasks())):
                if task.status() == "FAILED":
                    error = str(task.errorMessage().getOrElse(None))
                    yield f"stage {stage.stageId()}, task {task.index()}: {_said(error)}"


def _said(error: str) -> str:
    """Return the first line of a Java error, and the last of a Python traceback in it."""
    lines = [line.strip() for line in error.split("\n")]
    said = [line for line in lines if line and not line.startswith(("at ", "SQLSTATE"))]
    python = [line for line in said if re.match(r"[\w.]+(Error|Exception|Problem|Killed)\b", line)]
    return " ... ".join(dict.fromkeys([*said[:1], *python[-1:]]))[:400]


def _each(sequence: Any) -> list[Any]:
    """Return the elements of a sequence of Scala's."""
    return [sequence.apply(place) for place in range(sequence.size())]
