"""A watermark without delay: of rows with equal times, those of later batches are dropped."""

import json
import os
import sys
import tempfile

from pyspark.sql import SparkSession

spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.log.level", "OFF")
    .config("spark.sql.shuffle.partitions", "1")
    .getOrCreate()
)


def identities(delay):
    """Return the identities that come through dropDuplicates, of rows with one event time."""
    folder = tempfile.mkdtemp()
    for number in range(3):
        path = f"{folder}/{number}.json"
        with open(path, "w") as file:
            file.write(json.dumps({"id": number, "ts": "2026-01-01T00:00:10.000Z"}))
        os.utime(path, (1_000_000 + number, 1_000_000 + number))
    rows = spark.readStream.schema("id long, ts timestamp").option("maxFilesPerTrigger", 1)
    once = rows.json(folder).withWatermark("ts", delay).dropDuplicates(["id", "ts"])
    found = []
    query = once.writeStream.foreachBatch(lambda batch, _: found.extend(batch.collect()))
    query.trigger(availableNow=True).start().awaitTermination()
    return sorted(row.id for row in found)


print("expected, because no row is behind another: [0, 1, 2]")
came = identities("0 seconds")
print(f"came with a delay of 0 seconds:             {came}")
print(f"came with a delay of 1 millisecond:         {identities('1 millisecond')}")
spark.stop()
sys.exit(0 if came != [0, 1, 2] else 1)
