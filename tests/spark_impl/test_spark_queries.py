"""What Spark does for every query: slots of tasks, and events for listeners."""

from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from spark_impl.runtime import histories, queries, sources
from spark_impl.runtime.storage import locate
from spark_impl.windows.blocks import slots, task_of_slot


def test_every_slot_leads_back_to_its_task() -> None:
    for tasks in (1, 2, 4, 7, 200, 10_000):
        numbers = slots(tasks)
        assert [task_of_slot(slot, tasks) for slot in numbers] == list(range(tasks))
        assert max(numbers) < 1 << 31


def test_spark_spreads_slots_evenly(spark: SparkSession) -> None:
    tasks = 250  # more than Spark's own 200 partitions
    rows = spark.createDataFrame([(slot,) for slot in slots(tasks)], "slot int")
    for partitions in (2, 3, 4, 8, 10, 16, 25, 32, 50, 100, 200):
        where = rows.select(F.pmod(F.hash("slot"), F.lit(partitions))).collect()
        assert [row[0] for row in where] == [task % partitions for task in range(tasks)]


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
