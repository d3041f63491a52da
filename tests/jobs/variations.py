"""Right jobs in many forms: other modes, delays, keys, types of time, joins and chains."""

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (Spark's own habit)

from tests.jobs.gallery import ORDER_TIMES, ORDERS, Entry

RANGE = "id = paid_id AND paid_at BETWEEN ordered_at AND ordered_at + INTERVAL 1 HOUR"


def windows(
    *lengths: str, delay: str = "10 seconds", by: str = "device", what: str = "sum(watts)"
) -> Callable[[DataFrame], DataFrame]:
    """Return a job with an aggregate of windows."""

    def job(readings: DataFrame) -> DataFrame:
        rows = readings.withWatermark("at", delay)
        return rows.groupBy(by, F.window("at", *lengths)).agg(F.expr(what).alias("value"))

    return job


def join(
    how: str, orders: str = "2 minutes", payments: str = "3 minutes"
) -> Callable[..., DataFrame]:
    """Return a job that joins two inputs."""

    def job(**inputs: DataFrame) -> DataFrame:
        left = inputs["orders"].withWatermark("ordered_at", orders)
        right = inputs["payments"].withWatermark("paid_at", payments)
        return left.join(right, F.expr(RANGE), how)

    return job


def full_join(orders: DataFrame, payments: DataFrame) -> DataFrame:
    """Join in full what has a key: as streams, Spark 4.3 pairs a null key with a null key."""
    known, paid = orders.where("id IS NOT NULL"), payments.where("paid_id IS NOT NULL")
    return join("fullOuter")(orders=known, payments=paid)


def equal_windows(orders: DataFrame, payments: DataFrame) -> DataFrame:
    """Join counts of equal windows."""
    left = orders.withWatermark("ordered_at", "2 minutes").groupBy(
        F.window("ordered_at", "1 minute")
    )
    right = payments.withWatermark("paid_at", "2 minutes").groupBy(F.window("paid_at", "1 minute"))
    return left.agg(F.count("*").alias("orders")).join(
        right.agg(F.count("*").alias("payments")), "window"
    )


def both(orders: DataFrame, payments: DataFrame) -> DataFrame:
    """Count the rows of two inputs together."""
    events = orders.selectExpr("id", "ordered_at AS at").union(payments)
    return events.withWatermark("at", "1 minute").groupBy("id", F.window("at", "1 minute")).count()


def counted_join(orders: DataFrame, payments: DataFrame) -> DataFrame:
    """Count the pairs of a join in windows."""
    pairs = join("inner")(orders=orders, payments=payments)
    return pairs.groupBy(F.window("ordered_at", "1 hour")).count()


def distinct_then_counted(readings: DataFrame) -> DataFrame:
    """Drop duplicates, and count what is left in windows."""
    rows = readings.withWatermark("at", "10 seconds").dropDuplicates(["device", "at"])
    return rows.groupBy(F.window("at", "1 minute")).count()


def high_minutes(readings: DataFrame) -> DataFrame:
    """Keep the windows with a high sum."""
    return windows("1 minute")(readings).where("value > 10")


def filtered_minutes(readings: DataFrame) -> DataFrame:
    """Sum high readings alone."""
    return windows("1 minute")(readings.where("watts > 5"))


PAIR: Any = {"schema": ORDERS, "event_time": ORDER_TIMES}
VARIATIONS = {
    "sliding windows": Entry(windows("1 minute", "20 seconds")),
    "shifted windows": Entry(windows("1 minute", "1 minute", "15 seconds")),
    "long windows": Entry(windows("1 hour")),
    "keys with NaN": Entry(windows("1 minute", by="watts")),
    "greatest value": Entry(windows("1 minute", what="max(watts)")),
    "average": Entry(windows("1 minute", what="avg(watts)")),
    "estimate": Entry(windows("1 minute", by="watts", what="approx_count_distinct(device)")),
    "sorted list": Entry(windows("1 minute", what="sort_array(collect_list(watts))")),
    "right join": Entry(join("rightOuter"), **PAIR),
    "full join": Entry(full_join, **PAIR),
    "join without delay": Entry(join("leftOuter", "0 seconds", "0 seconds"), **PAIR),
    "join of windows": Entry(equal_windows, **PAIR),
    "union": Entry(both, **PAIR),
    "join, then windows": Entry(counted_join, **PAIR),
    "duplicates, then windows": Entry(distinct_then_counted),
    "filter after": Entry(high_minutes),
    "filter before": Entry(filtered_minutes),
}
"""Right jobs by name; none of them may ever be called broken."""
