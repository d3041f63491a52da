"""Files that could be read wrong without a word: refused, or read to the last digit."""

from math import isnan
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from model.vocabulary import stable_hash
from properties.data.tables import DEFAULT_COLUMNS, Columns, Recording, read_table
from properties.errors import UsageError
from tests.properties.csv_files import csv, refusal

LIMIT = 2**53
RANGE = "within 2**53 microseconds of 1970 (the years 1684 to 2255), the times that are exact"


def table(folder: Path, columns: Columns = DEFAULT_COLUMNS, **arrays: Any) -> Recording:
    path = folder / "data.parquet"
    parquet.write_table(pa.table({"event_time": [1, 2], "value": [1.0, 2.0], **arrays}), path)
    return read_table(path, columns)


def table_refusal(folder: Path, columns: Columns = DEFAULT_COLUMNS, **arrays: Any) -> str:
    with pytest.raises(UsageError) as refused:
        table(folder, columns, **arrays)
    return str(refused.value)


def times(folder: Path, unit: str, *written: str) -> list[int]:
    text = "event_time,value\n" + "".join(f"{time},1\n" for time in written)
    events = csv(folder, text, Columns(time_unit=unit)).events
    return [event.event_time_us for event in events]


def times_refusal(folder: Path, unit: str, *written: str) -> str:
    with pytest.raises(UsageError) as refused:
        times(folder, unit, *written)
    return str(refused.value)


# --------------------------------------------------------------------------------------- files


def test_rows_longer_than_the_header(tmp_path: Path) -> None:
    sentence = refusal(tmp_path, "event_time,value\n1,2,3\n5,6,7\n")
    assert sentence == "data.csv has 3 fields in line 2, its header has 2"
    sentence = refusal(tmp_path, "event_time,value\n1,2\n5,6,7,8\n")
    assert sentence == "data.csv has 4 fields in line 3, its header has 2"


def test_rows_shorter_than_the_header_have_nulls(tmp_path: Path) -> None:
    sentence = refusal(tmp_path, "event_time,value\n1,2\n5\n")
    assert sentence == "column 'value' has 1 NULL value, in row 2"


def test_columns_that_come_twice(tmp_path: Path) -> None:
    sentence = refusal(tmp_path, "event_time,value,value\n1,2,3\n")
    assert sentence == "data.csv has more than one column 'value'"
    path = tmp_path / "twice.parquet"
    names = ["event_time", "value", "value"]
    parquet.write_table(pa.Table.from_arrays([pa.array([1])] * 3, names), path)
    with pytest.raises(UsageError, match=r"^twice\.parquet has more than one column 'value'$"):
        read_table(path)


def test_folders(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        read_table(tmp_path)
    assert str(refused.value) == f"{str(tmp_path)!r} is a folder, not a Parquet or CSV file"


def test_folder_names_add_no_columns(tmp_path: Path) -> None:
    folder = tmp_path / "key=a"
    folder.mkdir()
    assert [event.key for event in table(folder).events] == ["", ""]


def test_columns_that_pandas_saved_as_its_index_are_columns(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    frame = pa.table({"event_time": [7], "value": [1.0]}).to_pandas().set_index("event_time")
    frame.to_parquet(path)
    assert read_table(path).events[0].event_time_us == 7


# --------------------------------------------------------------------------------------- times


@pytest.mark.parametrize(
    ("unit", "last", "beyond"),
    [
        ("us", str(LIMIT), str(LIMIT + 1)),
        ("us", str(-LIMIT), str(-LIMIT - 1)),
        ("us", "0", "99999999999999999999"),
        ("us", "0", "-9223372036854775808"),
        ("us", "0", str(2**63 + 5)),
        ("us", "0", "1e300"),
        ("ms", str(LIMIT // 1_000), "9223372036854775"),
        ("s", "9007199254.740992", "9007199254.740993"),
        ("ns", str(LIMIT * 1_000), str(LIMIT * 1_000 + 1)),
        ("iso", "2255-06-05T23:47:34.740992Z", "2255-06-05T23:47:34.740993Z"),
        ("iso", "1684-07-28T00:12:25.259008Z", "9999-01-01"),
        ("iso", "2000-01-01", "0001-01-01T00:00:00"),
    ],
)
def test_times_that_are_not_exact(tmp_path: Path, unit: str, last: str, beyond: str) -> None:
    assert abs(times(tmp_path, unit, last)[0]) <= LIMIT
    sentence = times_refusal(tmp_path, unit, last, beyond)
    assert sentence == f"column 'event_time' has {beyond!r} in row 2, which is not {RANGE}"


def test_times_in_parquet_that_are_not_exact(tmp_path: Path) -> None:
    far = pa.array([0, 2**63 + 5], pa.uint64())
    sentence = table_refusal(tmp_path, event_time=far)
    assert sentence == f"column 'event_time' has '{2**63 + 5}' in row 2, which is not {RANGE}"
    far = pa.array([0, 1e300])
    sentence = table_refusal(tmp_path, event_time=far)
    assert sentence == f"column 'event_time' has '1e+300' in row 2, which is not {RANGE}"
    far = pa.array([0, 2**60], pa.timestamp("ms"))  # no Python date
    sentence = table_refusal(tmp_path, event_time=far)
    assert sentence == f"column 'event_time' has '{2**60}' in row 2, which is not {RANGE}"
    sentence = table_refusal(tmp_path, Columns(time_unit="s"), event_time=pa.array([0, LIMIT]))
    assert sentence == f"column 'event_time' has '{LIMIT}' in row 2, which is not {RANGE}"


def test_fractions_are_converted_to_the_last_digit(tmp_path: Path) -> None:
    assert times(tmp_path, "s", "1.5", "9007199253", "-0.000001") == [
        1_500_000,
        9_007_199_253_000_000,
        -1,
    ]
    assert times(tmp_path, "ms", "1.001", "2") == [1_001, 2_000]
    assert times(tmp_path, "us", "9007199254740991", "20.0", "2e3") == [LIMIT - 1, 20, 2_000]
    assert times(tmp_path, "ns", "1999", "2000.0") == [1, 2]


@pytest.mark.parametrize(
    ("unit", "written", "finest"),
    [
        ("us", "20.5", "microseconds"),
        ("us", "9000000000000000.4", "microseconds"),
        ("us", "1.00000000000000000000000000000000000001", "microseconds"),
        ("ms", "0.0001", "microseconds"),
        ("s", "1415624019.8620001", "microseconds"),
        ("ns", "0.5", "nanoseconds"),
    ],
)
def test_fractions_of_the_finest_unit(tmp_path: Path, unit: str, written: str, finest: str) -> None:
    sentence = times_refusal(tmp_path, unit, "1", written)
    assert sentence == (
        f"column 'event_time' has {written!r} in row 2, which is not a whole number of {finest}"
    )


def test_floats_in_parquet_are_the_microseconds_that_they_stand_for(tmp_path: Path) -> None:
    seconds = Columns(time_unit="s")
    events = table(tmp_path, seconds, event_time=pa.array([0.1, 1415624019.862])).events
    assert [event.event_time_us for event in events] == [100_000, 1_415_624_019_862_000]
    sentence = table_refusal(tmp_path, seconds, event_time=pa.array([0.1, 0.1 + 0.2]))
    assert sentence == (
        "column 'event_time' has '0.30000000000000004' in row 2,"
        " which is not a whole number of microseconds"
    )
    sentence = table_refusal(tmp_path, event_time=pa.array([1.0, float("nan")]))
    assert sentence == "column 'event_time' has 'nan' in row 2, which is not a time in us"


@pytest.mark.parametrize("written", ["now", "today", "nan", ""])
def test_iso_times_have_digits(tmp_path: Path, written: str) -> None:
    sentence = times_refusal(tmp_path, "iso", "2014-11-10", written)
    reason = f"{written!r} in row 2, which is not an ISO 8601 time" if written else "1 NULL value"
    assert sentence.startswith(f"column 'event_time' has {reason}")


# -------------------------------------------------------------------------------------- values


def test_fractions_do_not_hide_integers_that_are_not_exact(tmp_path: Path) -> None:
    sentence = refusal(tmp_path, f"event_time,value\n1,1.5\n2,{LIMIT + 1}\n")
    assert sentence == (
        f"column 'value' has '{LIMIT + 1}' in row 2, which is not exact as a 64-bit float"
    )
    events = csv(tmp_path, f"event_time,value\n1,1.5\n2,{LIMIT}\n3,1e300\n").events
    assert [event.value for event in events] == [1.5, float(LIMIT), 1e300]


@pytest.mark.parametrize("number", [2**63 + 5, 2**64 - 1])
def test_unsigned_values(tmp_path: Path, number: int) -> None:
    sentence = table_refusal(tmp_path, value=pa.array([1, number], pa.uint64()))
    assert (
        sentence == f"column 'value' has '{number}' in row 2, which is not exact as a 64-bit float"
    )


def test_the_least_integer_has_no_absolute_value(tmp_path: Path) -> None:
    sentence = table_refusal(tmp_path, value=pa.array([1, -(2**63)]))
    assert (
        sentence
        == f"column 'value' has '{-(2**63)}' in row 2, which is not exact as a 64-bit float"
    )


@pytest.mark.parametrize("written", ["nan", "NaN", "inf", "-Infinity", "1e400"])
def test_values_that_are_not_finite(tmp_path: Path, written: str) -> None:
    sentence = refusal(tmp_path, f"event_time,value\n1,1\n2,{written}\n")
    assert sentence == f"column 'value' has {written!r} in row 2, which is not a finite number"


@pytest.mark.parametrize("written", ["NA", "True", "0x10", "1_0", "١"])
def test_values_that_are_not_numbers(tmp_path: Path, written: str) -> None:
    sentence = refusal(tmp_path, f"event_time,value\n1,1\n2,{written}\n")
    assert sentence == f"column 'value' has {written!r} in row 2, which is not a number"


def test_not_a_number_in_parquet(tmp_path: Path) -> None:
    sentence = table_refusal(tmp_path, value=pa.array([1.0, float("nan")]))
    assert sentence == "column 'value' has 'nan' in row 2, which is not a finite number"


LACKING = Columns(may_lack_values=True)


def test_values_may_lack_if_the_caller_allows_it(tmp_path: Path) -> None:
    text = "event_time,value\n1,\n2,NaN\n3,-inf\n4,1e400\n5,7\n6,2.5\n"
    assert repr([event.value for event in csv(tmp_path, text, LACKING).events]) == (
        "[nan, nan, nan, nan, 7.0, 2.5]"
    )


@pytest.mark.parametrize(
    "values",
    [
        pa.array([None, 7]),
        pa.array([float("nan"), 7.0]),
        pa.array([float("inf"), 7.0]),
        pa.array([None, "7"]),
        pa.array([None, 7.0]),
        pa.array([None, 7], pa.decimal128(5, 2)),
    ],
)
def test_values_may_lack_in_parquet(tmp_path: Path, values: pa.Array) -> None:
    lacking, other = table(tmp_path, LACKING, value=values).events
    assert isnan(lacking.value)
    assert other.value == 7


@pytest.mark.parametrize("values", [pa.nulls(2), pa.nulls(2, pa.int64()), pa.nulls(2, pa.string())])
def test_all_values_may_lack(tmp_path: Path, values: pa.Array) -> None:
    assert all(isnan(event.value) for event in table(tmp_path, LACKING, value=values).events)


def test_values_that_lack_make_no_other_check_less_strict(tmp_path: Path) -> None:
    sentence = refusal(tmp_path, "event_time,value\n1,\n2,\n3,NA\n", LACKING)
    assert sentence == "column 'value' has 'NA' in row 3, which is not a number"
    sentence = table_refusal(tmp_path, LACKING, value=pa.array([None, LIMIT + 1]))
    assert sentence == (
        f"column 'value' has '{LIMIT + 1}' in row 2, which is not exact as a 64-bit float"
    )
    sentence = refusal(tmp_path, "event_time,value\n1,\n,2\n", LACKING)
    assert sentence == "column 'event_time' has 1 NULL value, in row 2"
    sentence = refusal(tmp_path, "event_time,value,key\n1,,a\n2,2,\n", LACKING)
    assert sentence == "column 'key' has 1 NULL value, in row 2"


def test_a_value_that_lacks_again_is_a_redelivery(tmp_path: Path) -> None:
    columns = Columns(id="id", may_lack_values=True)
    text = "event_time,value,id\n1,,a\n1,nan,a\n"
    assert len({event.source_id for event in csv(tmp_path, text, columns).events}) == 1
    sentence = refusal(tmp_path, f"{text}1,3,a\n", columns)
    assert sentence == (
        "identity 'a' is in row 1 and in row 3 with another value; a redelivery repeats its tuple"
    )


# ---------------------------------------------------------------------------- keys, identities


def test_keys_may_be_called_like_nulls(tmp_path: Path) -> None:
    names = ["NA", "NULL", "nan", "None"]
    text = "event_time,value,key\n" + "".join(f"1,1,{name}\n" for name in names)
    assert [event.key for event in csv(tmp_path, text).events] == names
    sentence = refusal(tmp_path, "event_time,value,key\n1,1,NA\n1,1,\n")
    assert sentence == "column 'key' has 1 NULL value, in row 2"


def test_keys_that_are_not_a_number_are_null(tmp_path: Path) -> None:
    sentence = table_refusal(tmp_path, key=pa.array([1.0, float("nan")]))
    assert sentence == "column 'key' has 1 NULL value, in row 2"


@pytest.mark.parametrize("column", ["event_time", "value", "key", "id"])
def test_types_that_are_no_scalars(tmp_path: Path, column: str) -> None:
    columns = Columns(id="id" if column == "id" else None)
    sentence = table_refusal(tmp_path, columns, **{column: pa.array([b"a", b"b"])})
    assert sentence == f"column {column!r} is of type binary, not of numbers, text or times"
    sentence = table_refusal(tmp_path, columns, **{column: pa.array([[1], [2]])})
    assert sentence == (
        f"column {column!r} is of type list<element: int64>, not of numbers, text or times"
    )


def ids(folder: Path, *written: str) -> list[int]:
    rows = "".join(f"{row},1,{text}\n" for row, text in enumerate(written))
    events = csv(folder, f"event_time,value,id\n{rows}", Columns(id="id")).events
    return [event.source_id for event in events]


def test_identities_are_integers_only_if_all_are_written_plainly(tmp_path: Path) -> None:
    assert ids(tmp_path, "1", "-2", str(2**63 - 1)) == [1, -2, 2**63 - 1]
    for texts in (["01", "1", "001"], ["1", "+2"], ["0", "-0"], ["1", str(2**63)], ["1", "1.0"]):
        assert ids(tmp_path, *texts) == [stable_hash(text) for text in texts]


@pytest.mark.parametrize(
    ("row", "what"), [("2,1,a", "event time"), ("1,2,a", "value"), ("1,1,b", "key")]
)
def test_identity_of_two_tuples(tmp_path: Path, row: str, what: str) -> None:
    text = f"event_time,value,key,id\n1,1,a,01\n5,5,a,02\n1,1,a,01\n{row},01\n"
    sentence = refusal(tmp_path, text, Columns(id="id"))
    assert sentence == (
        f"identity '01' is in row 1 and in row 4 with another {what};"
        " a redelivery repeats its tuple"
    )


def test_redelivery_at_another_time(tmp_path: Path) -> None:
    text = "event_time,value,arrival_time,id\n1,1,5,7\n1,1,9,7\n"
    events = csv(tmp_path, text, Columns(id="id")).events
    assert [(event.source_id, event.arrival_us) for event in events] == [(7, 5), (7, 9)]
