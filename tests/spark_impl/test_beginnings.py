"""Queries that begin with an empty history, without their checkpoint, or on an HDFS cluster."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_impl.runtime.storage import InputProblem
from spark_impl.runtime.systems import lose_commit
from spark_impl.slack import SlackQuery
from tests.spark_impl.test_query import FIRST, FIXED, LATE, answers, history


def test_first_file_of_an_empty_history_may_have_any_number(
    spark: SparkSession, tmp_path: Path
) -> None:
    history(tmp_path / "h", FIRST)
    first = (tmp_path / "h" / "00000000.parquet").rename(tmp_path / "first.parquet")
    calls: list[int] = []
    query = SlackQuery(
        spark, FIXED, tmp_path / "h", tmp_path / "s", sink=lambda _, batch: calls.append(batch)
    )
    query.run_available()
    assert query.store.committed() == -1
    assert calls == [], "a micro-batch that read nothing is not handed to the sink"
    first.rename(tmp_path / "h" / "00000007.parquet")
    query.run_available()
    lose_commit(tmp_path / "s")
    query.run_available()
    assert calls == [1, 1]
    assert len(answers(spark, tmp_path / "s")) == 4


def test_a_checkpoint_that_was_lost_after_one_micro_batch_is_missed(
    spark: SparkSession, tmp_path: Path
) -> None:
    query = SlackQuery(spark, FIXED, history(tmp_path / "h", FIRST), tmp_path / "s")
    query.run_available()
    found = answers(spark, tmp_path / "s")
    shutil.rmtree(tmp_path / "s" / "_checkpoint")
    sentence = r"/s/_checkpoint is not the checkpoint of .*/s, whose tables are at micro-batch 0$"
    with pytest.raises(InputProblem, match=sentence):
        query.run_available()
    assert answers(spark, tmp_path / "s") == found


def test_local_paths_stay_local_on_a_cluster_with_hdfs(spark: SparkSession, tmp_path: Path) -> None:
    hadoop: Any = spark.sparkContext._jsc.hadoopConfiguration()
    usual = hadoop.get("fs.defaultFS")
    hadoop.set("fs.defaultFS", "hdfs://127.0.0.1:1")
    try:
        SlackQuery(spark, FIXED, history(tmp_path / "h", FIRST), tmp_path / "s").run_available()
        assert len(answers(spark, tmp_path / "s")) == 4
    finally:
        hadoop.set("fs.defaultFS", usual)


def test_query_waits_for_the_first_file(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "h").mkdir()
    query = SlackQuery(spark, FIXED, tmp_path / "h", tmp_path / "s")
    query.flush()
    assert answers(spark, tmp_path / "s") == {}
    running = query.start()
    try:
        running.processAllAvailable()
        history(tmp_path / "h", FIRST)
        running.processAllAvailable()
        assert len(answers(spark, tmp_path / "s")) == 4
        history(tmp_path / "h", LATE)
        running.processAllAvailable()
    finally:
        running.stop()
    query.flush()
    assert answers(spark, tmp_path / "s")[10] == (26.0, 3, 1, 1 / 3, "exact")
