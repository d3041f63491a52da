"""The example of the README with refunds, and with rows that no sum can take."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import straggler
from spark_impl.landed import LandedQuery
from spark_impl.over import Stream
from spark_impl.slack import progress, rejected

T = 1_714_521_600  # 2024-05-01 00:00 UTC
BAD = ("NaN", "inf", "abc", "")


def stream(spark: SparkSession, folder: Path, *lines: str) -> Stream:
    """Begin a query over a file of lines."""
    (folder / "in").mkdir()
    (folder / "in" / "1.csv").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    rows = spark.readStream.schema("device string, at string, v string").csv(str(folder / "in"))
    return straggler.over(rows, event_time="at", key="device", time_unit="s")


def flushed(spark: SparkSession, folder: Path, *lines: str) -> LandedQuery:
    query = stream(spark, folder, *lines).window("10 seconds").sum("v").store_in(folder / "kept")
    query.flush()
    return query


def test_a_refund_is_part_of_the_sum(spark: SparkSession, tmp_path: Path) -> None:
    query = flushed(
        spark, tmp_path, f"refund,{T + 1},100", f"refund,{T + 2},-40", f"only,{T + 3},-2.5"
    )
    found = {row.key: row for row in query.results().collect()}
    one, only = found["refund"], found["only"]
    assert (one.value, one.n, one.coverage, one.n_refused, one.state) == (60, 2, 1.0, 0, "exact")
    assert (only.value, only.n, only.state) == (-2.5, 1, "exact")
    assert not query.rejected().collect()


def test_a_window_lists_the_rows_that_it_lacks(spark: SparkSession, tmp_path: Path) -> None:
    bad = [f"refund,{T + 3 + n},{text}" for n, text in enumerate(BAD)]
    query = flushed(
        spark, tmp_path, f"refund,{T + 1},100", *bad, f"bad,{T},x", f"late,{T},1", "lost,?,1"
    )
    found = {
        row.key: (row.value, row.n, row.n_rcv, row.revision, row.n_refused, row.state)
        for row in query.results().collect()
    }
    assert found == {
        "refund": (100.0, 1, 1, 0, len(BAD), "incomplete"),
        "bad": (None, 0, 0, None, 1, "incomplete"),
        "late": (1.0, 1, 1, 0, 0, "exact"),
    }
    listed = query.rejected().collect()
    assert {(row.stage, row.key, row.column, row.text) for row in listed} == {
        ("query", "refund", "v", "NaN"),
        ("query", "refund", "v", "Infinity"),
        ("query", "refund", "v", "abc"),
        ("query", "refund", "v", None),
        ("query", "bad", "v", "x"),
        ("landing", None, "at", "?"),
    }
    assert len(listed) == 6
    assert all(row.reason for row in listed)
    lost = next(row for row in listed if row.stage == "landing")
    assert json.loads(lost.row) == {"device": "lost", "at": "?", "v": "1"}
    assert lost.seq is None
    assert rejected(spark, query.query.store.root).count() == 5


def test_progress_counts_refused_rows(spark: SparkSession, tmp_path: Path) -> None:
    begun = stream(spark, tmp_path, f"a,{T},1", f"a,{T + 1},nan", f"b,{T + 2},", "c,?,1")
    query = begun.window("10 seconds").sum("v").store_in(tmp_path / "kept")
    query.run_available()
    assert query.progress().rejected == query.rejected().count() == 3
    assert progress(query.query.store.root).rejected == 2, "a query knows nothing of the landing"
    assert query.progress().held_by == "task 0"


@pytest.mark.parametrize("kind", ["boolean", "timestamp", "array<double>", "struct<a: int>"])
def test_what_no_aggregate_can_take_is_refused_before_anything_is_written(
    kind: str, spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    rows = spark.readStream.schema(f"at string, v {kind}").json(str(tmp_path / "in"))
    begun = straggler.over(rows, event_time="at").window("10 seconds").sum("v")
    with pytest.raises(straggler.InputProblem, match=r"^column 'v' holds [^\n]+, not a number$"):
        begun.store_in(tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


@pytest.mark.parametrize("name", ["min", "max"])
def test_an_extreme_without_a_share_is_refused(
    name: str, spark: SparkSession, tmp_path: Path
) -> None:
    windows = stream(spark, tmp_path).window("10 seconds")
    with pytest.raises(ValueError, match=r"^[^\n]*lambda_thr[^\n]*$"):
        getattr(windows, name)("v")
