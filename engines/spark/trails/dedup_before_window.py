"""Without redeliveries in the stream, dropDuplicates drops a row whose window is still open."""

import json
import os
import sys
import tempfile

from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.log.level", "OFF")
    .config("spark.sql.shuffle.partitions", "1")
    .getOrCreate()
)


def counted(deduplicate):
    """Return the last count of the window [0 s, 60 s), for rows at 10, 50, 51 and 20 s."""
    folder = tempfile.mkdtemp()
    for number, second in enumerate((10, 50, 51, 20)):
        path = f"{folder}/{number}.json"
        with open(path, "w") as file:
            file.write(json.dumps({"id": number, "ts": f"2026-01-01T00:00:{second}.000Z"}))
        os.utime(path, (1_000_000 + number, 1_000_000 + number))
    rows = spark.readStream.schema("id long, ts timestamp").option("maxFilesPerTrigger", 1)
    rows = rows.json(folder).withWatermark("ts", "1 second")
    rows = rows.dropDuplicatesWithinWatermark(["id"]) if deduplicate else rows
    windows, found = rows.groupBy(fn.window("ts", "1 minute")).count(), []
    writer = windows.writeStream.outputMode("update")
    query = writer.foreachBatch(lambda batch, _: found.extend(batch.collect()))
    query.trigger(availableNow=True).start().awaitTermination()
    return found[-1]["count"]


came = (counted(False), counted(True))
print(f"expected: 4 rows, with and without deduplication; came: {came[0]} without, {came[1]} with")
sys.exit(0 if came == (4, 3) else 1)
