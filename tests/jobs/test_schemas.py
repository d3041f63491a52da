"""Schemas of inputs that are known before Spark starts: plain DDL, and Parquet files."""

import json
import re
import shlex
import subprocess
import sys
from contextlib import nullcontext
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import strategies as st
from pyarrow import parquet
from pyspark.sql import SparkSession
from pyspark.sql import types as sql

from straggler.cli.check import asked_files, by_name, file_schema
from straggler.cli.main import main
from straggler.errors import UsageError
from straggler.jobs.api import inputs_of
from straggler.jobs.counterexamples import Failing, plain_rows, read_rows
from straggler.jobs.rows import Frames, recorded_rows
from straggler.jobs.schemas import flat_schema, quoted, spark_schema
from straggler.jobs.streams import Stream
from straggler.options import Arguments
from straggler.strategies.examples import collect

PLAIN = (
    "at timestamp",
    " at : TIMESTAMP_NTZ not  null , `a b` binary,c boolean, d date ",
    "a tinyint, b byte, c smallint, d short, e int, f integer, g bigint, h long",
    "a float, b real, c double, d string, t timestamp_ltz",
    "a decimal, b dec, c numeric",
)
OF_SPARK = ("a array<int>, at timestamp", "m map<string, strin>", "s struct<x: int, y: text>")
TIMES = pa.table({"at": pa.array([0], pa.timestamp("us")), "n": pa.array([1], pa.int32())})


@pytest.mark.parametrize("ddl", PLAIN)
def test_plain_ddl_is_what_spark_reads(spark: SparkSession, ddl: str) -> None:
    assert flat_schema("input", ddl) == spark_schema("input", ddl)


def test_lengths_of_types_are_left_out() -> None:
    found = flat_schema("input", "n decimal(4, 2), c char(3), at timestamp")
    assert found is not None
    assert found.names == ["n", "c", "at"]


@pytest.mark.parametrize(
    "ddl", [*OF_SPARK, "", "at", "a int COMMENT 'x, y z'", "a interval day to second", "v variant"]
)
def test_all_else_is_left_to_spark(ddl: str) -> None:
    assert flat_schema("input", ddl) is None


@pytest.mark.parametrize(
    ("ddl", "said"),
    [
        ("device strin, at timestamp", "no DDL: 'strin' is no type; did you mean 'string'?"),
        ("at timestamp, b array<strin>", "the schema of trades is no DDL: 'at timestamp, b"),
        ("string", "the schema of trades is no DDL: 'string'"),
        ("PM2.5 double, at timestamp", "at timestamp'; a name with '.' needs backticks"),
    ],
)
def test_the_word_that_is_no_type_is_named(spark: SparkSession, ddl: str, said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        spark_schema("trades", ddl)


def test_the_schema_of_a_parquet_file_is_known(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    known = sql.StructType().add("at", "timestamp_ntz").add("n", "integer")
    parquet.write_table(TIMES, path)
    assert file_schema(path, "at") == known
    parquet.write_table(TIMES, path, use_deprecated_int96_timestamps=True)
    assert file_schema(path, "at") == known
    nanos = TIMES.set_column(0, "at", TIMES["at"].cast(pa.timestamp("ns")))
    parquet.write_table(nanos, path)
    with pytest.raises(UsageError, match="has nanoseconds in 'at', which Spark does not read"):
        file_schema(path, "at")
    assert file_schema(tmp_path, "at") is None
    with pytest.raises(UsageError, match="does not exist"):
        file_schema(tmp_path / "other.parquet", "at")
    assert file_schema(tmp_path / "*.parquet", "at") is None


@pytest.mark.parametrize("at", ["at", "`$HOME` 'at'"])
@pytest.mark.parametrize("wrong", ["", "c,yesterday,1\n"])
def test_the_line_that_converts_a_csv_file_does(
    spark: SparkSession, tmp_path: Path, at: str, wrong: str
) -> None:
    path = tmp_path / "rows.csv"
    right = "a,2026-03-01T08:00:01.5,2\nb,2026-03-01T08:00:02,\n"
    path.write_text(f"device,{at},watts\n{wrong}{right}", "utf-8")
    with pytest.raises(UsageError, match="is no Parquet file") as refused:
        file_schema(path, at)
    line = str(refused.value).partition("; ")[2].removesuffix(" makes one of a CSV file")
    python, rest = shlex.quote(sys.executable), line.removeprefix("python")
    subprocess.run(python + rest, shell=True, check=True)
    expected = sql.StructType().add("device", "string").add(at, "timestamp").add("watts", "double")
    assert file_schema(tmp_path / "rows.parquet", at) == expected
    frame = spark.read.parquet(str(tmp_path / "rows.parquet"))
    assert frame.schema == expected
    assert frame.where(frame[quoted(at)].isNotNull()).count() == 2


NAMES = st.lists(
    st.text("aé.- `\"'\\,;(){}[]<>=:*%/_0", min_size=1, max_size=4),
    min_size=20,
    max_size=20,
    unique=True,
)


def test_columns_of_a_file_may_have_any_name(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at, number = "time=of `it`", "decimal(1,2)"
    (drawn,) = collect(NAMES, 1, 1)
    names = [*drawn, "PM2.5", "select", "r.*"]
    columns: dict[str, Any] = {each: pa.array([n], pa.int64()) for n, each in enumerate(names)}
    columns[at] = pa.array([0], pa.timestamp("us", "UTC"))
    columns[number] = pa.array([Decimal("1.50")])
    columns["all"] = pa.array([dict.fromkeys(names, 1)])
    path = tmp_path / "rows.parquet"
    parquet.write_table(pa.table(columns), path)
    asked: dict[str, Any] = {}

    def judge(*_: object, **given: object) -> None:
        asked.update(given)
        raise UsageError("that is enough")

    monkeypatch.setattr("spark_impl.runtime.session.session", lambda _: nullcontext(spark))
    monkeypatch.setattr("straggler.jobs.api.judge_job", judge)
    assert main(["check", "json:dumps", "--input", str(path), "--event-time", at]) == 2
    assert asked["event_time"] == at
    inputs = inputs_of(asked["schema"], at)
    assert inputs[0].schema.names == [*columns]
    (rows,), _ = recorded_rows(spark, inputs, asked["rows"])
    frames = Frames(spark, inputs)
    failing = Failing("ends exact", Stream((tuple(rows),)), tuple(rows))
    plain = plain_rows(frames, failing)
    assert plain is not None
    assert read_rows(frames, json.loads(json.dumps(plain))) == failing


def test_one_file_without_a_name_is_that_of_the_only_input() -> None:
    asked = Arguments(input=("rows.parquet",))
    assert asked_files(asked, "id int") == {"": "rows.parquet"}
    assert asked_files(asked, {"r": "id int"}) == {"r": "rows.parquet"}
    with pytest.raises(
        UsageError, match=r"'rows.parquet' has no name; several files are NAME=FILE"
    ):
        asked_files(asked, {"r": "id int", "s": "id int"})


def test_schemas_may_have_equals_signs() -> None:
    several = "schemas are NAME=DDL"
    assert by_name("--schema", ("`a=b` int, at timestamp",), several) == "`a=b` int, at timestamp"
    assert by_name("--schema", ("one=`a=b` int",), several) == {"one": "`a=b` int"}
