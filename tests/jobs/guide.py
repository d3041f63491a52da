"""Examples of Spark's Structured Streaming programming guide, all of them right.

Each docstring names the section of the guide that has the example.
"""

from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (Spark's own habit)
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from tests.jobs.gallery import HOLDS, Entry


def word_counts(words: DataFrame) -> DataFrame:
    """Count words ("Quick Example")."""
    return words.groupBy("word").count()


def window_counts(words: DataFrame) -> DataFrame:
    """Count words in sliding windows ("Handling Late Data and Watermarking")."""
    return (
        words.withWatermark("timestamp", "10 minutes")
        .groupBy(F.window("timestamp", "10 minutes", "5 minutes"), "word")
        .count()
    )


def session_counts(events: DataFrame) -> DataFrame:
    """Count events of sessions ("Types of time windows")."""
    return (
        events.withWatermark("timestamp", "10 minutes")
        .groupBy(F.session_window("timestamp", "5 minutes"), "userId")
        .count()
    )


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


def windows_of_windows(words: DataFrame) -> DataFrame:
    """Count windows in larger ones ("Representation of the time for time window")."""
    counted = window_counts(words)
    return counted.groupBy(F.window(F.window_time("window"), "1 hour"), "word").count()


def windows_of_window_columns(words: DataFrame) -> DataFrame:
    """Count windows in larger ones, by their column ("Representation of the time ...")."""
    counted = window_counts(words)
    return counted.groupBy(F.window("window", "1 hour"), "word").count()


RANGE = """
    clickAdId = impressionAdId AND
    clickTime >= impressionTime AND
    clickTime <= impressionTime + interval 1 hour
"""


def inner_join(impressions: DataFrame, clicks: DataFrame) -> DataFrame:
    """Join impressions with clicks ("Inner Joins with optional Watermarking")."""
    return impressions.withWatermark("impressionTime", "2 hours").join(
        clicks.withWatermark("clickTime", "3 hours"), F.expr(RANGE)
    )


def left_outer_join(impressions: DataFrame, clicks: DataFrame) -> DataFrame:
    """Join impressions with clicks, if there are any ("Outer Joins with Watermarking")."""
    return impressions.withWatermark("impressionTime", "2 hours").join(
        clicks.withWatermark("clickTime", "3 hours"), F.expr(RANGE), "leftOuter"
    )


def left_semi_join(impressions: DataFrame, clicks: DataFrame) -> DataFrame:
    """Keep impressions that led to clicks ("Semi Joins with Watermarking")."""
    return impressions.withWatermark("impressionTime", "2 hours").join(
        clicks.withWatermark("clickTime", "3 hours"), F.expr(RANGE), "leftSemi"
    )


def static_join(words: DataFrame) -> DataFrame:
    """Join a stream with a table that does not change ("Stream-static Joins")."""
    kinds = words.sparkSession.createDataFrame([("a", 1), ("b", 2)], "word string, kind int")
    return words.join(kinds, "word", "left_outer")


def distinct_events(events: DataFrame) -> DataFrame:
    """Drop copies by identifier and event time ("Streaming Deduplication")."""
    return events.withWatermark("eventTime", "10 seconds").dropDuplicates(["guid", "eventTime"])


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
        self.handle.registerTimer(int(key[1].timestamp() * 1000) + 60_000)
        return iter(())

    def handleExpiredTimer(  # noqa: N802
        self,
        key: Any,
        timerValues: Any,  # noqa: N803
        expiredTimerInfo: Any,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        """Answer the count and forget it."""
        (n,) = self.count.get() or (0,)
        yield pd.DataFrame({"userId": [key[0]], "minute": [key[1]], "n": [n]})
        self.count.clear()

    def close(self) -> None:
        """Do nothing."""


def minute_counts(events: DataFrame) -> DataFrame:
    """Count rows with state and timers of its own ("transformWithState")."""
    return (
        events.withWatermark("timestamp", "10 seconds")
        .withColumn("minute", F.date_trunc("minute", "timestamp"))
        .groupBy("userId", "minute")
        .transformWithStateInPandas(
            MinuteCounter(),
            "userId string, minute timestamp, n long",
            "append",
            "EventTime",
        )
    )


WORDS = "word string, timestamp timestamp"
EVENTS = "userId string, timestamp timestamp"
GUIDS = "guid int, eventTime timestamp"
ADS = {
    "impressions": "impressionAdId int, impressionTime timestamp",
    "clicks": "clickAdId int, clickTime timestamp",
}
AD_TIMES = {"impressions": "impressionTime", "clicks": "clickTime"}
GUIDE = (
    Entry(word_counts, HOLDS, "complete mode", WORDS, "timestamp", "complete"),
    Entry(window_counts, HOLDS, "append mode", WORDS, "timestamp"),
    Entry(window_counts, HOLDS, "update mode", WORDS, "timestamp", "update"),
    Entry(session_counts, HOLDS, "a gap", EVENTS, "timestamp"),
    Entry(session_counts_by_user, HOLDS, "a gap of each user", EVENTS, "timestamp"),
    Entry(windows_of_windows, HOLDS, "two windows", WORDS, "timestamp"),
    Entry(windows_of_window_columns, HOLDS, "two windows", WORDS, "timestamp"),
    Entry(inner_join, HOLDS, "a range of time", ADS, AD_TIMES),
    Entry(left_outer_join, HOLDS, "a range of time", ADS, AD_TIMES),
    Entry(left_semi_join, HOLDS, "a range of time", ADS, AD_TIMES),
    Entry(static_join, HOLDS, "no state", WORDS, "timestamp"),
    Entry(distinct_events, HOLDS, "the event time is a key", GUIDS, "eventTime"),
    Entry(distinct_events_within_watermark, HOLDS, "within the delay", GUIDS, "eventTime"),
    Entry(minute_counts, HOLDS, "the timer removes its state", EVENTS, "timestamp"),
)
