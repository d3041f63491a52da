"""Messy files: every row is used or set aside with its place, and windows are those of the rest."""

from collections import defaultdict
from dataclasses import replace
from math import isfinite
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from pyarrow import parquet

from model.slack import make_system
from model.vocabulary import SlackConfig, Workload
from model.vocabulary.windows import Final
from straggler.errors import UsageError
from straggler.inputs.set_aside import PLACES
from straggler.inputs.tables import Columns, Recording, read_table
from straggler.rooms.script.inputs import load
from tests.straggler.csv_files import csv, refusal
from tests.straggler.messy_files import MessyFile, Row, messy_files

SECOND_US = 1_000_000
SIZE_S = 1_000


def read(folder: Path, file: MessyFile, is_strict: bool = False) -> Recording:
    path = folder / "data.csv"
    path.write_bytes(file.data)
    columns = Columns("at", "amount", "shop", time_unit="s", separator=file.separator)
    return read_table(path, replace(columns, is_strict=is_strict))


def is_usable(file: MessyFile) -> bool:
    return any(isfinite(row.amount) for row in file.rows)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("messy")


@given(file=messy_files())
def test_rows_used_and_rows_set_aside_are_the_rows_of_the_file(
    folder: Path, file: MessyFile
) -> None:
    if not is_usable(file):
        with pytest.raises(UsageError, match=r"has no rows|no row can be used"):
            read(folder, file)
        return
    recording = read(folder, file)
    used = sorted(recording.events, key=lambda event: event.source_id)
    found = [(each.event_time_us // SECOND_US, each.key) for each in used]
    assert found == [(row.at_s, row.shop) for row in file.rows]
    pairs = zip(used, file.rows, strict=True)
    assert all(
        event.value == row.amount or not (isfinite(event.value) or isfinite(row.amount))
        for event, row in pairs
    )
    (bad,) = recording.set_aside
    assert (bad.rows, bad.count) == (len(file.rows) + len(file.flaws), len(file.flaws))
    assert all(list(kind.places) == sorted(kind.places) for kind in bad.gone)
    places = [place for kind in bad.gone for place in kind.places]
    assert set(places) <= set(file.flaws)
    assert len(places) == sum(min(kind.total, PLACES) for kind in bad.gone)
    lacking = [row.line for row in file.rows if not isfinite(row.amount)]
    assert sum(kind.total for kind in bad.lacking) == len(lacking)
    assert {place for kind in bad.lacking for place in kind.places} <= set(lacking)


@given(file=messy_files())
def test_a_strict_reader_refuses_exactly_the_files_with_bad_rows(
    folder: Path, file: MessyFile
) -> None:
    is_clean = not file.flaws and all(isfinite(row.amount) for row in file.rows)
    if is_usable(file) and is_clean:
        assert len(read(folder, file, is_strict=True).events) == len(file.rows)
    else:
        with pytest.raises(UsageError):
            read(folder, file, is_strict=True)


@given(file=messy_files().filter(is_usable))
def test_windows_are_those_of_the_rows_that_can_be_used(folder: Path, file: MessyFile) -> None:
    size_us = SIZE_S * SECOND_US
    config = SlackConfig(size_us, size_us, control="max")
    events = read(folder, file).events
    trace = make_system()(Workload("slack", events, config.to_json()))
    answers = {(final.key, final.start_us): final.value for final in trace.of(Final)}
    assert answers == pytest.approx(sums(file.rows))


def sums(rows: tuple[Row, ...]) -> dict[tuple[str, int], float]:
    """Return the sum of every window, from the rows as they were written."""
    found: dict[tuple[str, int], float] = defaultdict(float)
    for row in rows:
        if isfinite(row.amount):
            found[row.shop, row.at_s // SIZE_S * SIZE_S * SECOND_US] += row.amount
    return dict(found)


# ------------------------------------------------------------------------------- single flaws

MESSY = """event_time,value,key
1,1,a
soon,2,b
3,much,c
4,4
5,5,"x
y"

7,,b
8,9,
9,"9,b
10,3,b
11,3,c,d
"""


def test_every_flaw_of_a_file_is_told_at_once_with_its_line(tmp_path: Path) -> None:
    recording = csv(tmp_path, MESSY)
    assert [event.event_time_us for event in recording.events] == [1, 3, 5, 7, 10]
    (bad,) = recording.set_aside
    assert (bad.rows, bad.count, bad.unit) == (10, 5, "line")
    assert sorted(kind.places for kind in bad.gone) == [(3,), (5,), (10,), (11,), (13,)]
    assert sorted(kind.places for kind in bad.lacking) == [(4,), (9,)]
    sentence = bad.sentence
    assert sentence.startswith("data.csv: 5 of 10 rows set aside: ")
    for part in (
        "2 fields where its header has 3 (line 5)",
        "a quote that is never closed (line 11)",
        "2 rows without a finite value stay, refused by every query: ",
        "'value' has 'much'",
    ):
        assert part in sentence


def test_many_flaws_are_counted_and_the_first_lines_named(tmp_path: Path) -> None:
    text = "event_time,value\n" + "1,1\n,2\n" * 30
    (bad,) = csv(tmp_path, text).set_aside
    (kind,) = bad.gone
    assert (kind.total, kind.places) == (30, (3, 5, 7, 9, 11))
    assert bad.sentence.endswith("(lines 3, 5, 7, 9, 11 and 25 more)")


def test_bad_rows_of_parquet_have_numbers_of_rows(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    times, values = pa.array([1, None, 3]), pa.array([1.0, 2.0, float("nan")])
    parquet.write_table(pa.table({"event_time": times, "value": values}), path)
    recording = read_table(path)
    assert [event.source_id for event in recording.events] == [0, 2]
    (bad,) = recording.set_aside
    assert (bad.unit, bad.gone[0].places, bad.lacking[0].places) == ("row", (2,), (3,))
    assert "(row 2)" in bad.sentence


def test_a_quote_that_is_never_closed_hides_no_other_row(tmp_path: Path) -> None:
    rows = "".join(f"{n},1\n" for n in range(2_000))
    recording = csv(tmp_path, f'event_time,value\n"5,1\n{rows}"6,1\n{rows}')
    assert len(recording.events) == 4_000
    assert sorted(kind.places for kind in recording.set_aside[0].gone) == [(2,), (2_003,)]


def test_a_file_with_one_column_has_blank_lines_too(tmp_path: Path) -> None:
    text = "\n\nkey\na\n\n \nb\n"
    recording = csv(tmp_path, text, Columns(needs_times=False, needs_values=False))
    assert [event.key for event in recording.events] == ["a", "b"]
    assert recording.set_aside[0].sentence == ""


def test_blanks_around_keys_are_part_of_them(tmp_path: Path) -> None:
    events = csv(tmp_path, " event_time , value,key \n 1 , 2 , a \n").events
    assert [(event.event_time_us, event.value, event.key) for event in events] == [(1, 2, " a ")]


def test_a_column_that_nobody_asks_for_may_come_twice(tmp_path: Path) -> None:
    assert len(csv(tmp_path, "event_time,value,,\n1,2,,\n").events) == 1


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


def test_another_encoding_is_named_or_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_bytes("event_time,value,key\n1,1,é\n".encode("latin-1"))
    with pytest.raises(UsageError) as refused:
        read_table(path)
    assert str(refused.value) == (
        "data.csv is not utf-8: byte 0xe9 in line 2;"
        " --encoding names another encoding, such as latin-1"
    )
    assert read_table(path, Columns(encoding="latin-1")).events[0].key == "é"


def test_a_header_that_is_a_row_names_the_option(tmp_path: Path) -> None:
    sentence = refusal(tmp_path, "2024-05-01,1,a\n2024-05-02,2,b\n", Columns(time_unit="iso"))
    assert sentence.endswith("if that is a row, --header none calls the columns 1, 2, ...")
    columns = Columns("1", "2", "3", time_unit="iso", header=None)
    recording = csv(tmp_path, "2024-05-01,1,a\n2024-05-02,2,b\n2024-05-03\n", columns)
    assert [event.key for event in recording.events] == ["a", "b"]
    assert "1 field where the first row has 3 (line 3)" in recording.set_aside[0].sentence


def test_a_header_below_other_lines_names_the_option(tmp_path: Path) -> None:
    text = '# station: "7"b\n\n# from: 2024, to: 2025\nevent_time, value\n1,2\n2,\n'
    assert refusal(tmp_path, text).endswith(
        "line 4 has it, and --header 4 takes that as the header"
    )
    recording = csv(tmp_path, text, Columns(header=4))
    assert [event.event_time_us for event in recording.events] == [1, 2]
    (bad,) = recording.set_aside
    assert (bad.rows, bad.count, bad.lacking[0].places) == (2, 0, (6,))
    assert refusal(tmp_path, text, Columns(header=9)) == "data.csv is empty from line 9 on"


@pytest.mark.parametrize(("separator", "name"), [(";", "';'"), ("\t", "tab"), ("|", "'|'")])
def test_another_separator_is_named(tmp_path: Path, separator: str, name: str) -> None:
    sentence = refusal(tmp_path, separator.join(["event_time", "value"]) + "\n")
    assert sentence.endswith(f"; --separator {name} would make several of it")


def test_blanks_before_quotes_name_the_option(tmp_path: Path) -> None:
    text = '"event_time", "value", "key"\n1, 2, "a, b"\n'
    sentence = refusal(tmp_path, text)
    assert sentence.endswith("; --separator ', ' takes blanks before a cell as no part of it")
    (event,) = csv(tmp_path, text, Columns(separator=", ")).events
    assert (event.value, event.key) == (2.0, "a, b")


def test_a_file_separated_by_blanks_names_the_option(tmp_path: Path) -> None:
    sentence = refusal(tmp_path, "event_time value\n1 2\n")
    assert sentence.endswith("; --separator ' ' would make several of it")


def test_a_header_that_is_no_row_is_told(tmp_path: Path) -> None:
    for text in ('{"event_time":1,"value":2}\n', '"event_time"x,value\n1,2\n'):
        sentence = refusal(tmp_path, text)
        assert (
            sentence == "line 1 of data.csv is no header: text after the closing quote of a field"
        )


def test_rows_beyond_the_guard_are_set_aside(tmp_path: Path) -> None:
    text = "event_time,value,arrival_time\n5,1,5\n90000,2,10\n86407,3,7\n"
    default, narrow = Columns(time_unit="s"), Columns(time_unit="s", max_future_us=SECOND_US)
    off = Columns(time_unit="s", max_future_us=1 << 60)
    found = [csv(tmp_path, text, each) for each in (default, narrow, off)]
    assert [[event.value for event in each.events] for each in found] == [
        [1, 3],
        [1],
        [1, 3, 2],
    ]
    assert "'90000', which lies more than 1d beyond its arrival (line 3)" in (
        found[0].set_aside[0].sentence
    )


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


def test_a_guard_needs_arrival_times(tmp_path: Path) -> None:
    sentence = refusal(tmp_path, "event_time,value\n1,1\n", Columns(max_future_us=5))
    assert sentence == (
        "--max-future needs arrival times: --arrival names their column of data.csv"
    )
