"""Cells of a table: the one reader against an oracle, and what is landed."""

from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from model.vocabulary import stable_hash
from model.vocabulary.windows import REASON_FUTURE
from spark_impl.runtime import cells
from spark_impl.runtime.landing import Landing
from spark_impl.runtime.storage import InputProblem
from tests.harness.cells import time_of

UNITS = ("us", "ms", "s", "ns")
HALVES = st.builds(
    lambda whole, unit: (whole + 0.5) / unit,
    st.integers(-(10**6), 10**6),
    st.sampled_from([1.0, 1e3, 1e6]),
)


def times(values: list[object], unit: str, kind: pa.DataType = None) -> list[int | None]:
    found = cells.read_times(pa.array(values, kind), unit)
    assert [each is None for each in found.values.to_pylist()] == [
        each is not None for each in found.reason.to_pylist()
    ]
    return list(found.values.to_pylist())


def numbers(values: list[object], kind: pa.DataType = None) -> list[float | None]:
    return list(cells.read_numbers(pa.array(values, kind)).values.to_pylist())


# -- by hand ---------------------------------------------------------------------------------------

MAY_1_US = 1_714_521_600_000_000
HOUR_US = 3_600_000_000


def test_a_time_without_a_zone_is_utc_whatever_the_rows_around_it_say() -> None:
    rows: list[object] = ["2024-05-01T02:30:00+02:00", "2024-05-01T02:30:00", "2024-05-01"]
    expected = [MAY_1_US + HOUR_US // 2, MAY_1_US + 5 * HOUR_US // 2, MAY_1_US]
    assert times(rows, "iso") == expected
    assert times(rows[::-1], "iso") == expected[::-1]


@pytest.mark.parametrize(
    "text",
    ["2024-W18-3", "2024-05-01T00:00+24:00", "2024-05-01T24:00", "12:30", "now", "0000-01-01"],
)
def test_texts_that_are_no_calendar_time_are_refused(text: str) -> None:
    assert times([text], "iso") == [None]


def test_a_wall_clock_stays_as_it_is() -> None:
    skipped = datetime.fromisoformat("2024-03-10T02:30")  # New York's clocks skip this hour
    assert times([skipped], "us") == [1_710_037_800_000_000]


@pytest.mark.parametrize(
    ("number", "unit", "like"),
    [
        (MAY_1_US // 1_000, "s", "ms"),
        (MAY_1_US, "s", "us"),
        (MAY_1_US * 1_000, "s", "ns"),
        (MAY_1_US, "ms", "us"),
        (MAY_1_US * 1_000, "us", "ns"),
    ],
)
def test_a_time_in_a_finer_unit_is_named(number: int, unit: str, like: str) -> None:
    for cell in (number, str(number), f"{number}.5", Decimal(number)):
        (reason,) = cells.read_times(pa.array([cell]), unit).reason.to_pylist()
        assert reason == f"lies outside of the years 1 to 9999 in {unit}; it looks like {like}"


def test_a_large_number_is_exact_or_refused_in_every_notation() -> None:
    texts: list[object] = ["9007199254740993", "9007199254740993.0", "12345678901234567.89"]
    assert numbers(texts) == [None] * 3
    assert numbers(["18014398509481984", "18014398509481984.0", "1e300"]) == [
        2.0**54,
        2.0**54,
        1e300,
    ]
    assert numbers([9007199254740993, 2**54, 2**63 - 1]) == [None, 2.0**54, None]
    assert numbers([Decimal("12345678901234567.89"), Decimal("0.10")]) == [None, 0.1]
    assert numbers(["9007199254740991.5", "-9007199254740992.5"]) == [2.0**53, None]
    assert numbers(["1e999", "0x1p3", "1f", "1_000"]) == [None] * 4


def test_an_exponent_does_not_hide_digits_that_are_written() -> None:
    texts: list[object] = ["9007199254740993e0", "9.007199254740993E+15", "90071992547409930e-1"]
    assert numbers(texts) == [None] * 3
    assert numbers(["1801439850948198.4e1", "9007199254740994e0"]) == [2.0**54, 2.0**53 + 2]
    shortest: list[object] = [repr(2.0**power) for power in range(53, 1024)]
    assert numbers(shortest) == [2.0**power for power in range(53, 1024)]
    assert numbers(["9.007199254740993e16", "9007199254740991." + "9" * 30]) == [
        90071992547409936,
        2.0**53,
    ]


def test_identities_are_integers_or_keep_their_text() -> None:
    texts = ["5", "05", "-0", str(2**63), str(-(2**63)), "uuid", None]
    found = cells.read_identities(pa.array(texts))
    hashed = [None if each is None else stable_hash(each) for each in texts]
    assert found.values.to_pylist() == [5, *hashed[1:4], -(2**63), hashed[5], None]
    assert found.texts is not None
    assert found.texts.to_pylist() == texts
    assert cells.read_identities(pa.array([7, None])).texts is None


def test_keys_are_exact() -> None:
    assert cells.read_keys(pa.array([" a ", None])).values.to_pylist() == [" a ", None]
    assert cells.read_keys(pa.array([-5])).values.to_pylist() == ["-5"]
    found = cells.read_keys(pa.array([b"\xc3\xa4", b"\xff"]))
    assert found.values.to_pylist() == ["\u00e4", None]
    assert found.reason.to_pylist() == [None, "is not text in UTF-8"]


# -- drawn -----------------------------------------------------------------------------------------


@given(st.sampled_from(UNITS), st.lists(st.floats(-1e12, 1e12) | st.floats() | HALVES, max_size=20))
def test_float_times_are_the_nearest_microsecond(unit: str, values: list[float]) -> None:
    assert times([*values], unit, pa.float64()) == [time_of(value, unit) for value in values]


def test_a_float_time_is_rounded_once() -> None:
    """Products of floats are rounded themselves: 1 us off now, 4 us in the year 5000."""
    values: list[object] = [955114177.3528835, -57936447452.25319, 84226242179.22504, 3.5e-6]
    exact = [955114177352883, -57936447452253189, 84226242179225037, 3]
    assert times(values, "s", pa.float64()) == exact
    numbers_of_ns: list[object] = [-9.897531298104007e18, 9.522590888958423e18, 2.2887771564609e17]
    exact = [-9897531298104007, 9522590888958423, 228877715646090]
    assert times(numbers_of_ns, "ns", pa.float64()) == exact


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
        wanted = {"event_time": "t", "value": "v", **columns}
        landing = Landing(stream, folder / "history", folder / "checkpoint", **wanted)
        landing.run_available()
        return landing

    return run


def history(tmp_path: Path, name: str = "one") -> list[dict[str, Any]]:
    """Return the arrivals that were landed."""
    files = sorted((tmp_path / name / "history").glob("[!._]*.parquet"))
    return [row for file in files for row in pq.read_table(file).to_pylist()]


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
