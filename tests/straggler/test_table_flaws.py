"""Files with flaws: bad rows are told with their lines, and unreadable files in one sentence."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from straggler.errors import UsageError
from straggler.inputs.tables import DEFAULT_COLUMNS, Columns, read_table
from straggler.rooms.script.inputs import load
from tests.straggler.written_files import csv, refusal, table

# ----------------------------------------------------------------------------------- set aside


def test_bad_rows_of_parquet_have_numbers_of_rows(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    times, values = pa.array([1, None, 3]), pa.array([1.0, 2.0, float("nan")])
    parquet.write_table(pa.table({"event_time": times, "value": values}), path)
    recording = read_table(path)
    assert [event.source_id for event in recording.events] == [0, 2]
    (bad,) = recording.set_aside
    assert (bad.unit, bad.gone[0].places, bad.lacking[0].places) == ("row", (2,), (3,))
    assert "(row 2)" in bad.sentence


@pytest.mark.parametrize("mark", [b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_byte_order_marks_and_ends_of_lines(tmp_path: Path, mark: bytes, end: str) -> None:
    name = {b"\xef\xbb\xbf": "utf-8", b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}[mark]
    text = end.join(["event_time,value,key", "1,1,é", "x,1,a", ""])
    path = tmp_path / "data.csv"
    path.write_bytes(mark + text.encode(name))
    recording = read_table(path)
    assert [event.key for event in recording.events] == ["é"]
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


def test_blanks_belong_to_keys_and_blank_lines_to_nothing(tmp_path: Path) -> None:
    events = csv(tmp_path, " event_time , value,key \n 1 , 2 , a \n").events
    assert [(event.event_time_us, event.value, event.key) for event in events] == [(1, 2, " a ")]
    assert len(csv(tmp_path, "event_time,value,,\n1,2,,\n").events) == 1, "nobody asks for it"
    one = Columns(needs_times=False, needs_values=False)
    recording = csv(tmp_path, "\n\nkey\na\n\n \nb\n", one)
    assert [event.key for event in recording.events] == ["a", "b"]
    assert recording.set_aside[0].sentence == ""


# --------------------------------------------------------------------------------------- refusals

REFUSED: dict[str, tuple[str, Columns]] = {
    "data.csv is empty": ("", DEFAULT_COLUMNS),
    "data.csv has no rows": ("event_time,value\n", DEFAULT_COLUMNS),
    "data.csv has more than one column 'value'": ("event_time,value,value\n1,2,3\n", Columns()),
    "data.csv has no column 'event_time' (--event-time names another);"
    " its columns are event_tme, value; did you mean 'event_tme'?": (
        "event_tme,value\n1,1\n",
        Columns(),
    ),
    "line 1 of data.csv is no header: text after the closing quote of a field": (
        '{"event_time":1,"value":2}\n',
        Columns(),
    ),
    "data.csv is empty from line 9 on": ("a\nevent_time,value\n", Columns(header=9)),
    "--max-future needs arrival times: --arrival names their column of data.csv": (
        "event_time,value\n1,1\n",
        Columns(max_future_us=5),
    ),
}


@pytest.mark.parametrize("sentence", REFUSED)
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, sentence: str) -> None:
    assert refusal(tmp_path, *REFUSED[sentence]) == sentence


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
        *(
            (
                f"event_time{sign}value{sign}key\n1{sign}2{sign}a\n",
                f"; --separator {name} would make several of it",
                Columns(separator=sign),
                ["a"],
            )
            for sign, name in ((";", "';'"), ("\t", "tab"), ("|", "'|'"), (" ", "' '"))
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
    ("name", "content", "sentence"),
    [
        (
            "picture.png",
            b"\x89PNG\r\n\x1a\n\x00\xff\xfe" * 20,
            "is neither a Parquet nor a CSV file",
        ),
        ("fake.parquet", b"event_time,value\n1,1\n", "is not a Parquet file"),
        ("folder", None, "is a folder, not a Parquet or CSV file"),
    ],
)
def test_files_of_another_kind_are_refused(
    tmp_path: Path, name: str, content: bytes | None, sentence: str
) -> None:
    if content is None:
        (tmp_path / name).mkdir()
    else:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=sentence):
        read_table(tmp_path / name)


@pytest.mark.parametrize("column", ["event_time", "value", "key", "id"])
@pytest.mark.parametrize("array", [pa.array([[1], [2]]), pa.array([True, False])])
def test_types_that_no_cell_of_can_be_read_are_refused(
    tmp_path: Path, column: str, array: pa.Array
) -> None:
    columns = Columns(id="id" if column == "id" else None)
    with pytest.raises(UsageError, match=repr(column)):
        table(tmp_path, columns, **{column: array})
