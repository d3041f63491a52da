"""Histories and landing."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_impl.streams import Columns, InputProblem, append, counts, land, rejected


def test_later_files_have_later_times_in_milliseconds(tmp_path: Path) -> None:
    paths = [append(tmp_path, pa.table({"x": [i]})) for i in range(5)]
    times = [path.stat().st_mtime_ns // 1_000_000 for path in paths]
    assert times == sorted(set(times))
    assert [path.name for path in paths] == sorted(path.name for path in paths)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def stream(spark: SparkSession, folder: Path, columns: str) -> DataFrame:
    reader = spark.readStream.schema(columns).option("header", True)
    return reader.option("maxFilesPerTrigger", 1).csv(str(folder))


def test_landing_numbers_arrivals_and_sets_bad_rows_apart(
    spark: SparkSession, tmp_path: Path
) -> None:
    source, target = tmp_path / "in", tmp_path / "h"
    source.mkdir()
    (source / "1.csv").write_text(
        "k,t,v,id,site\n"
        "a,1970-01-01T00:00:02Z,1.5,x,7\n"
        "b,,2,y,7\n"
        "b,soon,2,y,7\n"
        "b,2.5,many,y,7\n"
        "b,2.5,2,y,7\n"
    )
    columns = Columns("k", "t", "v", source_id="id", groups=("site",), unit="s")
    text = "k string, t string, v string, id string, site long"
    land(stream(spark, source, text), target, columns).awaitTermination()
    (source / "2.csv").write_text("k,t,v,id,site\na,3,4,x,8\n")
    land(stream(spark, source, text), target, columns).awaitTermination()

    first, second = (pq.read_table(path).to_pylist() for path in sorted(target.glob("*.parquet")))
    assert [(r["seq"], r["key"], r["event_time_us"], r["value"], r["site"]) for r in first] == [
        (0, "a", 2_000_000, 1.5, 7),
        (1, "b", 2_500_000, 2.0, 7),
    ]
    assert [(r["seq"], r["event_time_us"], r["site"]) for r in second] == [(2, 3_000_000, 8)]
    assert first[0]["source_id"] == second[0]["source_id"] != first[1]["source_id"]
    assert first[0]["arrival_us"] <= second[0]["arrival_us"]
    assert counts(target) == (3, 3)
    rows = {row.reason: row.row for row in rejected(spark, target).collect()}
    assert sorted(rows) == ["t cannot be read: soon", "t is NULL", "v cannot be read: many"]
    assert '"id":"y"' in rows["t is NULL"]


def test_landing_again_never_rewrites_a_batch(spark: SparkSession, tmp_path: Path) -> None:
    source, target = tmp_path / "in", tmp_path / "h"
    source.mkdir()
    (source / "1.csv").write_text("k,t,v\na,1,1\n")
    (source / "2.csv").write_text("k,t,v\na,2,1\n")
    columns = Columns("k", "t", "v", order=("t",))
    land(stream(spark, source, "k string, t long, v double"), target, columns).awaitTermination()
    before = {path.name: path.stat().st_mtime_ns for path in target.glob("*.parquet")}
    assert len(before) == 2
    # as after a crash between the file and the note that it is there
    (target / "_landing" / "batches" / "1.json").unlink()
    for name in ("1", ".1.crc"):
        (target / "_landing" / "checkpoint" / "commits" / name).unlink()
    land(stream(spark, source, "k string, t long, v double"), target, columns).awaitTermination()
    assert {path.name: path.stat().st_mtime_ns for path in target.glob("*.parquet")} == before
    assert counts(target) == (2, 0)


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        (Columns("k", "t", "w"), "the stream has no column 'w'; its columns are k, t, v"),
        (Columns("k", "t", "v", unit="h"), "unit is 'h'; it must be one of us, ms, s"),
        (Columns("k", "t", "v", source_id="v"), "column 'v' holds double; identities are"),
    ],
)
def test_streams_that_cannot_be_landed(
    spark: SparkSession, tmp_path: Path, columns: Columns, sentence: str
) -> None:
    with pytest.raises(InputProblem, match=sentence):
        land(stream(spark, tmp_path, "k string, t long, v double"), tmp_path / "h", columns)
    assert not (tmp_path / "h").exists()


def test_folder_that_something_else_has_written(spark: SparkSession, tmp_path: Path) -> None:
    append(tmp_path / "h", pa.table({"x": [1]}))
    with pytest.raises(InputProblem, match="files that were not landed here"):
        land(
            stream(spark, tmp_path, "k string, t long, v double"),
            tmp_path / "h",
            Columns("k", "t", "v"),
        )
