"""Files of users: rows are read to the last digit, or set aside with a reason and their line."""

from math import nan
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from model.vocabulary import stable_hash
from straggler.errors import UsageError
from straggler.inputs.tables import DEFAULT_COLUMNS, Columns, Recording, read_table
from straggler.rooms.script.inputs import load

FIRST_US, LAST_US = -62_135_596_800_000_000, 253_402_300_799_999_999
"""First and last microsecond of the years 1 to 9999."""


def csv(folder: Path, text: str, columns: Columns = DEFAULT_COLUMNS) -> Recording:
    path = folder / "data.csv"
    path.write_text(text, encoding="utf-8")
    return read_table(path, columns)


def refusal(folder: Path, text: str, columns: Columns = DEFAULT_COLUMNS) -> str:
    with pytest.raises(UsageError) as refused:
        csv(folder, text, columns)
    return str(refused.value)


def table(folder: Path, columns: Columns = DEFAULT_COLUMNS, **arrays: Any) -> Recording:
    path = folder / "data.parquet"
    parquet.write_table(pa.table({"event_time": [1, 2], "value": [1.0, 2.0], **arrays}), path)
    return read_table(path, columns)


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
        ("s", "253402300800", None),
        ("iso", "9999-12-31T23:59:59.999999Z", LAST_US),
        ("iso", "0001-01-01T00:00:00+01:00", None),
    ],
)
def test_times_are_read_to_the_microsecond_or_set_aside(
    tmp_path: Path, unit: str, written: str, us: int | None
) -> None:
    """Check the ends of time; tests/straggler/test_drawn_files.py draws what lies between."""
    good = "1970-01-01" if unit == "iso" else "0"
    text = f"event_time,value\n{good},1\n{written},2\n"
    found = csv(tmp_path, text, Columns(time_unit=unit))
    times = [event.event_time_us for event in found.events if event.value == 2]
    assert times == ([] if us is None else [us])
    assert [kind.places for kind in found.set_aside[0].gone] == ([(3,)] if us is None else [])


@pytest.mark.parametrize(
    ("column", "us"),
    [
        (pa.array([1e300, 1415624019.862]), [1_415_624_019_862_000]),
        (pa.array([0, 2**63 + 5], pa.uint64()), [0]),
        (pa.array([0, 2**60], pa.timestamp("ms")), [0]),
        (pa.array([1_999, 2_000], pa.timestamp("ns")), [1, 2]),
        (pa.array([1, 1], pa.timestamp("s", "Europe/Berlin")), [1_000_000] * 2),
        (pa.array(["1", "2"]).dictionary_encode(), [1_000_000, 2_000_000]),
    ],
)
def test_times_of_every_type(tmp_path: Path, column: pa.Array, us: list[int]) -> None:
    events = table(tmp_path, Columns(time_unit="s"), event_time=column).events
    assert [event.event_time_us for event in events] == us


@pytest.mark.parametrize(
    ("values", "found"),
    [
        (pa.array([1, 2**63 + 5], pa.uint64()), [1.0, nan]),
        (pa.array(["x", "7"]).dictionary_encode(), [nan, 7.0]),
        (pa.array(["NA", "True", "\u0661", "7"]), [nan, nan, nan, 7.0]),
    ],
)
def test_a_value_is_exact_or_missing(tmp_path: Path, values: pa.Array, found: list[float]) -> None:
    recording = table(tmp_path, event_time=list(range(len(values))), value=values)
    assert repr([event.value for event in recording.events]) == repr(found)
    assert (recording.set_aside[0].unit, bool(recording.set_aside[0].lacking)) == ("row", True)


def test_a_time_of_another_unit_names_the_unit(tmp_path: Path) -> None:
    text = "event_time,value\n1714521600,1\n1714521600000,2\n"
    (bad,) = csv(tmp_path, text, Columns(time_unit="s")).set_aside
    assert "'1714521600000'" in bad.sentence
    assert "ms" in bad.gone[0].reason


# ---------------------------------------------------------------------------- keys, identities


def test_keys_may_be_called_like_nulls(tmp_path: Path) -> None:
    names = ["NA", "NULL", "nan", "None", " ", "007"]
    text = "event_time,value,key\n" + "".join(f"1,1,{name}\n" for name in names) + "1,1,\n"
    recording = csv(tmp_path, text)
    assert [event.key for event in recording.events] == names
    assert recording.set_aside[0].gone[0].places == (8,)


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


# Files with flaws: bad rows are told with their lines, and unreadable files in one sentence.


# ----------------------------------------------------------------------------------- set aside


@pytest.mark.parametrize(
    ("mark", "name"),
    [(b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")],
)
def test_byte_order_marks_and_ends_of_lines(tmp_path: Path, mark: bytes, name: str) -> None:
    path = tmp_path / "data.csv"
    path.write_bytes(mark + "event_time,value,key\r1,1,\u00e9\rx,1,a\r".encode(name))
    recording = read_table(path)
    assert [event.key for event in recording.events] == ["\u00e9"]
    assert recording.set_aside[0].gone[0].places == (3,)


def test_rows_before_1970_are_set_aside_where_time_begins_there(tmp_path: Path) -> None:
    text = "event_time,value,key\n-5,1,a\n0,2,a\n-1,3,b\n7,4,b\n"
    assert [event.value for event in csv(tmp_path, text).events] == [1, 2, 3, 4]
    recording = csv(tmp_path, text, Columns(since_1970=True))
    assert [event.value for event in recording.events] == [2, 4]
    assert recording.set_aside[0].sentence == (
        "data.csv: 2 of 4 rows set aside:"
        " 'event_time' has '-5', which lies before 1970 (lines 2, 4)"
    )
    network = load(str(tmp_path / "data.csv"), 0, Columns(), None)
    assert [event.value for event in network.events] == [2, 4]


# --------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("text", "hint", "columns", "keys"),
    [
        (
            "2024-05-01,1,a\n2024-05-02,2,b\n2024-05-03\n",
            "if that is a row, --header none calls the columns 1, 2, ...",
            Columns("1", "2", "3", time_unit="iso", header=None),
            ["a", "b"],
        ),
        (
            '# station: "7"b\n\n# from: 2024, to: 2025\nevent_time, value,key\n1,2,a\n2,,b\n',
            "line 4 has it, and --header 4 takes that as the header",
            Columns(header=4),
            ["a", "b"],
        ),
        (
            '"event_time", "value", "key"\n1, 2, "a, b"\n',
            "; --separator ', ' takes blanks before a cell as no part of it",
            Columns(separator=", "),
            ["a, b"],
        ),
        (
            "event_time\tvalue\tkey\n1\t2\ta\n",
            "; --separator tab would make several of it",
            Columns(separator="\t"),
            ["a"],
        ),
    ],
)
def test_the_option_that_helps_is_named_and_helps(
    tmp_path: Path, text: str, hint: str, columns: Columns, keys: list[str]
) -> None:
    assert refusal(tmp_path, text, Columns(time_unit=columns.time_unit)).endswith(hint)
    assert [event.key for event in csv(tmp_path, text, columns).events] == keys


def test_another_encoding_is_named_and_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_bytes("event_time,value,key\n1,1,é\n".encode("latin-1"))
    with pytest.raises(UsageError, match=r"^data.csv is not utf-8: byte 0xe9 in line 2;"):
        read_table(path)
    assert read_table(path, Columns(encoding="latin-1")).events[0].key == "é"


@pytest.mark.parametrize(
    ("text", "columns", "sentence"),
    [
        ("event_time,value,value\n1,2,3\n", Columns(), "has more than one column 'value'"),
        (
            "event_tme,value\n1,1\n",
            Columns(),
            "has no column 'event_time' (--event-time names another);"
            " its columns are event_tme, value; did you mean 'event_tme'?",
        ),
        ("a\nevent_time,value\n", Columns(header=9), "is empty from line 9 on"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(
    tmp_path: Path, text: str, columns: Columns, sentence: str
) -> None:
    assert refusal(tmp_path, text, columns) == f"data.csv {sentence}"


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("picture.png", b"\x89PNG\r\n\x1a\n\x00\xff\xfe" * 20, "is neither a Parquet nor a CSV"),
        ("fake.parquet", b"event_time,value\n1,1\n", "is not a Parquet file"),
    ],
)
def test_files_of_another_kind_are_refused(
    tmp_path: Path, name: str, content: bytes, sentence: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=sentence):
        read_table(tmp_path / name)
    with pytest.raises(UsageError, match="is a folder, not a Parquet or CSV file"):
        read_table(tmp_path)


@pytest.mark.parametrize("column", ["event_time", "value", "key", "id"])
@pytest.mark.parametrize("array", [pa.array([[1], [2]]), pa.array([True, False])])
def test_types_that_no_cell_of_can_be_read_are_refused(
    tmp_path: Path, column: str, array: pa.Array
) -> None:
    columns = Columns(id="id" if column == "id" else None)
    with pytest.raises(UsageError, match=repr(column)):
        table(tmp_path, columns, **{column: array})
