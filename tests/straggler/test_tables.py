"""Files of users: what is read, and what is refused in which words."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from model.vocabulary import stable_hash
from straggler.errors import UsageError
from straggler.inputs.tables import Columns, read_table
from tests.straggler.csv_files import csv, refusal


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


@pytest.mark.parametrize(
    ("unit", "written", "us"),
    [
        ("us", "1415624019862000", 1_415_624_019_862_000),
        ("ms", "1415624019862", 1_415_624_019_862_000),
        ("s", "1415624019.862", 1_415_624_019_862_000),
        ("ns", "1415624019862000999", 1_415_624_019_862_000),
        ("iso", "2014-11-10T12:53:39.862Z", 1_415_624_019_862_000),
        ("iso", "2014-11-10 13:53:39.862+01:00", 1_415_624_019_862_000),
        ("iso", "2014-11-10 12:53:39.862", 1_415_624_019_862_000),
    ],
)
def test_times_in_every_unit(tmp_path: Path, unit: str, written: str, us: int) -> None:
    recording = csv(tmp_path, f"event_time,value\n{written},1\n", Columns(time_unit=unit))
    assert recording.events[0].event_time_us == us


def test_columns_of_any_name_and_separator(tmp_path: Path) -> None:
    columns = Columns("t", "fare", "zone", "seen", "trip", "s", ";")
    events = csv(tmp_path, "trip;t;seen;zone;fare\nx1;1;2;A;4\nx1;1;3;A;4\n", columns).events
    assert [event.source_id for event in events] == [stable_hash("x1")] * 2
    assert events[0].key == "A"
    assert events[0].arrival_us == 2_000_000


def test_parquet_with_timestamps_and_integers(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    stamps = pa.array([1_000, 2_000], pa.timestamp("ms"))
    ids = pa.array([7, -7], pa.int64())
    table = pa.table({"event_time": stamps, "value": pa.array([1, 2], pa.int32()), "n": ids})
    parquet.write_table(table, path)
    events = read_table(path, Columns(id="n", key="n")).events
    assert [event.event_time_us for event in events] == [1_000_000, 2_000_000]
    assert [(event.source_id, event.key) for event in events] == [(7, "7"), (-7, "-7")]


def test_a_recording_says_whether_it_is_in_order(tmp_path: Path) -> None:
    assert csv(tmp_path, "event_time,value\n1,1\n1,1\n2,1\n").in_order
    assert not csv(tmp_path, "event_time,value\n2,1\n1,1\n").in_order


def test_missing_column_is_named_with_those_there_are(tmp_path: Path) -> None:
    sentence = refusal(tmp_path, "event_tme,value\n1,1\n")
    assert sentence == (
        "data.csv has no column 'event_time' (--event-time names another);"
        " its columns are event_tme, value; did you mean 'event_tme'?"
    )
    sentence = refusal(tmp_path, "event_time,value\n1,1\n", Columns(key="zone"))
    assert sentence == "data.csv has no column 'zone'; its columns are event_time, value"


def test_file_that_does_not_exist() -> None:
    with pytest.raises(UsageError, match=r"there is no file 'nowhere\.csv'"):
        read_table(Path("nowhere.csv"))


def test_empty_files(tmp_path: Path) -> None:
    assert refusal(tmp_path, "") == "data.csv is empty"
    assert refusal(tmp_path, "event_time,value\n") == "data.csv has no rows"


def test_files_of_another_kind(tmp_path: Path) -> None:
    picture = tmp_path / "picture.png"
    picture.write_bytes(b"\x89PNG\r\n\x1a\n\x00\xff\xfe" * 20)
    with pytest.raises(UsageError, match=r"picture\.png is neither a Parquet nor a CSV file"):
        read_table(picture)
    fake = tmp_path / "fake.parquet"
    fake.write_text("event_time,value\n1,1\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"fake\.parquet is not a Parquet file"):
        read_table(fake)
