"""Jobs that people write: half of them right, half with a mistake known from public reports.

Each job is a function from streaming DataFrames to a DataFrame. The docstring of a wrong one names
the report, and ``docs/job-gallery.md`` shows all of them.
"""

from collections.abc import Callable, Iterator
from typing import TypeAlias

import pandas as pd
from pyspark.sql import DataFrame, Row, Window
from pyspark.sql import functions as F  # noqa: N812 (Spark's own habit)
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

Sink: TypeAlias = tuple[Callable[[DataFrame, int], None], Callable[[], list[Row]]]


# ----------------------------------------------------------------------------------------- windows


def minutes(readings: DataFrame) -> DataFrame:
    """Sum the watts of each device and minute."""
    return (
        readings.withWatermark("at", "10 seconds")
        .groupBy("device", F.window("at", "1 minute"))
        .agg(F.sum("watts").alias("watts"))
    )


def impatient_minutes(readings: DataFrame) -> DataFrame:
    """Sum watts, but wait one second where ten were agreed.

    Spark's guide, "Semantic Guarantees of Aggregation with Watermarking": only data within the
    delay is guaranteed to be aggregated.
    """
    return (
        readings.withWatermark("at", "1 second")
        .groupBy("device", F.window("at", "1 minute"))
        .agg(F.sum("watts").alias("watts"))
    )


def hours_of_minutes(readings: DataFrame) -> DataFrame:
    """Take the highest minute of each hour, from two windows in a row."""
    minute = minutes(readings)
    return minute.groupBy("device", F.window(F.window_time("window"), "1 hour")).agg(
        F.max("watts").alias("watts")
    )


def minutes_with_a_late_watermark(readings: DataFrame) -> DataFrame:
    """Sum watts, with the watermark after the aggregation.

    Spark's guide, "Conditions for watermarking to clean aggregation state": withWatermark must be
    called before the aggregation. In update mode the query starts, and its state only grows.
    """
    return (
        readings.groupBy("device", F.window("at", "1 minute"))
        .agg(F.sum("watts").alias("watts"), F.max("at").alias("latest"))
        .withWatermark("latest", "10 seconds")
    )


def minutes_of_another_column(readings: DataFrame) -> DataFrame:
    """Sum watts by the time of sending, with the watermark on the time of measuring.

    Spark's guide, same section: withWatermark must be called on the column of the window.
    """
    return (
        readings.withWatermark("at", "10 seconds")
        .groupBy("device", F.window("sent", "1 minute"))
        .agg(F.sum("watts").alias("watts"))
    )


def minutes_of_processing(readings: DataFrame) -> DataFrame:
    """Count readings by the minute in which Spark sees them.

    apache/spark, docs/streaming: event time is in the data, processing time is when Spark reads it.
    A day that is read again from Kafka is one minute.
    """
    return (
        readings.withColumn("seen", F.current_timestamp())
        .withWatermark("seen", "10 seconds")
        .groupBy("device", F.window("seen", "1 minute"))
        .count()
    )


def minutes_of_local_time(readings: DataFrame) -> DataFrame:
    """Count readings by the time that clocks in Berlin show.

    datalackey.com, "Time Travails With Java, Scala and Apache Spark" (2019): when clocks go back,
    local time does as well. What comes after the change seems to be an hour late and is dropped.
    """
    return (
        readings.withColumn("local", F.from_utc_timestamp("at", "Europe/Berlin"))
        .withWatermark("local", "10 seconds")
        .groupBy("device", F.window("local", "1 minute"))
        .count()
    )


def days_of_local_time(readings: DataFrame) -> DataFrame:
    """Count readings by minute, and show these minutes as clocks in Berlin do."""
    counted = (
        readings.withWatermark("at", "10 seconds").groupBy("device", F.window("at", "1 minute"))
    ).count()
    return counted.withColumn("local", F.from_utc_timestamp("window.start", "Europe/Berlin"))


def opening_watts(readings: DataFrame) -> DataFrame:
    """Take the first value of each minute, in order of arrival.

    pyspark-antipattern, rule S015: first() in an aggregation has no order after a shuffle.
    """
    return (
        readings.withWatermark("at", "10 seconds")
        .groupBy("device", F.window("at", "1 minute"))
        .agg(F.first("watts").alias("watts"))
    )


def earliest_watts(readings: DataFrame) -> DataFrame:
    """Take the first value of each minute, in order of event time and then of value."""
    return (
        readings.withWatermark("at", "10 seconds")
        .groupBy("device", F.window("at", "1 minute"))
        .agg(F.min(F.struct("at", "watts")).alias("earliest"))
        .select("device", "window", "earliest.watts")
    )


def visits(clicks: DataFrame) -> DataFrame:
    """Count the clicks of each visit, which ends after five minutes without any."""
    return (
        clicks.withWatermark("at", "10 minutes")
        .groupBy("user", F.session_window("at", "5 minutes"))
        .count()
    )


# -------------------------------------------------------------------------------------- duplicates


def deduplicated(payments: DataFrame) -> DataFrame:
    """Drop payments that come twice, by identifier and event time."""
    return payments.withWatermark("at", "1 minute").dropDuplicates(["id", "at"])


def endlessly_deduplicated(payments: DataFrame) -> DataFrame:
    """Drop payments that come twice, and remember each of them forever.

    Databricks, "Deep dive: streaming deduplication" (2025): with a watermark whose column is not
    among the keys, dropDuplicates keeps a global state that only grows.
    """
    return payments.withWatermark("at", "1 minute").dropDuplicates(["id"])


def deduplicated_in_a_batch(payments: DataFrame) -> DataFrame:
    """Drop payments that come twice in a micro-batch, with the function that worked on files.

    Spark's guide, "Streaming Deduplication": a stream needs state to remember earlier records.
    """

    def drop(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for frame in frames:
            yield frame.drop_duplicates(["id"])

    return payments.repartition(1).mapInPandas(drop, payments.schema)


# ------------------------------------------------------------------------------------------- joins


def paid_orders(orders: DataFrame, payments: DataFrame) -> DataFrame:
    """Join each order with its payments within the next hour."""
    return orders.withWatermark("ordered_at", "2 minutes").join(
        payments.withWatermark("paid_at", "3 minutes"),
        F.expr("id = paid_id AND paid_at BETWEEN ordered_at AND ordered_at + INTERVAL 1 HOUR"),
    )


def all_orders(orders: DataFrame, payments: DataFrame) -> DataFrame:
    """Join each order with its payments within the next hour, if there are any."""
    return orders.withWatermark("ordered_at", "2 minutes").join(
        payments.withWatermark("paid_at", "3 minutes"),
        F.expr("id = paid_id AND paid_at BETWEEN ordered_at AND ordered_at + INTERVAL 1 HOUR"),
        "leftOuter",
    )


def endless_orders(orders: DataFrame, payments: DataFrame) -> DataFrame:
    """Join orders with payments, one side without a watermark.

    datalackey.com, "Spark Structured Streaming joins with no watermarks can blow out your memory"
    (2019): both sides are kept forever.
    """
    return orders.withWatermark("ordered_at", "2 minutes").join(
        payments,
        F.expr("id = paid_id AND paid_at BETWEEN ordered_at AND ordered_at + INTERVAL 1 HOUR"),
    )


def impatient_orders(orders: DataFrame, payments: DataFrame) -> DataFrame:
    """Join orders with payments, which may be three minutes late and get a second.

    Spark's guide, "Outer Joins with Watermarking": the delay decides when a row is dropped, and
    when one without a match is reported. Both are too early.
    """
    return orders.withWatermark("ordered_at", "1 second").join(
        payments.withWatermark("paid_at", "1 second"),
        F.expr("id = paid_id AND paid_at BETWEEN ordered_at AND ordered_at + INTERVAL 1 HOUR"),
        "leftOuter",
    )


def orders_and_payments(orders: DataFrame, payments: DataFrame) -> DataFrame:
    """Join orders with payments, and keep what has no partner on either side.

    As tables, a null key has no partner. As streams, Spark 4.3 pairs it with another null key.
    """
    return orders.withWatermark("ordered_at", "2 minutes").join(
        payments.withWatermark("paid_at", "3 minutes"),
        F.expr("id = paid_id AND paid_at BETWEEN ordered_at AND ordered_at + INTERVAL 1 HOUR"),
        "fullOuter",
    )


# --------------------------------------------------------------------------- rows one by one, sinks


def high_watts(readings: DataFrame) -> DataFrame:
    """Keep readings above five watts."""
    return readings.where("watts > 5").withColumn("kilowatts", F.col("watts") / 1000)


def by_batch() -> Sink:
    """Write each micro-batch under its number, so that a replay replaces it."""
    table: dict[int, list[Row]] = {}

    def write(frame: DataFrame, batch: int) -> None:
        table[batch] = frame.collect()

    def read() -> list[Row]:
        return [row for rows in table.values() for row in rows]

    return write, read


def appended() -> Sink:
    """Append each micro-batch, and append it again on a replay.

    Spark's guide, "ForeachBatch": writes are at least once. apache/paimon#9666 and
    delta-io/delta#1141: a batch is replayed if the query fails before Spark notes its end.
    """
    table: list[Row] = []

    def write(frame: DataFrame, batch: int) -> None:
        table.extend(frame.collect())

    return write, lambda: table


def upserted() -> Sink:
    """Replace the answer of a device and minute by a later one."""
    table: dict[object, Row] = {}

    def write(frame: DataFrame, batch: int) -> None:
        table.update({(row.device, row.window): row for row in frame.collect()})

    return write, lambda: list(table.values())


def appended_updates() -> Sink:
    """Append answers of update mode, by number of micro-batch.

    Spark's guide, "Output Modes": update mode writes rows that changed since the last trigger, so
    a table to which they are appended has several rows of one window.
    """
    return by_batch()


def latest(readings: DataFrame) -> DataFrame:
    """Return the latest reading of each device."""
    newest = Window.partitionBy("device").orderBy(F.desc("at"), F.desc("watts"))
    ranked = readings.withColumn("rank", F.row_number().over(newest))
    return ranked.where("rank = 1").drop("rank")


def latest_of_each_batch() -> Sink:
    """Store the latest reading of each device in a micro-batch over the one before.

    Spark refuses row_number() in a stream, so that it is put here, where it sees one micro-batch.
    apache/spark#57149: what comes late reverts what is newer, unless the two are compared.
    """
    table: dict[object, Row] = {}

    def write(frame: DataFrame, batch: int) -> None:
        table.update({row.device: row for row in latest(frame).collect()})

    return write, lambda: list(table.values())


def latest_of_all() -> Sink:
    """Store the latest reading of each device in a micro-batch, unless a later one is stored."""
    table: dict[object, Row] = {}

    def write(frame: DataFrame, batch: int) -> None:
        for row in latest(frame).collect():
            stored = table.get(row.device, row)
            if (row["at"], row.watts) >= (stored["at"], stored.watts):
                table[row.device] = row

    return write, lambda: list(table.values())


# ----------------------------------------------------------------------------- totals, Python state


def totals(readings: DataFrame) -> DataFrame:
    """Count the readings of each device, all of them in each answer."""
    return readings.groupBy("device").count()


def new_devices(readings: DataFrame) -> DataFrame:
    """Report each device when it is seen for the first time; its state stays on purpose."""

    def report(
        key: tuple[str], frames: Iterator[pd.DataFrame], state: GroupState
    ) -> Iterator[pd.DataFrame]:
        for _ in frames:
            pass
        if not state.exists:
            state.update((True,))
            yield pd.DataFrame({"device": [key[0]]})

    return readings.groupBy("device").applyInPandasWithState(
        report, "device string", "seen boolean", "append", GroupStateTimeout.NoTimeout
    )


def jumps(readings: DataFrame) -> DataFrame:
    """Report how far each reading is from the one that arrived before it.

    Spark's guide, "Arbitrary Stateful Operations": rows of a group have no order. A reading that
    overtakes another one changes two answers.
    """

    def compare(
        key: tuple[str], frames: Iterator[pd.DataFrame], state: GroupState
    ) -> Iterator[pd.DataFrame]:
        before = state.get[0] if state.exists else 0.0
        for frame in frames:
            for watts in frame["watts"].fillna(0.0):
                yield pd.DataFrame({"device": [key[0]], "jump": [watts - before]})
                before = watts
        state.update((before,))

    return readings.groupBy("device").applyInPandasWithState(
        compare, "device string, jump double", "last double", "append", GroupStateTimeout.NoTimeout
    )


def minutes_without_a_timeout(readings: DataFrame) -> DataFrame:
    """Report each minute in which a device is seen, and keep a state for it forever.

    Spark's guide, "Arbitrary Stateful Operations": without a timeout, state of a key stays until
    the function removes it.
    """

    def report(
        key: tuple[str, object], frames: Iterator[pd.DataFrame], state: GroupState
    ) -> Iterator[pd.DataFrame]:
        for _ in frames:
            pass
        if not state.exists:
            state.update((True,))
            yield pd.DataFrame({"device": [key[0]], "minute": [key[1]]})

    return (
        readings.withWatermark("at", "10 seconds")
        .withColumn("minute", F.date_trunc("minute", "at"))
        .groupBy("device", "minute")
        .applyInPandasWithState(
            report,
            "device string, minute timestamp",
            "seen boolean",
            "append",
            GroupStateTimeout.NoTimeout,
        )
    )
