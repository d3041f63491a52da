"""repartition by key: the fullest partition grows with the stream."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.log.level", "OFF")
    .getOrCreate()
)
N = 4
above = []
for rows in (1_000, 10_000, 100_000):
    # Every third row has the key 0, the others have 1,000 keys.
    key = fn.when(fn.col("id") % 3 == 0, 0).otherwise(1 + fn.col("id") % 1000)
    placed = spark.range(rows).select(key.alias("key")).repartition(N, "key")
    sizes = placed.groupBy(fn.spark_partition_id()).count().collect()
    above.append(max(row["count"] for row in sizes) - rows // N)
    print(f"{rows:,} rows in {N} partitions: the fullest has {above[-1]:,} more than a fluid")
print("expected, if imbalance stays O(1): about the same number each time")
spark.stop()
sys.exit(0 if above[2] > 50 * above[0] > 0 else 1)
