"""The order in which rows are landed: that of their arrival, whatever the number of partitions."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from model.vocabulary.join import Equi
from spark_impl.join import ChainJoin, from_history, results, snapshots
from spark_impl.runtime.columns import in_order
from spark_impl.runtime.histories import files_of
from spark_impl.runtime.landing import Landing
from spark_impl.runtime.storage import InputProblem, Location, locate
from tests.harness import s3_server

SECOND = 1_000_000


def columns(history: Path | Location, *names: str) -> list[tuple[Any, ...]]:
    """Return some columns of all arrivals, in the order of the files."""
    files = files_of(locate(history))
    tables = [pq.read_table(file.path, filesystem=file.files) for file in files]
    return [tuple(row[name] for name in names) for table in tables for row in table.to_pylist()]


def count_out_of_order(times: list[int]) -> int:
    """Return how many times are lower than an earlier time of the list."""
    return sum(max(times[:at], default=times[at]) > times[at] for at in range(len(times)))


def run_until(landing: Landing, history: Path, files: int) -> None:
    """Run a landing of an endless source until there are some files."""
    running = landing.start()
    try:
        while len(files_of(locate(history))) < files:
            assert not running.awaitTermination(1)
    finally:
        running.stop()


@pytest.mark.parametrize("arrival", [None, "value"])
@pytest.mark.parametrize("partitions", [1, 2, 4, 16])
def test_an_ordered_source_stays_ordered(
    spark: SparkSession, tmp_path: Path, partitions: int, arrival: str | None
) -> None:
    options = {"rowsPerBatch": 101, "numPartitions": partitions}
    stream = spark.readStream.format("rate-micro-batch").options(**options).load()
    history = tmp_path / "history"
    named: dict[str, Any] = {"event_time": "value", "value": "value", "time_unit": "s"}
    run_until(
        Landing(stream, history, tmp_path / "checkpoint", arrival=arrival, **named), history, 2
    )
    found = columns(history, "seq", "event_time_us")
    assert len(found) >= 2 * 101
    assert found == [(number, number * SECOND) for number in range(len(found))]


def test_rows_of_the_source_rate_are_not_disordered(spark: SparkSession, tmp_path: Path) -> None:
    options = {"rowsPerSecond": 400, "numPartitions": 4}
    stream = spark.readStream.format("rate").options(**options).load()
    history = tmp_path / "history"
    landing = Landing(
        stream, history, tmp_path / "checkpoint", event_time="timestamp", value="value"
    )
    run_until(landing, history, 2)
    times = [time for (time,) in columns(history, "event_time_us")]
    assert len(times) >= 400
    assert count_out_of_order(times) == 0


def put(folder: Path, name: str, rows: Sequence[Mapping[str, Any]], at_s: int = 1_000) -> None:
    """Write a JSON file with a modification time."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    os.utime(path, (at_s, at_s))


def stream_of(spark: SparkSession, folder: Path, schema: str) -> DataFrame:
    """Return a stream that takes every small file as a partition of its own."""
    folder.mkdir(exist_ok=True)
    spark.conf.set("spark.sql.files.openCostInBytes", 1 << 30)
    return spark.readStream.schema(schema).json(str(folder))


@pytest.fixture(autouse=True)
def settings_as_before(spark: SparkSession) -> Any:
    yield
    spark.conf.unset("spark.sql.files.openCostInBytes")


def test_times_of_arrival_order_rows_and_never_decrease(
    spark: SparkSession, tmp_path: Path
) -> None:
    stream = stream_of(spark, tmp_path / "in", "ts long, at long, v double")
    named = {"event_time": "ts", "value": "v", "arrival": "at", "time_unit": "us"}
    landing = Landing(stream, tmp_path / "history", tmp_path / "checkpoint", **named)
    put(tmp_path / "in", "a", [{"ts": 5, "at": 10, "v": 0}, {"ts": 1, "at": 40, "v": 3}])
    put(tmp_path / "in", "b", [{"ts": 9, "at": 20, "v": 1}, {"ts": 2, "at": 30, "v": 2}])
    landing.run_available()
    put(tmp_path / "in", "c", [{"ts": 7, "at": 35, "v": 4}, {"ts": 6, "at": 50, "v": 5}])
    landing.run_available()
    assert columns(tmp_path / "history", "value", "event_time_us", "arrival_us") == [
        (0, 5, 10),
        (1, 9, 20),
        (2, 2, 30),
        (3, 1, 40),
        (4, 7, 40),  # it was landed after the time 40
        (5, 6, 50),
    ]


KAFKA = "topic string, partition int, offset long, timestamp timestamp, ts long"


def test_partitions_of_kafka_are_merged_by_time_and_keep_their_order(
    spark: SparkSession, tmp_path: Path
) -> None:
    def row(partition: int, offset: int, time_s: int) -> dict[str, Any]:
        stamp = f"1970-01-01T00:00:{time_s:02}Z"
        where = {"topic": "t", "partition": partition, "offset": offset, "timestamp": stamp}
        return {**where, "ts": 100 * partition + offset}

    # A producer was slow: in partition 0, offset 11 has an earlier timestamp than offset 10.
    put(tmp_path / "in", "a", [row(0, 9, 1), row(0, 10, 20), row(0, 11, 3), row(0, 12, 30)], 3_000)
    put(tmp_path / "in", "b", [row(1, 5, 2), row(1, 6, 4), row(1, 7, 20), row(1, 8, 40)], 2_000)
    stream = stream_of(spark, tmp_path / "in", KAFKA)
    named = {"event_time": "ts", "value": "offset", "time_unit": "us"}
    Landing(stream, tmp_path / "history", tmp_path / "checkpoint", **named).run_available()
    found = [ts for (ts,) in columns(tmp_path / "history", "event_time_us")]
    assert found == [9, 105, 106, 10, 11, 107, 12, 108]


def test_partitions_of_kafka_are_not_dealt_out_by_a_setting(spark: SparkSession) -> None:
    own = spark.newSession()
    own.conf.set("spark.sql.shuffle.partitions", "77")
    own.conf.set("spark.sql.adaptive.enabled", "false")  # as in a micro-batch
    rows = own.createDataFrame([], "_from string, _part long, _offset long, _since long")
    plan = in_order(rows, by_arrival=False)._jdf.queryExecution().executedPlan().toString()
    assert "hashpartitioning" in plan
    assert ", 77)" not in plan


def land_trips_and_fares(spark: SparkSession, root: Path) -> Landing:
    """Land two streams together; each has one row for every key."""
    for name, first in (("trips", 0), ("fares", 1)):
        for part in range(2):
            rows = [
                {"key": f"k{n}", "ts": n, "at": 100 * part + 2 * n + first, "v": first}
                for n in range(20 * part, 20 * part + 20)
            ]
            put(root / name, f"{part}.json", rows, 1_000 + part)
    schema = "key string, ts long, at long, v double"
    streams = {
        side: spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(str(root / name))
        for side, name in (("R", "trips"), ("S", "fares"))
    }
    named = {"event_time": "ts", "value": "v", "key": "key", "arrival": "at", "time_unit": "us"}
    return Landing(streams, root / "history", root / "checkpoint", **named)


def test_two_streams_get_one_order_of_arrival_and_are_joined(
    spark: SparkSession, tmp_path: Path
) -> None:
    landing = land_trips_and_fares(spark, tmp_path)
    landing.run_available()
    found = columns(tmp_path / "history", "seq", "stream", "key")
    assert found == [(n, "RS"[n % 2], f"k{n // 2}") for n in range(80)]
    assert landing.counts() == (80, 0)
    join = ChainJoin(2, window_us=1_000, predicate=Equi("key"))
    join.stream(*from_history(spark, tmp_path / "history"), tmp_path / "join").flush()
    pairs = results(spark, tmp_path / "join").collect()
    assert sorted((row.r_id, row.s_id) for row in pairs) == [(2 * n, 2 * n + 1) for n in range(40)]
    assert len(snapshots(tmp_path / "join")) == 3, "a file is an epoch, and the flush is one"


@pytest.mark.parametrize("given", ["no streams", "not a stream", "a column stream", "two types"])
def test_streams_that_do_not_go_together_are_refused(
    spark: SparkSession, tmp_path: Path, given: str
) -> None:
    rate = spark.readStream.format("rate").load()
    number, text = (rate.withColumn("site", F.lit(site)) for site in (1, "a"))
    no_stream = "the DataFrame to land is not a stream; read it with spark.readStream"
    streams, sentence = {
        "no streams": ({}, no_stream),
        "not a stream": ({"R": number, "S": spark.range(3)}, no_stream),
        "a column stream": (
            {"R": number, "S": text.withColumn("stream", F.lit("S"))},
            "the stream 'S' cannot have a column 'stream', which is taken",
        ),
        "two types": (
            {"R": number, "S": text},
            "column 'site' holds text in one stream and whole numbers in another",
        ),
    }[given]
    named: dict[str, Any] = {"event_time": "timestamp", "value": "value", "group_columns": ["site"]}
    with pytest.raises(InputProblem) as problem:
        Landing(streams, tmp_path / "h", tmp_path / "c", **named)
    assert str(problem.value) == sentence


def test_rows_are_landed_on_s3_in_order(
    spark: SparkSession, tmp_path: Path, bucket: Location
) -> None:
    s3_server.tell_workers(spark)
    history = bucket / tmp_path.name
    stream = stream_of(spark, tmp_path / "in", "ts long, v string")
    named = {"event_time": "ts", "value": "v", "time_unit": "us"}
    for part in range(2):
        rows = [{"ts": n, "v": str(n)} for n in range(4 * part, 4 * part + 4)]
        put(tmp_path / "in", f"{part}.json", [*rows, {"ts": 1 << 60, "v": "0"}])
        landing = Landing(stream, str(history), tmp_path / "checkpoint", **named)
        landing.run_available()
    assert columns(history, "seq", "value") == [(n, n) for n in range(8)]
    assert landing.counts() == (8, 2)
    assert sorted((row.batch, row.text) for row in landing.rejected().collect()) == [
        (0, str(1 << 60)),
        (1, str(1 << 60)),
    ]
    assert not (history / "_scratch").children()
