"""Speed of a landing and of Spark's own Parquet sink: the same source, side by side.

The source makes 500,000 rows a micro-batch (time, key, value), in as many partitions as the figure
says. ``landing`` checks the rows, puts them in the order of arrival, numbers them and writes one
file. ``sink`` writes the same columns without any order or numbers, a file for each partition, with
Spark's defaults. There are four task slots. Rates are the median over the micro-batches without the
first of each run, in rows a second; contestants take turns, and the first round warms up.
"""

import tempfile
from pathlib import Path
from statistics import median

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)
from pyspark.sql.streaming.query import StreamingQuery

from spark_impl.runtime.landing import Landing
from spark_impl.runtime.session import session

ROWS = 500_000
PARTITIONS = (1, 2, 4)
KEYS = 16
BATCHES = 4
ROUNDS = 3
"""Number of rounds; the first one warms up."""


def measure() -> dict[str, float]:
    """Return all figures; rates are in rows a second."""
    contestants = {"landing": land, "sink": write_plainly}
    rates: dict[str, list[float]] = {}
    with session("local[4]", long_running=True) as spark:
        for number in range(ROUNDS):
            for partitions in PARTITIONS:
                for name, start in contestants.items():
                    # A stopped query may write until the end of its micro-batch.
                    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                        found = batch_rates(start(source(spark, partitions), Path(folder)))
                    if number:
                        rates.setdefault(f"{name}, {_label(partitions)}", []).extend(found)
    rate = {name: median(each) for name, each in rates.items()}
    figures = {f"{name}: rows/s": each for name, each in rate.items()}
    for n in PARTITIONS:
        ratio = rate[f"landing, {_label(n)}"] / rate[f"sink, {_label(n)}"]
        figures[f"landing / sink, {_label(n)}"] = ratio
    return figures


def _label(partitions: int) -> str:
    return f"{partitions} partition" + "s" * (partitions > 1)


def source(spark: SparkSession, partitions: int) -> DataFrame:
    """Return an endless stream with this number of partitions."""
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS)
    key = F.concat(F.lit("key-"), (F.col("value") % KEYS).cast("string"))
    return rows.option("numPartitions", partitions).load().withColumn("key", key)


def land(rows: DataFrame, folder: Path) -> StreamingQuery:
    """Start a landing."""
    columns = {"event_time": "timestamp", "value": "value", "key": "key"}
    return Landing(rows, folder / "history", folder / "checkpoint", **columns).start()


def write_plainly(rows: DataFrame, folder: Path) -> StreamingQuery:
    """Start Spark's own sink."""
    columns = F.unix_micros("timestamp").alias("event_time_us"), F.col("value").cast("double")
    out = rows.select(*columns, "key").writeStream.format("parquet")
    place = {"path": f"{folder}/rows", "checkpointLocation": f"{folder}/checkpoint"}
    return out.options(**place).start()


def batch_rates(query: StreamingQuery) -> list[float]:
    """Return rows/s of ``BATCHES`` micro-batches without the first, and stop the query."""
    try:
        while len(done := [each for each in query.recentProgress if each.numInputRows]) < BATCHES:
            assert not query.awaitTermination(1), "the query has ended"
    finally:
        query.stop()
    return [1000 * each.numInputRows / each.durationMs["triggerExecution"] for each in done[1:]]
