"""Right jobs in many forms: other modes, delays, keys, types of time, joins and chains."""

from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (Spark's own habit)

from tests.jobs.gallery import HOLDS, ORDER_TIMES, ORDERS, Entry

RANGE = "id = paid_id AND paid_at BETWEEN ordered_at AND ordered_at + INTERVAL 1 HOUR"


def windows(
    delay: str, *lengths: str, by: str = "device", what: str = "sum(watts)"
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
    return windows("10 seconds", "1 minute")(readings).where("value > 10")


def filtered_minutes(readings: DataFrame) -> DataFrame:
    """Sum high readings alone."""
    return windows("10 seconds", "1 minute")(readings.where("watts > 5"))


def zoned_minutes(readings: DataFrame) -> DataFrame:
    """Sum readings whose times have no zone, and get that of the session."""
    rows = readings.withColumn("at", F.col("at").cast("timestamp"))
    return windows("10 seconds", "1 minute")(rows)


TIMELESS = "device string, at timestamp_ntz, watts double"
VARIATIONS = {
    "no delay": Entry(windows("0 seconds", "1 minute"), HOLDS, ""),
    "a delay of a day": Entry(windows("1 day", "1 minute"), HOLDS, ""),
    "sliding windows": Entry(windows("10 seconds", "1 minute", "20 seconds"), HOLDS, ""),
    "shifted windows": Entry(
        windows("10 seconds", "1 minute", "1 minute", "15 seconds"), HOLDS, ""
    ),
    "long windows": Entry(windows("10 seconds", "1 hour"), HOLDS, ""),
    "update mode": Entry(windows("10 seconds", "1 minute"), HOLDS, "", mode="update"),
    "complete mode": Entry(windows("10 seconds", "1 minute"), HOLDS, "", mode="complete"),
    "keys with NaN": Entry(windows("10 seconds", "1 minute", by="watts"), HOLDS, ""),
    "greatest value": Entry(windows("10 seconds", "1 minute", what="max(watts)"), HOLDS, ""),
    "average": Entry(windows("10 seconds", "1 minute", what="avg(watts)"), HOLDS, ""),
    "estimate": Entry(
        windows("10 seconds", "1 minute", by="watts", what="approx_count_distinct(device)"),
        HOLDS,
        "",
    ),
    "sorted list": Entry(
        windows("10 seconds", "1 minute", what="sort_array(collect_list(watts))"), HOLDS, ""
    ),
    "time without a zone": Entry(zoned_minutes, HOLDS, "", schema=TIMELESS),
    "right join": Entry(join("rightOuter"), HOLDS, "", ORDERS, ORDER_TIMES),
    "full join": Entry(join("fullOuter"), HOLDS, "", ORDERS, ORDER_TIMES),
    "join without delay": Entry(
        join("leftOuter", "0 seconds", "0 seconds"), HOLDS, "", ORDERS, ORDER_TIMES
    ),
    "join of windows": Entry(equal_windows, HOLDS, "", ORDERS, ORDER_TIMES),
    "union": Entry(both, HOLDS, "", ORDERS, ORDER_TIMES),
    "join, then windows": Entry(counted_join, HOLDS, "", ORDERS, ORDER_TIMES),
    "duplicates, then windows": Entry(distinct_then_counted, HOLDS, ""),
    "filter after": Entry(high_minutes, HOLDS, ""),
    "filter before": Entry(filtered_minutes, HOLDS, ""),
}
"""Right jobs by name; none of them may ever be called broken."""
