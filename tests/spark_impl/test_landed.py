"""Rows that are landed: their cells and their order."""

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from spark_impl.runtime.cell_arrays import shown
from spark_impl.runtime.columns import REASON_FUTURE, in_order
from spark_impl.runtime.landing import Landing
from spark_impl.runtime.storage import InputProblem
from tests.spark_impl.test_landing import landing_of, rows

FAR = st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1), st.integers(-(2**40), 2**40))
WIDE = [pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.timestamp("s"), pa.duration("us")]


@given(kind=st.sampled_from([*WIDE, pa.date32()]), numbers=st.lists(FAR, max_size=5))
@example(kind=WIDE[0], numbers=[4 * 10**18, None, 0])
def test_a_row_is_shown_whatever_times_are_in_it(
    kind: pa.DataType, numbers: list[int | None]
) -> None:
    """Spark's times leave the years that Python has, where milliseconds are taken for seconds."""
    ends = (-(2**31), 2**31 - 1) if kind == pa.date32() else (-(2**63), 2**63 - 1)
    held = [each for each in numbers if each is None or ends[0] <= each <= ends[1]]
    column = pa.array(held, pa.int32() if kind == pa.date32() else pa.int64()).cast(kind)
    whole = pa.StructArray.from_arrays([column], ["t"])
    cells = shown(column)
    assert [each is None for each in cells] == [each is None for each in held]
    assert shown(whole) == [{"t": each} for each in cells]
    for number, cell in zip(held, cells, strict=True):
        alone = pa.array([number], column.type)
        try:
            assert cell == alone[0].as_py()
        except (OverflowError, ValueError):
            assert str(cell).isprintable()
            assert str(number) in str(cell) or re.match(r"-?\d+-\d\d-\d\d", str(cell))


# ----------------------------------------------------------------------------------------- landed


MAY_1_2024 = "2024-05-01T00:00:00Z"
Land = Callable[..., Landing]


@pytest.fixture
def land(spark: SparkSession, tmp_path: Path) -> Land:
    """Return a function that lands a table of Arrow's in a session of New York's zone."""
    own = spark.newSession()
    own.conf.set("spark.sql.session.timeZone", "America/New_York")

    def run(table: pa.Table, name: str = "one", **columns: Any) -> Landing:
        folder = tmp_path / name
        (folder / "in").mkdir(parents=True, exist_ok=True)
        files = len([*(folder / "in").iterdir()])
        pq.write_table(table, folder / "in" / f"{files}.parquet")
        schema = own.read.parquet(str(folder / "in")).schema
        stream = own.readStream.schema(schema).parquet(str(folder / "in"))
        wanted = {"event_time": "t", "key": None, "time_unit": "timestamp", **columns}
        landing = landing_of(stream, folder, **wanted)
        landing.run_available()
        return landing

    return run


def test_a_clock_that_runs_ahead_closes_no_window(land: Land, tmp_path: Path) -> None:
    """The guard is a day, and can be chosen."""
    ahead = ["2024-05-02T00:00:00Z", "2024-05-02T00:00:00.000001Z", "2024-05-01T01:00:00Z"]
    table = pa.table({"t": ahead, "v": [1.0, 2.0, 3.0], "a": [MAY_1_2024] * 3})
    for name, kept, guard in (
        ("one", [1.0, 3.0], {}),
        ("hour", [3.0], {"max_future": "1 hour"}),
        ("at_once", [], {"max_future": "0 s"}),
        ("unguarded", [1.0, 2.0, 3.0], {"max_future": None}),
    ):
        landing = land(table, name, arrival="a", **guard)
        assert rows(tmp_path / name, "value") == [(value,) for value in kept]
        bad = {(row.column, row.reason, row.text) for row in landing.rejected().collect()}
        refused = [text for row, text in enumerate(ahead, 1) if row not in kept]
        assert bad == {("t", REASON_FUTURE, text) for text in refused}
    for wrong, sentence in (
        (5, "max_future is 5; it must be a text such as '6 hours'"),
        ("-1 day", "it must be a duration >= 0, or None for no guard"),
        (timedelta(microseconds=-1), "it must be a duration >= 0, or None for no guard"),
    ):
        with pytest.raises(InputProblem, match=sentence):
            land(table, "wrong", max_future=wrong)


# ------------------------------------------------------------------------------ order of arrival


def put_rows(folder: Path, name: str, rows: Sequence[Mapping[str, Any]], at_s: int = 1_000) -> None:
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
    landing = landing_of(stream, tmp_path, key=None, arrival="at", time_unit="us")
    put_rows(tmp_path / "in", "a", [{"ts": 5, "at": -9, "v": 0}, {"ts": 1, "at": 40, "v": 3}])
    put_rows(tmp_path / "in", "b", [{"ts": 9, "at": 20, "v": 1}, {"ts": 2, "at": 30, "v": 2}])
    landing.run_available()
    put_rows(tmp_path / "in", "c", [{"ts": 7, "at": 35, "v": 4}, {"ts": 6, "at": 50, "v": 5}])
    landing.run_available()
    assert rows(tmp_path, "value", "event_time_us", "arrival_us") == [
        (0, 5, -9),
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
    def record(partition: int, offset: int, time_s: int) -> dict[str, Any]:
        stamp = f"1970-01-01T00:00:{time_s:02}Z"
        where = {"topic": "t", "partition": partition, "offset": offset, "timestamp": stamp}
        return {**where, "ts": 100 * partition + offset}

    # A producer was slow: in partition 0, offset 11 has an earlier timestamp than offset 10.
    put_rows(
        tmp_path / "in",
        "a",
        [record(0, 9, 1), record(0, 10, 20), record(0, 11, 3), record(0, 12, 30)],
        3_000,
    )
    put_rows(
        tmp_path / "in",
        "b",
        [record(1, 5, 2), record(1, 6, 4), record(1, 7, 20), record(1, 8, 40)],
        2_000,
    )
    stream = stream_of(spark, tmp_path / "in", KAFKA)
    landing_of(stream, tmp_path, value="offset", key=None, time_unit="us").run_available()
    found = [ts for (ts,) in rows(tmp_path, "event_time_us")]
    assert found == [9, 105, 106, 10, 11, 107, 12, 108]


def test_partitions_of_other_sources_take_turns(spark: SparkSession) -> None:
    found = in_order(spark.range(0, 9, 1, 3), by_arrival=False).collect()
    assert [row.id for row in found] == [0, 3, 6, 1, 4, 7, 2, 5, 8]
