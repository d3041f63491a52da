"""Examples of Spark's Structured Streaming programming guide that the gallery has not, all right.

Each docstring names the section of the guide that has the example.
"""

from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (Spark's own habit)
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from tests.jobs.gallery import HOLDS, Entry


def session_counts_by_user(events: DataFrame) -> DataFrame:
    """Count events of sessions whose gap depends on the user ("Types of time windows")."""
    gap = (
        F.when(events.userId == "user1", "5 seconds")
        .when(events.userId == "user2", "20 seconds")
        .otherwise("5 minutes")
    )
    return (
        events.withWatermark("timestamp", "10 minutes")
        .groupBy(F.session_window("timestamp", gap), "userId")
        .count()
    )


RANGE = """
    clickAdId = impressionAdId AND
    clickTime >= impressionTime AND
    clickTime <= impressionTime + interval 1 hour
"""


def left_semi_join(impressions: DataFrame, clicks: DataFrame) -> DataFrame:
    """Keep impressions that led to clicks ("Semi Joins with Watermarking")."""
    return impressions.withWatermark("impressionTime", "2 hours").join(
        clicks.withWatermark("clickTime", "3 hours"), F.expr(RANGE), "leftSemi"
    )


def distinct_events_within_watermark(events: DataFrame) -> DataFrame:
    """Drop copies that come within the delay ("Streaming Deduplication")."""
    return events.withWatermark("eventTime", "10 hours").dropDuplicatesWithinWatermark(["guid"])


class MinuteCounter(StatefulProcessor):
    """Counts the rows of a key until a timer at the end of its minute."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.handle = handle
        self.count = handle.getValueState("count", "n long")

    def handleInputRows(  # noqa: N802 (Spark's name)
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: Any,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        """Add the rows to the count, and set the timer."""
        (before,) = self.count.get() or (0,)
        self.count.update((before + sum(len(each) for each in rows),))
        self.handle.registerTimer(int(key[1]) + 60_000)
        return iter(())

    def handleExpiredTimer(  # noqa: N802
        self,
        key: Any,
        timerValues: Any,  # noqa: N803
        expiredTimerInfo: Any,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        """Answer the count and forget it."""
        (n,) = self.count.get() or (0,)
        yield pd.DataFrame({"userId": [key[0]], "minute_ms": [key[1]], "n": [n]})
        self.count.clear()

    def close(self) -> None:
        """Do nothing."""


def minute_counts(events: DataFrame) -> DataFrame:
    """Count rows with state and timers of its own ("transformWithState").

    A timestamp comes to Python as a time of day in the zone of the session, which is no moment.
    """
    return (
        events.withWatermark("timestamp", "10 seconds")
        .withColumn("minute_ms", F.unix_millis(F.date_trunc("minute", "timestamp")))
        .groupBy("userId", "minute_ms")
        .transformWithStateInPandas(
            MinuteCounter(),
            "userId string, minute_ms long, n long",
            "append",
            "EventTime",
        )
    )


EVENTS = "userId string, timestamp timestamp"
GUIDS = "guid int, eventTime timestamp"
ADS = {
    "impressions": "impressionAdId int, impressionTime timestamp",
    "clicks": "clickAdId int, clickTime timestamp",
}
AD_TIMES = {"impressions": "impressionTime", "clicks": "clickTime"}
GUIDE = (
    Entry(session_counts_by_user, HOLDS, "a gap of each user", EVENTS, "timestamp"),
    Entry(left_semi_join, HOLDS, "a range of time", ADS, AD_TIMES),
    Entry(distinct_events_within_watermark, HOLDS, "within the delay", GUIDS, "eventTime"),
    Entry(minute_counts, HOLDS, "the timer removes its state", EVENTS, "timestamp"),
)
