"""Rows of a table spread by Spark: balanced by speed, one partition an instance, bad input."""

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from model.vocabulary import Event
from model.vocabulary.settings import PlainData
from spark_impl.grouping import Grouping, GroupingProblem, merged_answers, partial_aggregates
from spark_impl.runtime.storage import InputProblem


def skewed(seed: int, size: int) -> tuple[Event, ...]:
    random = Random(seed)
    return tuple(
        Event(seq, seq, f"k{int(40 * random.random() ** 4)}", seq, random.randrange(9) / 4, seq)
        for seq in range(size)
    )


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


@pytest.mark.parametrize(
    ("instances", "policy", "settings", "sentence"),
    [
        (0, "tag", {}, "instances is 0; it must be an integer > 0"),
        ("4", "tag", {}, "instances is '4'; it must be an integer"),
        (2, "tags", {}, "policy is 'tags'; it must be one of key, "),
        (2, "tag", {"times_us": [1, 0]}, r"the times \[1, 0\] are not 2 whole microseconds"),
        (2, "tag", {"times_us": [1]}, r"the times \[1\] are not 2 whole microseconds"),
        (2, "tag", {"times_us": [1, 2.5]}, r"the times \[1, 2.5\] are not 2 whole"),
        (2, "tag", {"times_us": 7}, "the times 7 are not 2 whole microseconds"),
        (2, "tag", {"gamma": 0}, "gamma is 0; it must be a finite number > 0"),
    ],
)
def test_impossible_settings_are_named(
    instances: Any, policy: str, settings: dict[str, PlainData], sentence: str
) -> None:
    with pytest.raises(ValueError, match=f"^{sentence}"):
        Grouping(instances, policy, **settings)


@pytest.mark.fails_tasks
def test_bad_input_is_named(spark: SparkSession, tmp_path: Path) -> None:
    rows = frame(spark, ["a", None])
    taken = rows.withColumnRenamed("n", "instance")
    stream = spark.readStream.format("rate").load().selectExpr("string(value) AS key", "timestamp")
    for grouping, given, key, sentence in (
        (Grouping(2), rows, "wort", "the input has no column 'wort'; it has word, n"),
        (Grouping(2), rows, "n", "is of type bigint; a key is a string"),
        (Grouping(2, "dkg"), rows, "word", "learns from a stream"),
        (Grouping(2), taken, "word", "already has a column 'instance'"),
        (Grouping(2), stream, "key", "the input is a stream; it must be bounded"),
    ):
        with pytest.raises(InputProblem, match=sentence):
            grouping.assign(given, key)
    with pytest.raises(GroupingProblem, match=r"^the column 'word' has 1 rows without a value$"):
        Grouping(2).assign(rows, "word")
    with pytest.raises(InputProblem, match="the input is bounded; it must be a stream"):
        Grouping(2).stream(rows, "word", tmp_path / "store", lambda _rows, _batch: None)
    with pytest.raises(InputProblem, match="'timestamp' is of type timestamp; an order is made of"):
        Grouping(2).stream(stream, "key", tmp_path / "s", lambda _rows, _batch: None, "timestamp")
    assert not any(tmp_path.iterdir())
