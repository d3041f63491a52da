"""Listeners of the user's session get the events of queries, which run in their own sessions."""

from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from spark_impl.runtime import histories, queries, sources
from spark_impl.runtime.storage import locate


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
