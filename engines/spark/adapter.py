"""Spark's own operators as a system on trial: every micro-batch is a file that a stream reads."""

import atexit
import json
import os
import shutil
import sys
import tempfile
from itertools import pairwise

from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

SCHEMA = "seq long, id long, key string, at long, value double, arrival long, stream string"
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.log.level": "OFF",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",  # queries are short
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
}
AGGREGATES = {
    "sum": "sum(value)",
    "count": "cast(count(*) as double)",
    "avg": "avg(value)",
    "min": "min(value)",
    "max": "max(value)",
    "median": "percentile_disc(0.5) within group (order by value)",
    "quantile": "percentile_disc({q}) within group (order by value)",
}
SPARK = SparkSession.builder.master("local[2]").config(map=SETTINGS).getOrCreate()
HOME = tempfile.mkdtemp(prefix="adapter-")
atexit.register(shutil.rmtree, HOME, True)


def batches(workload):
    """Return the arrivals of every micro-batch."""
    cuts = [0, *workload["cuts"], len(workload["arrivals"])]
    return [workload["arrivals"][a:b] for a, b in pairwise(cuts)]


def stream(folder, workload):
    """Return a stream that reads a file for each micro-batch, with a column of event times."""
    names = [column.split()[0] for column in SCHEMA.split(", ")]
    os.makedirs(f"{folder}/in")
    for number, rows in enumerate(filter(None, batches(workload))):
        path = f"{folder}/in/{number:05}.json"
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows)
        os.utime(path, (1_000_000_000 + number, 1_000_000_000 + number))  # the order of reading
    read = SPARK.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(f"{folder}/in")
    return read.withColumn("ts", fn.timestamp_micros("at"))


def run_query(folder, frame, mode):
    """Run a stream to its end, and return the rows of every micro-batch."""
    found = []
    writer = frame.writeStream.outputMode(mode).option("checkpointLocation", f"{folder}/state")
    collect = writer.foreachBatch(lambda rows, _: found.extend(rows.collect()))
    collect.trigger(availableNow=True).start().awaitTermination()
    return found


def interval(us):
    return f"{us} microseconds"


def windows(folder, workload):
    """Yield the last answer of each window, as the update mode writes it."""
    config = workload["config"]
    if config["tasks"] != 1 or config["control"] != "fixed":
        sys.exit("adapter of Spark: it has one task and a fixed lateness")
    if config["aggregate"] not in AGGREGATES:
        sys.exit(f"aggregate {config['aggregate']!r} is none of {', '.join(AGGREGATES)}")
    aggregate = AGGREGATES[config["aggregate"]].format(q=config["q"])
    seen = stream(folder, workload).withWatermark("ts", interval(config["fixed_slack_us"]))
    identities = [row[1] for row in workload["arrivals"]]
    if len(set(identities)) < len(identities):
        seen = seen.dropDuplicatesWithinWatermark(["id"])
    window = fn.window("ts", interval(config["size_us"]), interval(config["slide_us"]))
    keys = [window.alias("w"), (fn.col("key") if config["keyed"] else fn.lit("")).alias("k")]
    answers = seen.groupBy(*keys).agg(fn.expr(aggregate).alias("value"), fn.count("*").alias("n"))
    rows = answers.select(fn.unix_micros("w.start").alias("start"), "k", "value", "n")
    last = {(row.start, row.k): row for row in run_query(folder, rows, "update")}
    for (start, key), row in last.items():
        answer = {"start_us": start, "key": key, "value": row.value, "n": row.n}
        yield {"kind": "final", "task": 0, **answer}


def condition(predicate):
    """Return a predicate of the join as SQL."""
    kind, *rest = predicate
    if kind == "equi":
        return f"r.{rest[0]} = s.{rest[0]}"
    if kind in ("band", "apart"):
        return f"abs(r.value - s.value) {'<=' if kind == 'band' else '>'} {rest[1]!r}D"
    if kind == "ineq":
        return f"r.{rest[0]} {rest[1]} s.{rest[2]}"
    return " AND ".join(map(condition, rest)) or "true"


def pairs(folder, workload):
    """Yield the pairs of the query, found by a join of two streams."""
    config = workload["config"]
    if len(config["queries"]) != 1 or config["epochs"]:
        sys.exit("adapter of Spark: it has one query and no epochs")
    both = stream(folder, workload)
    r, s = (both.where(fn.col("stream") == name) for name in "RS")
    if config["lateness_us"] is not None:
        # A row at the watermark is late in Spark, and in time here: a millisecond more.
        lateness = interval(config["lateness_us"] + 1_000)
        r, s = r.withWatermark("ts", lateness), s.withWatermark("ts", lateness)
    elif len({tuple(row[1::5]) for row in workload["arrivals"]}) < len(workload["arrivals"]):
        r, s = r.dropDuplicates(["id"]), s.dropDuplicates(["id"])
    ((name, predicate),) = config["queries"]
    apart = interval(config["window_us"])
    in_time = f"r.ts BETWEEN s.ts - INTERVAL {apart} AND s.ts + INTERVAL {apart}"
    found = r.alias("r").join(s.alias("s"), fn.expr(f"{condition(predicate)} AND {in_time}"))
    rows = found.select(fn.col("r.id").alias("r_id"), fn.col("s.id").alias("s_id"))
    for row in run_query(folder, rows, "append"):
        yield {"kind": "match", "query": name, "r_id": row.r_id, "s_id": row.s_id}


def routes(folder, workload):
    """Yield the partition of each arrival, after `repartition(n)` of every micro-batch."""
    spread = stream(folder, workload).repartition(workload["config"]["instances"])
    rows = spread.select("seq", fn.spark_partition_id().alias("partition"))
    for row in run_query(folder, rows, "append"):
        yield {"kind": "route", "seq": row.seq, "sender": 0, "instance": row.partition}


ROOMS = {"slack": windows, "join": pairs, "grouping": routes}
for line in sys.stdin:
    asked = json.loads(line)
    if asked["room"] not in ROOMS:
        sys.exit(f"adapter of Spark: it cannot express room {asked['room']}")
    place = tempfile.mkdtemp(dir=HOME)
    steps = list(ROOMS[asked["room"]](place, asked))
    shutil.rmtree(place)
    for step in [{"trace": 1, "producer": "Spark"}, *steps, {"end": len(steps)}]:
        print(json.dumps(step))
    sys.stdout.flush()
