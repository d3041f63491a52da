"""Files of users: rows are read to the last digit, or set aside with a reason and their line."""

import lzma
import subprocess
import zipfile
from collections.abc import Callable
from contextlib import suppress
from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from model.vocabulary import stable_hash
from straggler.errors import UsageError
from straggler.inputs import frames, text_files
from straggler.inputs.archives import unpacked
from straggler.inputs.columns import DEFAULT_COLUMNS, Columns
from straggler.inputs.tables import Recording, read_table
from straggler.inputs.text_files import read_json, read_lines
from straggler.rooms.script.inputs import load


def csv(folder: Path, text: str, columns: Columns = DEFAULT_COLUMNS) -> Recording:
    path = folder / "data.csv"
    path.write_text(text, encoding="utf-8")
    return read_table(path, columns)


def refusal(folder: Path, text: str, columns: Columns = DEFAULT_COLUMNS) -> str:
    with pytest.raises(UsageError) as refused:
        csv(folder, text, columns)
    return str(refused.value)


def test_rows_without_arrival_arrive_in_file_order_as_early_as_possible(tmp_path: Path) -> None:
    events = csv(tmp_path, "event_time,value,key\n5,1,a\n3,2.5,b\n9,3,a\n").events
    assert [tuple(event)[:6] for event in events] == [
        (0, 2, "a", 5, 1.0, 5),
        (1, 3, "b", 3, 2.5, 5),
        (2, 4, "a", 9, 3.0, 9),
    ]


def test_rows_with_arrival_are_sorted_by_it_and_ties_stay(tmp_path: Path) -> None:
    events = csv(tmp_path, "event_time,value,arrival_time\n5,1,30\n3,2,10\n9,3,30\n").events
    assert [event.event_time_us for event in events] == [3, 5, 9]
    assert [event.arrival_us for event in events] == [10, 30, 30]
    assert [event.source_id for event in events] == [3, 2, 4]  # their lines


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


def test_rows_before_1970_are_set_aside_where_time_begins_there(tmp_path: Path) -> None:
    text = "event_time,value,key\n-5,1,a\n0,2,a\n-1,3,b\n7,4,b\n"
    assert [event.value for event in csv(tmp_path, text).events] == [1, 2, 3, 4]
    recording = csv(tmp_path, text, Columns(since_1970=True))
    assert [event.value for event in recording.events] == [2, 4]
    assert recording.set_aside[0].gone[0].places == (2, 4)
    network = load(str(tmp_path / "data.csv"), 0, Columns(), None)
    assert [event.value for event in network.sent.events] == [2, 4]


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


@pytest.mark.parametrize("column", ["event_time", "value", "key", "id"])
def test_types_that_no_cell_of_can_be_read_are_refused(tmp_path: Path, column: str) -> None:
    path, columns = tmp_path / "data.parquet", Columns(id="id" if column == "id" else None)
    parquet.write_table(pa.table({"event_time": [1], "value": [1.0], column: [[1]]}), path)
    with pytest.raises(UsageError, match=f"column '{column}' of "):
        read_table(path, columns)


# Packed files and streams: read whole, or refused in one sentence, in bounded memory.


TEXT = b"event_time,value\n" + b"".join(b"%d,%d\n" % (n, n * n % 97) for n in range(200))


def pack(kind: str) -> bytes:
    """Return the text in an archive."""
    if kind == "xz":
        return lzma.compress(TEXT)
    if kind == "zip":
        file = BytesIO()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("data.csv", TEXT)
        return file.getvalue()
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, kind.replace("bzip2", "bz2")) as stream:
        stream.write(TEXT)
    found: bytes = sink.getvalue().to_pybytes()
    return found


PACKED = {kind: pack(kind) for kind in ("gzip", "bzip2", "xz", "zip", "zstd", "lz4")}


@pytest.mark.parametrize("kind", PACKED)
def test_a_packed_file_is_read_within_a_limit_or_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "data.csv.packed"
    path.write_bytes(PACKED[kind])
    assert len(read_table(path).events) == 200
    path.write_bytes(PACKED[kind][: len(PACKED[kind]) // 2])
    with pytest.raises(UsageError, match=rf"is no {kind} archive of one file that can be read"):
        read_table(path)
    assert unpacked("data.csv", PACKED[kind], len(TEXT)) == TEXT
    with pytest.raises(UsageError, match=r"^what is packed in data.csv has more than 0 MiB$"):
        unpacked("data.csv", PACKED[kind], len(TEXT) - 1)


@given(
    kind=st.sampled_from(sorted(PACKED)),
    at=st.integers(0, 1 << 16),
    wrong=st.binary(min_size=1, max_size=40),
)
def test_a_damaged_archive_is_read_whole_or_refused(kind: str, at: int, wrong: bytes) -> None:
    data = bytearray(PACKED[kind])
    at = 8 + at % (len(data) - 8)
    data[at : at + len(wrong)] = wrong
    with suppress(UsageError):  # no other error; a byte may also mean nothing
        unpacked("data.csv", bytes(data), 1 << 20)


@pytest.mark.parametrize(
    "words", ["yes", "yes '{\"a\":'", "yes [ | tr -d '\\n'", "yes é | tr -d '\\n'"]
)
def test_a_stream_without_an_end_is_refused(monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    for module, name in (
        (text_files, "LINE_MAX"),
        (text_files, "FILE_MAX"),
        (frames, "STREAM_MAX"),
    ):
        monkeypatch.setattr(module, name, 1 << 20)
    readers: tuple[Callable[[Path], object], ...] = (
        read_json,
        read_table,
        lambda path: list(read_lines(path)),
    )
    for read in readers:
        with subprocess.Popen(words, shell=True, stdout=subprocess.PIPE) as endless:
            assert endless.stdout is not None
            with pytest.raises(UsageError, match=r"MiB|has no end|is empty"):
                read(Path(f"/dev/fd/{endless.stdout.fileno()}"))
