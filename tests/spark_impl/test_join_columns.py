"""Columns of both streams on Spark: inputs, queries on them, histories, and stores that grow."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from spark_impl.join import ChainJoin, from_history, results, submit
from spark_impl.runtime.histories import append, history_schema
from spark_impl.runtime.storage import InputProblem
from tests.spark_impl.join_cases import counted

NUMBERS = {"pm25": "number"}
MORE = {"site": "text", "at": "time", "valid": "boolean"}
QUERIES: dict[str, Any] = {
    "far": "pm25 apart 4",
    "same": "site",
    "soon": "0s <= s.at - r.at <= 1s and r.valid = true",
    "own": lambda r, s: (r.valid == 1) & (s.at >= r.ts) & (r.pm25 > 10),
}
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


def with_more(rows: DataFrame) -> DataFrame:
    """Add a column of times, and one of truth values, which are missing where pm25 is."""
    timed = rows.withColumn("at", F.timestamp_micros("event_time_us"))
    return timed.withColumn("valid", F.col("pm25") > 0)


def test_a_history_has_a_value_unless_its_files_have_several(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Columns of one stream are enough; without files nothing is known."""
    for given, has_value in (None, True), (NUMBERS, False):
        land(tmp_path / "several", ("R", "a", 1.0, 5.0))
        for rows in from_history(spark, tmp_path / "several", r_columns=given):
            assert ("value" in rows.columns) == has_value
        assert "value" in from_history(spark, tmp_path / "none", r_columns=given)[1].columns
    with pytest.raises(ValueError, match="the kind of 'pm25' in s_columns is 'float'; it must be"):
        from_history(spark, tmp_path / "several", s_columns={"pm25": "float"})


def test_columns_come_while_a_chain_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    history, store = tmp_path / "history", tmp_path / "store"

    def opened(queries: Any, given: dict[str, str], derived: dict[str, str]) -> Any:
        every = {**given, **derived}
        join = ChainJoin(
            2, 100, queries, lateness_us=1000, history=True, r_columns=every, s_columns=every
        )
        r, s = from_history(spark, history, r_columns=given, s_columns=given)
        return join.stream(with_more(r), with_more(s), store)

    land(history, ("R", "a", 1.0, 5.0), ("S", "a", 9.0, 5.5), ("S", None, None, 5.0))
    first = opened({"far": QUERIES["far"]}, NUMBERS, {})
    for early in ({"query": "far"}, {"select": ["r.pm25"]}):
        with pytest.raises(InputProblem, match=" has no epoch yet, and so neither queries nor"):
            results(spark, store, **early)
    first.run_available()
    assert {*counted(results(spark, store, query="far"))} == {("far", 0, 1)}
    land(history, ("R", "a", None, 5.0), ("R", "b", 20.0, None), ("S", "b", 30.0, 6.0))
    site, *derived = MORE
    now = {**NUMBERS, site: MORE[site]}, {name: MORE[name] for name in derived}
    stream = opened(QUERIES, *now)
    with pytest.raises(InputProblem, match="R has no column 'pm10'; it has key, value, event_time"):
        submit(store, "new", "r.pm10 apart 4 of s.pm10")
    stream.flush()
    far = {(0, 1), (0, 12), (11, 1), (11, 12)}
    assert {*counted(results(spark, store))} == {
        *(("far", *pair) for pair in far),
        *((name, 11, 12) for name in ("same", "soon", "own")),
    }
    asked = ("r.site", "s.pm25", "s.at", "r.valid", "s.event_time", "r.value")
    chosen = results(spark, store, query="far", select=asked)
    assert chosen.columns[4:] == [each.replace(".", "_") for each in asked]
    numbers = chosen.withColumn("s_at", F.unix_micros("s_at"))
    found = numbers.withColumn("s_event_time", F.unix_micros("s_event_time")).collect()
    assert {(row.r_id, row.s_id): tuple(row)[4:] for row in found} == {
        (0, 1): (None, 9.0, None, None, 1, 0.0),
        (0, 12): (None, 30.0, 12, None, 12, 0.0),
        (11, 1): ("b", 9.0, None, True, 1, 0.0),
        (11, 12): ("b", 30.0, 12, True, 12, 0.0),
    }
    refused: dict[str, dict[str, Any]] = {
        "^there is no query 'pm01'; there are far, same, soon, own$": {"query": "pm01"},
        "^R has no column 'pm01'; it has key, value, event_time, pm25": {"select": ["r.pm01"]},
        "^select has 'pm25'; it must have columns such as 'r.key'$": {"select": ["pm25"]},
    }
    for sentence, wrong in refused.items():
        with pytest.raises(InputProblem, match=sentence):
            results(spark, store, **wrong)
    with pytest.raises(InputProblem, match=r"^R has the column 'site' \(text\) in this chain, but"):
        opened({"far": QUERIES["far"]}, NUMBERS, {})
