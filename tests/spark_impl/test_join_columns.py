"""Columns of both streams on Spark: inputs, queries on them, histories, and stores that grow."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from model.vocabulary.join import Apart, Equi, Predicate
from spark_impl.join import ChainJoin, from_history, one_time, results
from spark_impl.runtime.histories import append, history_schema
from spark_impl.runtime.storage import InputProblem
from tests.spark_impl.join_cases import counted

SECOND = 1_000_000
READINGS = (
    "source_id long, event_time_us long, pm25 double, pm10 double, at timestamp, valid boolean"
)
COLUMNS: dict[str, Any] = {
    "r_columns": {"pm25": "number", "pm10": "number", "at": "time", "valid": "boolean"},
    "s_columns": {"pm25": "number", "pm10": "number", "at": "time"},
}
NAN = float("nan")
AREA = [(0, 0, 50.0, 90.0, 10, True), (1, 1, None, 10.0, 20, False), (2, 2, NAN, 95.0, None, None)]
SITE = [(0, 0, 48.0, 20.0, 12, True), (1, 3, 80.0, 91.0, 11, True), (2, 3, None, None, 300, None)]
QUERIES: Mapping[str, Any] = {
    "pm25": Apart("pm25", 10.0),
    "pm10": "r.pm10 within 5 of s.pm10 and r.pm10 > 50",
    "soon": "0s <= s.at - r.at <= 2s",
    "valid": lambda r, s: (r.valid == 1) & ~np.isnan(s.pm25) & (r.event_time <= s.ts),
}
FOUND = {
    ("pm25", 0, 1),
    ("pm10", 0, 1),
    ("pm10", 2, 1),
    ("soon", 0, 0),
    ("soon", 0, 1),
    ("valid", 0, 0),
    ("valid", 0, 1),
    ("valid", 1, 1),
}


def readings(spark: SparkSession, rows: list[tuple[Any, ...]]) -> DataFrame:
    """Return an input without a key and a value; times are seconds."""
    timed = spark.createDataFrame(rows, READINGS.replace("timestamp", "long"))
    return timed.withColumn("at", F.timestamp_seconds("at"))


def test_tables_with_columns(spark: SparkSession, tmp_path: Path) -> None:
    r, s = readings(spark, AREA), readings(spark, SITE)
    join = ChainJoin(2, 10, QUERIES, block_size=1, history=True, **COLUMNS)
    join.join(r, s, tmp_path)
    assert {*counted(results(spark, tmp_path))} == FOUND
    selected = results(
        spark, tmp_path, query="soon", select=("s.pm25", "r.at", "r.valid", "s.event_time")
    ).orderBy("s_id")
    assert selected.columns == [
        *("query", "r_id", "s_id", "epoch"),
        *("s_pm25", "r_at", "r_valid", "s_event_time"),
    ]
    as_numbers = selected.select(
        "s_id", "s_pm25", F.unix_seconds("r_at"), "r_valid", F.unix_micros("s_event_time")
    )
    assert [tuple(row) for row in as_numbers.collect()] == [
        (0, 48.0, 10, True, 0),
        (1, 80.0, 10, True, 3),
    ]
    missing = results(spark, tmp_path, query="pm10", select=["r.pm25"]).orderBy("r_id").collect()
    assert [row.r_pm25 for row in missing] == [50.0, None]
    once = one_time(spark, tmp_path, {"pm25": QUERIES["pm25"]}, 0, 0)
    assert {*counted(once)} == {each for each in FOUND if each[0] == "pm25"}
    for wrong, sentence in {
        "query": "^there is no query 'pm01'; there are pm25, pm10, soon, valid$",
        "column": "^R has no column 'pm01'; it has key, value, event_time, pm25, pm10, at, valid",
        "stream": "^select has 'pm25'; it must have columns such as 'r.key'$",
    }.items():
        asked: dict[str, dict[str, Any]] = {
            "query": {"query": "pm01"},
            "column": {"select": ["r.pm01"]},
        }
        with pytest.raises(InputProblem, match=sentence):
            results(spark, tmp_path, **asked.get(wrong, {"select": ["pm25"]}))


def test_inputs_that_lack_a_column(spark: SparkSession) -> None:
    r, s = readings(spark, AREA), readings(spark, SITE)
    same: Predicate = Equi("key")
    cases: dict[str, tuple[Any, Any, dict[str, Any]]] = {
        "^the input R has no column 'key'; it has ": (r, same, {}),
        "^the input R has no column 'no2'; it has ": (r, "any", {"r_columns": {"no2": "number"}}),
        "^the column 'at' of the input R is timestamp; it can be tinyint, .*, double$": (
            r,
            "any",
            {"r_columns": {"at": "number"}},
        ),
    }
    for sentence, (rows, predicate, columns) in cases.items():
        with pytest.raises(InputProblem, match=sentence):
            ChainJoin(1, 10, predicate, **columns).join(rows, s)
    for name in ("Value", "seq", "event_time_us"):
        with pytest.raises(ValueError, match="column"):
            ChainJoin(1, 10, "any", r_columns={name: "number"})


HISTORY = history_schema(
    pa.field("stream", pa.string()),
    pa.field("site", pa.string()),
    values=["value_pm25", "value_pm10"],
)


def land(folder: Path, *rows: tuple[str, str | None, float | None, float | None]) -> None:
    """Append a file to a history of two streams, as a landing with two values writes it."""
    first = 10 * len([*folder.glob("*.parquet")])
    names = ["stream", "site", "value_pm25", "value_pm10"]
    table = [
        {
            **dict.fromkeys(("seq", "source_id", "event_time_us", "arrival_us"), first + n),
            "key": "",
            **dict(zip(names, row, strict=True)),
        }
        for n, row in enumerate(rows)
    ]
    append(folder, pa.Table.from_pylist(table, HISTORY))


def test_columns_come_while_a_chain_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    history, store = tmp_path / "history", tmp_path / "store"

    def opened(queries: Any, **columns: Any) -> Any:
        join = ChainJoin(2, 100, queries, lateness_us=1000, history=True, **columns)
        return join.stream(*from_history(spark, history, **columns), store)

    numbers = {"r_columns": {"pm25": "number"}, "s_columns": {"pm25": "number"}}
    land(history, ("R", "a", 1.0, 5.0), ("S", "a", 9.0, 5.5), ("S", None, None, 5.0))
    stream = opened({"far": "pm25 apart 4"}, **numbers)
    for query, sentence in {
        "r.pm10 apart 4 of s.pm10": "R has no column 'pm10'; it has key, value, event_time, pm25",
        "value within 4": "^query 'new': the input R has no column 'value'$",
    }.items():
        with pytest.raises(InputProblem, match=sentence):
            stream.submit("new", query)
    stream.run_available()
    land(history, ("R", "a", None, 5.0), ("R", "b", 20.0, None), ("S", "b", 30.0, 6.0))
    site = {
        "r_columns": {"site": "text", **numbers["r_columns"]},
        "s_columns": {**numbers["s_columns"], "site": "text"},
    }
    stream = opened({"far": "pm25 apart 4", "same": "site"}, **site)
    stream.flush()
    far = {(0, 1), (0, 12), (11, 1), (11, 12)}
    assert {*counted(results(spark, store))} == {
        *(("far", *pair) for pair in far),
        ("same", 11, 12),
    }
    sites = results(spark, store, query="far", select=["r.site", "s.pm25"]).collect()
    assert {(row.r_id, row.s_id): row.r_site for row in sites} == {
        pair: None if pair[0] == 0 else "b" for pair in far
    }
    with pytest.raises(InputProblem, match=r"^R has the column 'site' \(text\) in this chain, but"):
        opened({"far": "pm25 apart 4"}, **numbers)
