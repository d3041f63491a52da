"""Rows spread by Spark: the same routes as in one process, restarts, bad input."""

from collections import Counter
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from model.vocabulary import Event, Fault, GroupingConfig, Workload
from model.vocabulary.grouping import Heavy, Route
from spark_impl.grouping import Grouping, run_in_process
from spark_impl.grouping.partials import merged_answers, partial_aggregates
from spark_impl.grouping.query import MicroBatch
from spark_impl.grouping.system import run_workloads
from spark_impl.streams import InputProblem, append


def skewed(seed: int, size: int) -> tuple[Event, ...]:
    random = Random(seed)
    return tuple(
        Event(seq, seq, f"k{int(40 * random.random() ** 4)}", seq, random.randrange(9) / 4, seq)
        for seq in range(size)
    )


@pytest.mark.parametrize("policy", ["tag", "dag", "dkg"])
def test_routes_and_answers_are_those_of_one_process(
    policy: str, spark: SparkSession, tmp_path: Path
) -> None:
    times = ((0, (1, 2, 3, 40)), (2, (5, 1, 1, 1)))
    config = GroupingConfig(4, policy, times, senders=3, window_tuples=150)
    faults = (Fault("restart", 0), Fault("kill", 1))
    events = skewed(7, 600)
    workload = Workload("grouping", events, config.to_json(), (100, 101, 300), faults)
    (trace,) = run_workloads(spark, {"one": workload}, tmp_path).values()
    assert trace.of(Heavy)
    assert trace.digest() == run_in_process(workload).digest()


def frame(spark: SparkSession, keys: list[str | None]) -> DataFrame:
    table = pa.table({"word": pa.array(keys, pa.string()), "n": list(range(len(keys)))})
    return spark.createDataFrame(table)


def test_bounded_rows_are_spread_by_speed(spark: SparkSession) -> None:
    random = Random(3)
    keys: list[str | None] = [f"k{int(300 * random.random() ** 5)}" for _ in range(20_000)]
    grouping = Grouping(4, times_us=[1, 1, 2, 4])
    found = grouping.assign(frame(spark, keys).repartition(3), "word").toArrow()
    assert sorted(found.column("n").to_pylist()) == list(range(len(keys)))
    work = Counter[int]()
    for place in found.column("instance").to_pylist():
        work[place] += grouping.config.times_of(0)[place]
    assert max(work.values()) < 1.1 * min(work.values())


def test_partition_i_holds_the_rows_of_instance_i(spark: SparkSession) -> None:
    keys: list[str | None] = [f"k{number % 50}" for number in range(2_000)]
    rows = Grouping(5).spread(frame(spark, keys), "word")
    seen = rows.selectExpr("instance", "spark_partition_id() AS part").distinct().collect()
    assert sorted((row.instance, row.part) for row in seen) == [(n, n) for n in range(5)]
    parts = partial_aggregates(rows, "word", "n")
    assert parts.count() > 50
    answers = {row.key: row for row in merged_answers(parts).collect()}
    assert len(answers) == 50
    assert answers["k7"].n == 40
    assert answers["k7"].total == sum(range(7, 2_000, 50))
    assert answers["k7"].top == [1957.0, 1907.0, 1857.0]


def test_a_stream_goes_on_where_it_stopped_and_learns(spark: SparkSession, tmp_path: Path) -> None:
    source = tmp_path / "in"
    schema = "seq BIGINT, key STRING, value DOUBLE"
    rows = [event._asdict() for event in skewed(5, 900)]
    whole: dict[int, int] = {}
    batches: list[MicroBatch] = []

    def work(spread: DataFrame, batch: MicroBatch) -> list[int]:
        batches.append(batch)
        whole.update((row.seq, row.instance) for row in spread.collect())
        return [1, 1, 9]

    grouping = Grouping(3, senders=2, window_tuples=250)
    for part in range(3):
        chosen = pa.Table.from_pylist(rows[300 * part : 300 * part + 300])
        append(source, chosen.select(["seq", "key", "value"]))
        stream = spark.readStream.schema(schema).parquet(str(source))
        grouping.stream(stream, "key", tmp_path / "store", work, seq="seq").run_available()
    assert batches == [MicroBatch(0, 0), MicroBatch(1, 1), MicroBatch(2, 2)]
    config = GroupingConfig(
        3, times_us=((0, (1, 1, 1)), (1, (1, 1, 9))), senders=2, window_tuples=250
    )
    workload = Workload("grouping", skewed(5, 900), config.to_json(), (300, 600))
    routes = run_in_process(workload).of(Route)
    assert {step.seq: step.instance for step in routes} == whole


def test_work_that_reads_nothing_still_moves_the_routers_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    append(tmp_path / "in", pa.table({"seq": [0, 1, 2], "key": ["a", "b", "a"]}))
    stream = spark.readStream.schema("seq BIGINT, key STRING").parquet(str(tmp_path / "in"))
    seen = []
    spread = Grouping(2, senders=4).stream(
        stream, "key", tmp_path / "store", lambda _rows, batch: seen.append(batch)
    )
    spread.run_available()
    assert seen == [MicroBatch(0, 0)]
    assert (tmp_path / "store" / "batches" / "0.json").exists()
    assert len(list((tmp_path / "store" / "batches" / "0").glob("*.arrow"))) == 4


def test_bad_input_is_named(spark: SparkSession, tmp_path: Path) -> None:
    rows = frame(spark, ["a", None])
    taken = rows.withColumnRenamed("n", "instance")
    for grouping, given, key, sentence in (
        (Grouping(2), rows, "wort", "no column 'wort'"),
        (Grouping(2), rows, "n", "is of type bigint; a key is a string"),
        (Grouping(2, "dkg"), rows, "word", "learns from a stream"),
        (Grouping(2), taken, "word", "has a column 'instance' already"),
    ):
        with pytest.raises(InputProblem, match=sentence):
            grouping.assign(given, key)
    with pytest.raises(Exception, match="'word' has 1 rows without a value"):
        Grouping(2).assign(rows, "word")
    with pytest.raises(ValueError, match="policy is 'tags'"):
        Grouping(2, "tags")
    stream = spark.readStream.format("rate").load().selectExpr("string(value) AS key")
    Grouping(2).stream(stream, "key", tmp_path / "store", lambda _rows, _batch: None)
    with pytest.raises(InputProblem, match="belongs to another stream"):
        Grouping(3).stream(stream, "key", tmp_path / "store", lambda _rows, _batch: None)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    with pytest.raises(InputProblem, match="neither an empty folder nor the store"):
        Grouping(3).stream(stream, "key", tmp_path / "other", lambda _rows, _batch: None)
