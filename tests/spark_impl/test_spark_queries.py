"""Services of Spark to every query: slots, listeners, the user's session, failures."""

import importlib.util
import logging
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)
from pyspark.sql.streaming.query import StreamingQuery

from spark_impl import TALKATIVE
from spark_impl.runtime import histories, queries, sources
from spark_impl.runtime.cell_times import Duration
from spark_impl.runtime.failures import QueryProblem, sentence_of
from spark_impl.runtime.limits import Limits
from spark_impl.runtime.queries import TOO_SLOW, Runnable, log
from spark_impl.runtime.session import EnvironmentProblem, session
from spark_impl.runtime.sources import _register
from spark_impl.runtime.storage import locate
from spark_impl.slack import SlackQuery
from spark_impl.windows.blocks import slots, task_of_slot
from tests.house.repository import ROOT
from tests.spark_impl.test_windows_query import FIRST, FIXED, history


def test_spark_spreads_slots_evenly_and_each_leads_back_to_its_task(spark: SparkSession) -> None:
    tasks = 250  # more than Spark's own 200 partitions
    rows = spark.createDataFrame([(slot,) for slot in slots(tasks)], "slot int")
    assert max(slots(10_000)) < 1 << 31
    for number in (1, 2, 7, tasks, 10_000):
        assert [task_of_slot(slot, number) for slot in slots(number)] == [*range(number)]
    for partitions in (3, 8, 50, 200):
        where = rows.select(F.pmod(F.hash("slot"), F.lit(partitions))).collect()
        assert [row[0] for row in where] == [task % partitions for task in range(tasks)]


def test_a_session_of_this_process_is_taken_as_it_is_and_stays(spark: SparkSession) -> None:
    for master in (None, spark.sparkContext.master):
        with session(master) as same:
            assert same.sparkContext is spark.sparkContext
    said = "master is 'local[1]', and this process has a session on 'local"
    with pytest.raises(EnvironmentProblem, match=re.escape(said)), session("local[1]"):
        pytest.fail("there are two sessions")
    assert spark.range(3).count() == 3


def test_a_frame_has_the_rows_behind_an_empty_chunk(spark: SparkSession) -> None:
    """Spark alone takes an empty chunk for the end of a table."""
    rows = pa.table({"n": pa.chunked_array([[1], [], [2, 3], []], pa.int64())})
    assert [row.n for row in queries.frame_of(spark, rows).collect()] == [1, 2, 3]


def test_what_pyspark_tells_about_operators_is_not_shown(tmp_path: Path) -> None:
    """PySpark starts its own file, whose standard output is that of the user's driver."""
    assert importlib.util.find_spec(f"pyspark.sql.streaming.{TALKATIVE.removesuffix('.py')}")
    file = tmp_path / TALKATIVE
    file.write_text("import spark_impl\nprint('received UDF from JVM')", encoding="utf-8")
    places = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, file], env=places, capture_output=True, check=True)
    assert done.stdout == b""


class Listener(StreamingQueryListener):
    """Listener that keeps a short note of every event."""

    def __init__(self) -> None:
        self.notes: list[str | int] = []

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 (the name is Spark's)
        self.notes.append("started")

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 (the same)
        self.notes.append(event.progress.batchId)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802 (the same)
        self.notes.append("idle")

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 (the same)
        self.notes.append("ended")


def test_listeners_of_the_session_get_the_events_of_a_query_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    history, checkpoint = locate(tmp_path / "history"), locate(tmp_path / "checkpoint")
    for number in range(2):
        histories.append(history, pa.table({"seq": [number]}))
    listener = Listener()
    spark.streams.addListener(listener)
    try:
        own = queries.session_of_query(spark, checkpoint, 1)
        rows = sources.paths(own, history, locate(tmp_path / "control"))
        queries.start_batches(rows, checkpoint, lambda *_: None).awaitTermination()
        wait_for_events(spark)
    finally:
        spark.streams.removeListener(listener)
    assert listener.notes == ["started", 0, 1, "ended"]


def wait_for_events(spark: SparkSession) -> None:
    """Wait until Spark has delivered all events to its listeners."""
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()


# ----------------------------------------------------------------------------------------- failures


IN_A_WORKER = """\
 An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "x", line 1
"""
IN_A_SINK = """\
 [FOREACH_BATCH_USER_FUNCTION_ERROR] An error occurred in the user provided function in\
 foreach batch sink. Reason: An exception was raised by the Python Proxy. Return Message:\
 Traceback (most recent call last):
  File "x", line 1
    sink()
"""


@pytest.mark.parametrize(
    ("where", "error", "sentence"),
    [
        (
            IN_A_WORKER,
            "pyarrow.lib.ArrowInvalid: Failed to parse string: 'abc'",
            "Failed to parse string: 'abc'",
        ),
        (IN_A_WORKER, "spark_impl.x.InputProblem: h has lost rows: 1", "h has lost rows: 1"),
        (IN_A_WORKER, "somewhere.inside._OwnError: not today", "not today"),
        (
            "",
            "java.io.FileNotFoundException: /s/offsets/0 (File too large)",
            "Spark cannot write to its checkpoint or its scratch folder: File too large",
        ),
        (
            IN_A_SINK,
            "pyspark.errors.exceptions.captured.AnalysisException: [NOT_FOUND] There is no x.\n"
            "Search path: [a]. SQLSTATE: 42P01;",
            "[NOT_FOUND] There is no x.",
        ),
        (IN_A_SINK, "NotToday: the table is locked", "NotToday: the table is locked"),
        (IN_A_SINK, "RuntimeError", "RuntimeError"),
        (
            IN_A_SINK,
            "py4j.protocol.Py4JJavaError: An error occurred while calling o153.parquet.\n"
            ": org.apache.spark.SparkException: Job aborted: Mkdirs failed\n\tat org.apache.x",
            "Job aborted: Mkdirs failed",
        ),
    ],
)
def test_an_error_of_a_worker_or_a_sink_is_one_sentence(
    where: str, error: str, sentence: str
) -> None:
    text = (
        "[STREAM_FAILED] Query [id = x] terminated with exception:"
        f"{where}{error}\n SQLSTATE: 39000 SQLSTATE: XXKST"
    )
    assert sentence_of(StreamingQueryException(text)) == sentence


def test_an_error_of_java_without_a_text_is_a_sentence_all_the_same() -> None:
    text = (
        "[STREAM_FAILED] Query [id = x] terminated with exception:  SQLSTATE: XXKST\n"
        "=== Streaming Query ===\nIdentifier: [id = x]\n"
    )
    error = StreamingQueryException(text)
    assert sentence_of(error).startswith("Spark gives no reason; often one of")
    error._stackTrace = "org.apache.X: \n\tat org.Y\nCaused by: java.io.EOFException\n\tat java.Z\n"  # type: ignore[attr-defined]  # of Java
    assert sentence_of(error).startswith("Spark gives no reason but EOFException; often one of")


def test_sink_that_ends_the_process_stops_the_query(spark: SparkSession, tmp_path: Path) -> None:
    """Java waits for an answer to its call, which no other than an ordinary error gives."""

    def leave(answers: DataFrame, batch: int) -> None:
        sys.exit(f"no more after {batch}")

    source = history(tmp_path / "h", FIRST)
    running = SlackQuery(spark, FIXED, source, tmp_path / "s", sink=leave).start()
    try:
        with pytest.raises(StreamingQueryException, match="SystemExit: no more after 0"):
            running.awaitTermination(60)
    finally:
        running.stop()


SLOW = f"[STREAM_FAILED] Query [id = 1] terminated with exception: {TOO_SLOW}. SQLSTATE: XXKST"
OTHERWISE = "ValueError: something else"


def starts(root: Path, ends: Iterable[str | None]) -> tuple[int, str]:
    """Return how often a query with these endings was started, and its error message."""
    left, begun = iter(ends), list[int]()

    class Made(Runnable):
        _root = locate(root)
        _limits = Limits()

        def _start(self, interval: Duration | None = None) -> StreamingQuery:
            begun.append(1)
            said = next(left)

            def wait() -> None:
                if said is not None:
                    raise StreamingQueryException(said)

            ended = SimpleNamespace(awaitTermination=wait, stop=lambda: None)
            return cast(StreamingQuery, ended)

    told, runner = "", Made()
    try:
        runner.run_available()
    except QueryProblem as problem:
        told = str(problem)
    return len(begun), told


ALWAYS = [SLOW] * 3


@pytest.mark.parametrize(
    ("ends", "begun", "said"),
    [
        ([None], 1, ""),
        ([*ALWAYS[1:], None], 3, ""),
        (ALWAYS, 3, f"{TOO_SLOW}."),
        ([SLOW, OTHERWISE], 2, "something else"),
    ],
)
def test_a_query_whose_worker_was_too_slow_is_begun_again(
    tmp_path: Path,
    ends: list[str | None],
    begun: int,
    said: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, log.name)
    assert starts(tmp_path, ends) == (begun, said)
    assert [f"starts again: {TOO_SLOW}" in each for each in caplog.messages] == [True] * (begun - 1)


@pytest.mark.parametrize("run", [Runnable.run_available, Runnable.start])
def test_rows_at_which_a_query_stopped_are_removed_when_they_count(
    tmp_path: Path, run: Callable[[Runnable], object]
) -> None:
    class Made(Runnable):
        _root = locate(tmp_path)
        _limits = Limits()

        def _start(self, interval: Duration | None = None) -> StreamingQuery:
            self._limits.settle(3)
            ended = SimpleNamespace(awaitTermination=lambda: None, stop=lambda: None)
            return cast(StreamingQuery, ended)

    files = [tmp_path / "_stopped" / f"{batch:08d}.parquet" for batch in (3, 4)]
    files[0].parent.mkdir()
    for file in files:
        file.touch()
    run(Made())
    assert [file.exists() for file in files] == [False, True]


# ------------------------------------------------------------------------ the session of the user


@pytest.mark.parametrize("before", [None, "the user's"])
def test_the_active_session_stays_that_of_the_user(before: str | None) -> None:
    active, seen = [before], list[str | None]()
    option = SimpleNamespace(isDefined=lambda: before is not None, get=lambda: before)
    sessions = SimpleNamespace(
        getActiveSession=lambda: option,
        setActiveSession=active.append,
        clearActiveSession=lambda: active.append(None),
    )
    found: Any = sessions
    for name in reversed(["org", "apache", "spark", "sql", "classic", "SparkSession"]):
        found = SimpleNamespace(**{name: found})
    spark: Any = SimpleNamespace(
        _jsparkSession="the query's",
        dataSource=SimpleNamespace(register=lambda _: seen.append(active[-1])),
        _jvm=found,
    )
    _register(spark)
    assert seen == ["the query's"]
    assert active[-1] == before


@pytest.mark.parametrize("own", [None, "the user's"])
def test_the_settings_of_the_user_outlast_a_start(own: str | None) -> None:
    (name, ours), *_ = queries._LOCAL_SETTINGS.items()
    kept = {} if own is None else {name: own}
    before = dict(kept)
    conf = SimpleNamespace(get=kept.get, set=kept.__setitem__, unset=kept.__delitem__)
    spark: Any = SimpleNamespace(conf=conf)
    for address, there in (("/checkpoint", own or ours), ("s3://bucket/checkpoint", own)):
        with queries.settings_of_start(spark, locate(address)):
            assert kept.get(name) == there
        assert kept == before
