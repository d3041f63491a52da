"""Files of users: rows are read to the last digit, or set aside with a reason and their line."""

from datetime import date
from decimal import Decimal
from math import inf, nan
from pathlib import Path

import pyarrow as pa
import pytest

from model.vocabulary import stable_hash
from straggler.inputs.tables import Columns, read_table
from tests.straggler.written_files import csv, table

FIRST_US, LAST_US = -62_135_596_800_000_000, 253_402_300_799_999_999
"""First and last microsecond of the years 1 to 9999."""


# ------------------------------------------------------------------------------------------- rows


def test_rows_without_arrival_arrive_in_file_order_as_early_as_possible(tmp_path: Path) -> None:
    events = csv(tmp_path, "event_time,value,key\n5,1,a\n3,2.5,b\n9,3,a\n").events
    assert [tuple(event)[:6] for event in events] == [
        (0, 0, "a", 5, 1.0, 5),
        (1, 1, "b", 3, 2.5, 5),
        (2, 2, "a", 9, 3.0, 9),
    ]


def test_rows_with_arrival_are_sorted_by_it_and_ties_stay(tmp_path: Path) -> None:
    events = csv(tmp_path, "event_time,value,arrival_time\n5,1,30\n3,2,10\n9,3,30\n").events
    assert [event.event_time_us for event in events] == [3, 5, 9]
    assert [event.arrival_us for event in events] == [10, 30, 30]
    assert [event.source_id for event in events] == [1, 0, 2]


def test_columns_of_any_name_and_separator(tmp_path: Path) -> None:
    columns = Columns("t", "fare", "zone", "seen", "trip", "s", ";")
    events = csv(tmp_path, "trip;t;seen;zone;fare\nx1;1;2;A;4\nx1;1;3;A;4\n", columns).events
    assert [event.source_id for event in events] == [stable_hash("x1")] * 2
    assert events[0].key == "A"
    assert events[0].arrival_us == 2_000_000


def test_folder_names_add_no_columns_and_an_index_of_pandas_is_one(tmp_path: Path) -> None:
    folder = tmp_path / "key=a"
    folder.mkdir()
    assert [event.key for event in table(folder).events] == ["", ""]
    frame = pa.table({"event_time": [7], "value": [1.0]}).to_pandas().set_index("event_time")
    frame.to_parquet(tmp_path / "data.parquet")
    assert read_table(tmp_path / "data.parquet").events[0].event_time_us == 7


# --------------------------------------------------------------------------------- times and values


@pytest.mark.parametrize(
    ("unit", "written", "us"),
    [
        ("us", str(LAST_US), LAST_US),
        ("us", str(FIRST_US), FIRST_US),
        ("us", str(LAST_US + 1), None),
        ("us", str(FIRST_US - 1), None),
        ("us", "99999999999999999999", None),
        ("us", "-9223372036854775808", None),
        ("us", str(2**63 + 5), None),
        ("ms", str(LAST_US // 1_000), LAST_US // 1_000 * 1_000),
        ("s", "253402300799", 253_402_300_799_000_000),
        ("s", "253402300800", None),
        ("ns", str(LAST_US * 1_000 + 999), LAST_US),
        ("iso", "9999-12-31T23:59:59.999999Z", LAST_US),
        ("iso", "0001-01-01T00:00:00", FIRST_US),
        ("iso", "1684-07-28T00:12:25.259007Z", -(2**53) - 1),
        ("iso", "0001-01-01T00:00:00+01:00", None),
        ("us", "9007199254740993", 2**53 + 1),
        ("us", " 5 ", 5),
        ("us", "20.5", 20),
        ("us", "-20.5", -21),
        ("us", "1.00000000000000000000000000000000000001", 1),
        ("ms", "0.0009", 0),
        ("ms", "1.001", 1_001),
        ("s", "1.5", 1_500_000),
        ("s", "-0.000001", -1),
        ("s", "1415624019.8629999", 1_415_624_019_862_999),
        ("ms", "1415624019862", 1_415_624_019_862_000),
        ("iso", "2014-11-10 13:53:39.862+01:00", 1_415_624_019_862_000),
        ("ns", "1999", 1),
        ("ns", "-1", -1),
        ("us", "nan", None),
        ("us", "", None),
        ("us", "1_0", None),
        ("us", "2014-11-10", None),
        ("iso", "now", None),
        ("iso", "today", None),
        ("iso", "2014-13-01", None),
        ("iso", "2024-W18-3", None),
        ("iso", "2024-123", None),
        ("iso", "12:30", None),
        ("iso", "2024-05-01T24:00", None),
        ("iso", "2024-05-01T00:00+24:00", None),
        ("iso", "2024-05-01", 1_714_521_600_000_000),
        ("iso", "2024-05-01T02:30:00+0230", 1_714_521_600_000_000),
        ("iso", " 2024-05-01 00:00Z ", 1_714_521_600_000_000),
    ],
)
def test_times_are_read_to_the_microsecond_or_set_aside(
    tmp_path: Path, unit: str, written: str, us: int | None
) -> None:
    good = "1970-01-01" if unit == "iso" else "0"
    text = f"event_time,value\n{good},1\n{written},2\n"
    found = csv(tmp_path, text, Columns(time_unit=unit))
    times = [event.event_time_us for event in found.events if event.value == 2]
    assert times == ([] if us is None else [us])
    assert [kind.places for kind in found.set_aside[0].gone] == ([(3,)] if us is None else [])


def test_an_offset_is_that_of_its_row_alone(tmp_path: Path) -> None:
    rows = ["02:30:00+02:00", "02:30:00", "02:30:00-01:00", "02:30:00"]
    for order in (rows, rows[::-1]):
        text = "event_time,value\n" + "".join(f"2024-05-01T{each},1\n" for each in order)
        events = csv(tmp_path, text, Columns(time_unit="iso")).events
        hours = {"02:30:00+02:00": 0.5, "02:30:00": 2.5, "02:30:00-01:00": 3.5}
        start_us = 1_714_521_600_000_000
        assert [(event.event_time_us - start_us) / 3.6e9 for event in events] == [
            hours[each] for each in order
        ]


def test_a_time_of_another_unit_names_the_unit(tmp_path: Path) -> None:
    text = "event_time,value\n1714521600,1\n1714521600000,2\n"
    (bad,) = csv(tmp_path, text, Columns(time_unit="s")).set_aside
    assert "'1714521600000'" in bad.sentence
    assert "ms" in bad.gone[0].reason


@pytest.mark.parametrize(
    ("column", "us"),
    [
        (pa.array([0.1, 1415624019.862]), [100_000, 1_415_624_019_862_000]),
        (pa.array([0.1 + 0.2, nan]), [300_000]),
        (pa.array([1e300, 2.0]), [2_000_000]),
        (pa.array([0, 2**63 + 5], pa.uint64()), [0]),
        (pa.array([0, 2**60], pa.timestamp("ms")), [0]),
        (pa.array([Decimal("1.5"), Decimal("2.0000009")]), [1_500_000, 2_000_000]),
        (pa.array([1_999, 2_000], pa.timestamp("ns")), [1, 2]),
        (pa.array([1, 1], pa.timestamp("s", "Europe/Berlin")), [1_000_000] * 2),
        (pa.array([date(1970, 1, 2)] * 2), [86_400_000_000] * 2),
        (pa.array(["1", "2"]).dictionary_encode(), [1_000_000, 2_000_000]),
    ],
)
def test_times_of_every_type(tmp_path: Path, column: pa.Array, us: list[int]) -> None:
    events = table(tmp_path, Columns(time_unit="s"), event_time=column).events
    assert [event.event_time_us for event in events] == us


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("18014398509481984", 2.0**54),
        ("18014398509481984.0", 2.0**54),
        (str(2**53 + 1), nan),
        ("12345678901234567.89", nan),
        ("1e300", 1e300),
        ("1e999", nan),
        ("nan", nan),
        ("-inf", -inf),
        ("Infinity", inf),
        (" 2.5 ", 2.5),
        ("-40", -40.0),
        ("-0.0", -0.0),
        ("", nan),
        ("NA", nan),
        ("True", nan),
        ("0x10", nan),
        ("1_0", nan),
        ("١", nan),
    ],
)
def test_a_value_is_exact_or_missing(tmp_path: Path, written: str, value: float) -> None:
    # Another row with a fraction changes nothing.
    for other in ("1", "1.5"):
        recording = csv(tmp_path, f"event_time,value\n1,{other}\n2,{written}\n")
        assert repr(recording.events[1].value) == repr(value)
        is_told = [kind.places for kind in recording.set_aside[0].lacking] == [(3,)]
        assert is_told == (value != value or value in (inf, -inf))


@pytest.mark.parametrize(
    ("values", "found"),
    [
        (pa.array([1, 2**63 + 5], pa.uint64()), [1.0, nan]),
        (pa.array([1, -(2**63)]), [1.0, -(2.0**63)]),
        (pa.array([1, 2**53 + 1]), [1.0, nan]),
        (pa.array([Decimal("12345678901234567.89"), Decimal("-2.50")]), [nan, -2.5]),
        (pa.array([None, 7]), [nan, 7.0]),
        (pa.array([nan, 7.0]), [nan, 7.0]),
        (pa.array([inf, 7.0]), [inf, 7.0]),
        (pa.array([None, "7"]), [nan, 7.0]),
        (pa.array(["x", "7"]).dictionary_encode(), [nan, 7.0]),
    ],
)
def test_values_of_every_type(tmp_path: Path, values: pa.Array, found: list[float]) -> None:
    recording = table(tmp_path, value=values)
    assert repr([event.value for event in recording.events]) == repr(found)
    assert recording.set_aside[0].count == 0


# ---------------------------------------------------------------------------- keys, identities


def test_keys_may_be_called_like_nulls(tmp_path: Path) -> None:
    names = ["NA", "NULL", "nan", "None", " ", "007"]
    text = "event_time,value,key\n" + "".join(f"1,1,{name}\n" for name in names) + "1,1,\n"
    recording = csv(tmp_path, text)
    assert [event.key for event in recording.events] == names
    assert recording.set_aside[0].gone[0].places == (8,)


def test_an_identity_is_a_number_if_it_is_written_plainly_whatever_others_are(
    tmp_path: Path,
) -> None:
    texts = ["1", "-2", str(2**63 - 1), "01", "001", "+2", "-0", str(2**63), "1.0", "7f3e-aa", " 1"]
    rows = "".join(f"{row},1,{text}\n" for row, text in enumerate(texts))
    events = csv(tmp_path, f"event_time,value,id\n{rows}", Columns(id="id")).events
    numbers = [1, -2, 2**63 - 1, *map(stable_hash, texts[3:])]
    assert [event.source_id for event in events] == numbers


@pytest.mark.parametrize(
    ("row", "what"), [("2,1,a", "event time"), ("1,2,a", "value"), ("1,1,b", "key")]
)
def test_an_identity_of_two_tuples_is_that_of_the_first(
    tmp_path: Path, row: str, what: str
) -> None:
    text = f"event_time,value,key,id\n1,1,a,01\n5,5,a,02\n1,1,a,01\n{row},01\n"
    recording = csv(tmp_path, text, Columns(id="id"))
    assert len(recording.events) == 3
    (bad,) = recording.set_aside
    assert bad.sentence.endswith(
        f"'id' has '01 (first in line 2)', which comes again with another {what} (line 5)"
    )


def test_a_redelivery_may_come_at_another_time_or_lack_its_value_again(tmp_path: Path) -> None:
    text = "event_time,value,arrival_time,id\n1,,5,7\n1,nan,9,7\n2,2,9,b\n"
    events = csv(tmp_path, text, Columns(id="id")).events
    found = [(event.source_id, event.arrival_us) for event in events]
    assert found == [(7, 5), (7, 9), (stable_hash("b"), 9)]
