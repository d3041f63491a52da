"""A skewed join under AQE: a partition is split between what map tasks have written."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "20KB",
    "spark.sql.adaptive.skewJoin.skewedPartitionFactor": "2",
    "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes": "20KB",
}
spark = SparkSession.builder.master("local[1]").config(map=SETTINGS).getOrCreate()
ROWS = 100_000


def fullest(map_tasks):
    """Return the number of tasks of the join, and the rows of the fullest one."""
    # Every second row has the key 0, the others have 1,000 keys.
    key = fn.when(fn.col("id") % 2 == 0, 0).otherwise(1 + fn.col("id") % 1000)
    rows = spark.range(0, ROWS, 1, map_tasks).select(key.alias("key"), "id")
    joined = rows.join(spark.range(1001).withColumnRenamed("id", "key"), "key")
    tasks = joined.groupBy(fn.spark_partition_id()).count().collect()
    return len(tasks), max(row["count"] for row in tasks)


found = {}
for map_tasks in (2, 16):
    tasks, found[map_tasks] = fullest(map_tasks)
    print(f"{map_tasks} map tasks: {tasks} tasks join, the fullest {found[map_tasks]:,} rows")
print(f"expected: about as many rows both times; half of the {ROWS:,} rows have one key")
spark.stop()
sys.exit(0 if found[2] > 1.5 * found[16] and found[16] < ROWS / 4 else 1)
