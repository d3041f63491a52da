"""Landed cells: identities, numbers and times as a user finds them in the field."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from model.vocabulary import stable_hash
from model.vocabulary.windows import REASON_FUTURE
from spark_impl.runtime.landing import Landing
from spark_impl.runtime.storage import InputProblem

MAY_1_US = 1_714_521_600_000_000
HOUR_US = 3_600_000_000
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
        wanted = {"event_time": "t", "value": "v", **columns}
        landing = Landing(stream, folder / "history", folder / "checkpoint", **wanted)
        landing.run_available()
        return landing

    return run


def history(tmp_path: Path, name: str = "one") -> list[dict[str, Any]]:
    """Return the arrivals that were landed."""
    files = sorted((tmp_path / name / "history").glob("[!._]*.parquet"))
    return [row for file in files for row in pq.read_table(file).to_pylist()]


def test_a_zone_is_that_of_its_own_row(land: Land, tmp_path: Path) -> None:
    texts = ["2024-05-01T02:30:00+02:00", "2024-05-01T02:30:00", "2024-05-01T02:30:00Z"]
    expected = [MAY_1_US + HOUR_US // 2, *[MAY_1_US + 5 * HOUR_US // 2] * 2]
    land(pa.table({"t": texts, "v": [1.0] * 3}))
    assert [row["event_time_us"] for row in history(tmp_path)] == expected


def test_text_identities_are_taken_and_kept(land: Land, tmp_path: Path) -> None:
    texts = ["6fa459ea-ee8a-3ca4-894e-db77e160355e", "7", "007"]
    landing = land(pa.table({"t": [MAY_1_2024] * 3, "v": [1.0] * 3, "i": texts}), source_id="i")
    assert landing.counts() == (3, 0)
    found = [(row["source_id"], row["source_text"]) for row in history(tmp_path)]
    assert found == [(stable_hash(texts[0]), texts[0]), (7, "7"), (stable_hash("007"), "007")]
    assert {tuple(row) for row in landing.identities().collect()} == {*found}
    numbers = land(pa.table({"t": [MAY_1_2024], "v": [1.0], "i": [7]}), "numbers", source_id="i")
    with pytest.raises(InputProblem, match="landed as numbers, which have no text"):
        numbers.identities()


def test_a_clock_that_runs_years_ahead_closes_no_window(land: Land, tmp_path: Path) -> None:
    ahead = "2031-01-01T00:00:00Z"
    table = pa.table({"t": [MAY_1_2024, ahead], "v": [1.0, 2.0], "a": [MAY_1_2024] * 2})
    (bad,) = land(table, arrival="a").rejected().collect()
    assert (bad.column, bad.reason, bad.text) == ("t", REASON_FUTURE, ahead)
    assert len(history(tmp_path)) == 1
    land(table, "unguarded", arrival="a", max_future=None)
    assert len(history(tmp_path, "unguarded")) == 2
    with pytest.raises(InputProblem, match="max_future is 5; it must be a text such as '6 hours'"):
        land(table, "wrong", max_future=5)
    for negative in ("-1 day", timedelta(microseconds=-1)):
        with pytest.raises(InputProblem, match="it must be a duration >= 0, or None for no guard"):
            land(table, "wrong", max_future=negative)


def test_the_guard_is_a_day_and_can_be_chosen(land: Land, tmp_path: Path) -> None:
    ahead = ["2024-05-02T00:00:00Z", "2024-05-02T00:00:00.000001Z", "2024-05-01T01:00:00Z"]
    table = pa.table({"t": ahead, "v": [1.0, 2.0, 3.0], "a": [MAY_1_2024] * 3})
    land(table, arrival="a")
    assert [row["value"] for row in history(tmp_path)] == [1.0, 3.0]
    land(table, "hour", arrival="a", max_future="1 hour")
    assert [row["value"] for row in history(tmp_path, "hour")] == [3.0]
