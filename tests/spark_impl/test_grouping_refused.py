"""Rows without a finite value: routed like others, left out of aggregates, and listed."""

import math
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from model.vocabulary import GroupingConfig
from model.vocabulary.grouping import POLICIES, REASON_NOT_FINITE
from spark_impl.grouping import (
    Grouping,
    MicroBatch,
    merged_answers,
    partial_aggregates,
    progress,
    rejected,
)
from spark_impl.grouping.candidates import candidates
from spark_impl.grouping.query import Spreader
from spark_impl.grouping.router import SenderState, choose
from spark_impl.grouping.tasks import Columns
from spark_impl.grouping.windows import start
from spark_impl.runtime.histories import append, history_schema
from spark_impl.runtime.storage import InputProblem, locate

VALUES: Mapping[int, float | None] = {2: None, 5: math.nan, 6: math.inf, 9: -math.inf, 14: None}
"""Values that are refused, by the number of their row; others are 1."""


def land(folder: Path, numbers: range) -> None:
    rows = [
        {
            "seq": n,
            "source_id": 100 + n,
            "key": "ab"[n % 2],
            "event_time_us": 1_000 * n,
            "value": VALUES.get(n, 1.0),
            "arrival_us": 0,
        }
        for n in numbers
    ]
    append(folder, pa.Table.from_pylist(rows, schema=history_schema()))


def test_rows_without_a_finite_value_are_listed(spark: SparkSession, tmp_path: Path) -> None:
    """The stream fails once after its routers have written, and goes on in another object."""
    history, store = tmp_path / "in", tmp_path / "store"
    counts: dict[int, dict[str, int]] = {}
    routed: dict[int, int] = {}
    fails = [True, False]

    def work(rows: DataFrame, batch: MicroBatch) -> None:
        spread = rows.persist()
        routed[batch.number] = spread.count()
        found = merged_answers(partial_aggregates(spread, "key", "value")).collect()
        counts[batch.number] = {row.key: row.n for row in found}
        spread.unpersist()
        if batch.number == 1 and fails.pop(0):
            msg = "the sink is full"
            raise RuntimeError(msg)

    def run() -> None:
        schema = spark.createDataFrame(pa.Table.from_pylist([], schema=history_schema())).schema
        rows = spark.readStream.schema(schema).parquet(str(history))
        grouping = Grouping(3, senders=2, window_tuples=10)
        stream = grouping.stream(rows, "key", store, work, seq="seq", value="value")
        stream.run_available()
        assert stream.progress() == progress(store)
        assert sorted(stream.rejected().collect()) == sorted(rejected(spark, store).collect())

    land(history, range(10))
    run()
    assert progress(store) == (0, 1, {REASON_NOT_FINITE: 4})
    land(history, range(10, 20))
    with pytest.raises(Exception, match="the sink is full"):
        run()
    assert progress(store).rejected == {REASON_NOT_FINITE: 4}, "what is not done does not count"
    run()
    expected = [(n, "ab"[n % 2], 100 + n, 1_000 * n, REASON_NOT_FINITE, n // 10) for n in VALUES]
    assert sorted(map(tuple, rejected(spark, store).collect())) == expected
    assert routed == {0: 10, 1: 10}
    assert counts == {0: {"a": 3, "b": 3}, 1: {"a": 4, "b": 5}}
    assert progress(store) == (1, 2, {REASON_NOT_FINITE: 5})


def read_all(rows: DataFrame, _batch: MicroBatch) -> None:
    rows.collect()


def test_a_list_that_is_in_another_folder_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    columns, config = Columns("key", value="value"), GroupingConfig(2)
    spreader = Spreader(config, columns, locate(tmp_path))
    rows = spark.createDataFrame([("a", 1.0), ("a", None)], "key string, value double")

    def lose(rows: DataFrame, batch: MicroBatch) -> None:
        read_all(rows, batch)
        for file in (tmp_path / "kind=rejected").iterdir():
            file.unlink()

    with pytest.raises(InputProblem, match="lacks some of 1 refused rows of micro-batch 0: the dr"):
        spreader.advance(rows, lose, 0)


def test_an_input_without_other_columns_is_listed_as_well(
    spark: SparkSession, tmp_path: Path
) -> None:
    spreader = Spreader(GroupingConfig(2), Columns("who", value="n"), locate(tmp_path))
    rows = spark.createDataFrame([("a", Decimal(1)), ("b", None)], "who string, n decimal(9,2)")
    spreader.advance(rows, read_all, 0)
    (row,) = rejected(spark, tmp_path).collect()
    assert tuple(row) == (None, "b", None, None, REASON_NOT_FINITE, 0)


def test_an_unknown_policy_is_refused() -> None:
    """Every policy of the vocabulary has a way of its own; no other one passes for one of them."""
    keys = pa.array(["a", "b", "a"]).dictionary_encode()
    for policy in POLICIES:
        config = GroupingConfig(3, policy)
        table = start(config).table
        state = SenderState(loads=(0,) * 3, virtual=(0,) * 30)
        places, _ = choose(config, table, 0, state, keys)
        assert set(places.tolist()) <= {0, 1, 2}, policy
    unknown = replace(GroupingConfig(3))
    object.__setattr__(unknown, "policy", "fair")
    with pytest.raises(ValueError, match="policy is 'fair'; it must be"):
        choose(unknown, table, 0, state, keys)
    with pytest.raises(ValueError, match="policy is 'fair'; it must be"):
        candidates(unknown, table, ["a"])
