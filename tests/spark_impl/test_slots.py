"""Slots against Spark's own hash."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

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
