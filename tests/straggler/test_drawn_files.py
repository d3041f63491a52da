"""Drawn files of users: cells against an oracle, and messy files whose rows and flaws are known.

Of a messy file the reader is not asked: it is put together from pieces.
"""

import csv
from dataclasses import replace
from datetime import date, datetime
from math import isfinite, nan
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyarrow import parquet

from model.vocabulary import stable_hash
from properties.promised import Reached, promised
from straggler.errors import UsageError
from straggler.inputs.columns import Columns
from straggler.inputs.set_aside import PLACES
from straggler.inputs.tables import Recording, read_table
from tests.harness import cells as drawn
from tests.harness.cells import number_of, same, time_of

NUMBERS = st.one_of(
    st.lists(drawn.TEXT_NUMBERS, max_size=20).map(lambda cells: (pa.string(), cells)),
    st.lists(drawn.WHOLE, max_size=20).map(lambda cells: (pa.int64(), cells)),
    st.lists(drawn.DECIMALS, max_size=20).map(lambda cells: (pa.decimal128(38, 9), cells)),
)
"""Types with cells of them."""
ON_CALENDAR = st.one_of(
    st.lists(drawn.STAMPS, max_size=20).map(lambda cells: (pa.timestamp("us"), cells)),
    st.lists(st.dates(date(1, 1, 1)), max_size=20).map(lambda cells: (pa.date32(), cells)),
)
FLOATS = st.lists(st.floats(), max_size=20).map(lambda cells: (pa.float64(), cells))
Drawn = tuple[pa.DataType, list[object]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cells")


def read(folder: Path, columns: Columns, cells: dict[str, Drawn]) -> list[Recording]:
    """Read columns from a Parquet file and, if all of them are text, from a CSV file as well."""
    table = pa.table({name: pa.array(each, kind) for name, (kind, each) in cells.items()})
    path = folder / "cells.parquet"
    parquet.write_table(table, path)
    found = [read_table(path, columns)]
    if pa.string() in table.schema.types:
        path = folder / "cells.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, quoting=csv.QUOTE_ALL)
            writer.writerow(table.column_names)
            writer.writerows(row.values() for row in table.to_pylist())
        found.append(read_table(path, columns))
    return found


FIRST_US, LAST_US = -62_135_596_800_000_000, 253_402_300_799_999_999
"""First and last microsecond of the years 1 to 9999."""
UNITS = st.sampled_from(["us", "ms", "s", "ns"])
TEXTS = st.lists(drawn.TEXT_TIMES, max_size=20).map(lambda cells: (pa.string(), cells))
"""Texts of calendar times, some of them impossible."""


@example(times=("us", (pa.int64(), [FIRST_US - 1, FIRST_US, LAST_US, LAST_US + 1])))
@given(times=st.tuples(UNITS, NUMBERS | ON_CALENDAR) | st.tuples(st.just("iso"), TEXTS))
def test_times_in_every_unit_and_type_are_exact(folder: Path, times: tuple[str, Drawn]) -> None:
    unit, (kind, cells) = times
    good: object = {"iso": "1970-01-01"}.get(unit, "0")
    if kind != pa.string():
        good = date(1970, 1, 1) if kind == pa.date32() else 0
        good = datetime(1970, 1, 1) if kind == pa.timestamp("us") else good  # noqa: DTZ001 - a wall clock
    column = [*cells, good]
    expected = {
        row: us for row, cell in enumerate(column) if (us := time_of(cell, unit)) is not None
    }
    places: Drawn = (pa.float64(), [float(row) for row in range(len(column))])
    table = {"event_time": (kind, column), "value": places}
    for recording in read(folder, Columns(time_unit=unit), table):
        found = {int(event.value): event.event_time_us for event in recording.events}
        assert found == expected
        assert recording.set_aside[0].count == len(column) - len(expected)


@example(column=(pa.string(), [""]))
@given(column=NUMBERS | FLOATS)
def test_values_of_every_type_are_the_nearest_float_or_missing(folder: Path, column: Drawn) -> None:
    kind, drawn_cells = column
    cells: list[object] = [*drawn_cells, "1" if kind == pa.string() else 1]
    expected = [nan if (number := number_of(cell)) is None else number for cell in cells]
    for recording in read(folder, Columns(needs_times=False), {"value": (kind, cells)}):
        assert all(map(same, [event.value for event in recording.events], expected))
        lacking = sum(each.total for each in recording.set_aside[0].lacking)
        assert lacking == sum(not isfinite(each) for each in expected)


@given(texts=st.lists(drawn.IDENTITIES.filter(bool), max_size=20))
def test_identities_and_keys_are_those_of_their_own_text(folder: Path, texts: list[object]) -> None:
    texts = [*texts, "good"]
    rows = range(len(texts))
    cells: dict[str, Drawn] = {
        "seen": (pa.int64(), list(rows)),
        "event_time": (pa.int64(), [0] * len(texts)),
        "id": (pa.string(), texts),
        "key": (pa.string(), texts),
    }
    columns = Columns(arrival="seen", id="id", needs_values=False)
    for recording in read(folder, columns, cells):
        found = [(event.source_id, event.key) for event in recording.events]
        assert found == [(identity_of(str(text)), text) for text in texts]


def identity_of(text: str) -> int:
    """Return the 64-bit integer that a text is the usual form of, or else its hash."""
    try:
        number = int(text)
    except ValueError:
        return stable_hash(text)
    is_plain = str(number) == text and -(2**63) <= number < 2**63
    return number if is_plain else stable_hash(text)


# ------------------------------------------------------------------------------------ messy files

SECOND_US = 1_000_000
HEADER = ("at", "amount", "shop")


class Row(NamedTuple):
    """A row that can be used."""

    line: int
    """Physical line in which it begins."""
    at_s: int
    amount: float
    """NaN if the cell has no finite number."""
    shop: str


class MessyFile(NamedTuple):
    """A file, and what is in it."""

    data: bytes
    separator: str
    rows: tuple[Row, ...]
    flaws: tuple[int, ...]
    """Lines of the rows that are set aside."""


class _Piece(NamedTuple):
    """Cells of a line as they are written, and the row that they make, if any."""

    cells: tuple[str, ...]
    row: tuple[int, float, str] | None = None


TIMES = st.integers(0, 100_000)
SHOPS = st.text("ab é'", min_size=1, max_size=4)
BLANKS = st.sampled_from(["", " ", "  "])
AMOUNTS = st.integers(1, 1_000) | st.floats(0.5, 1e6).map(lambda x: round(x, 3))
BAD_TIMES = st.sampled_from(["", "soon", "2014-13-01", "1e999", "9" * 30, "12:30"])
BAD_AMOUNTS = st.sampled_from(["", "much", "NaN", "-inf", "1,5", "0x10", "9007199254740993"])


@st.composite
def _good(draw: st.DrawFn) -> _Piece:
    at_s, amount, shop = draw(TIMES), draw(AMOUNTS), draw(SHOPS)
    if draw(st.booleans()):
        shop += "\n" + draw(SHOPS)  # a line break within a cell
    time = f"{draw(BLANKS)}{at_s}{draw(BLANKS)}"
    number = f"{draw(BLANKS)}{amount!r}{draw(BLANKS)}"
    return _Piece((time, number, shop), (at_s, float(amount), shop))


@st.composite
def _lacking(draw: st.DrawFn) -> _Piece:
    at_s, shop = draw(TIMES), draw(SHOPS)
    return _Piece((str(at_s), draw(BAD_AMOUNTS), shop), (at_s, float("nan"), shop))


@st.composite
def _flawed(draw: st.DrawFn) -> _Piece:
    time, number, shop = draw(_good()).cells
    every = [
        (draw(BAD_TIMES), number, shop),
        (time, number, ""),
        (time, number),
        (time, number, shop, "more"),
        ('"a"b', "1", "c"),
        ('"a', "1", "c"),
    ]
    return _Piece(draw(st.sampled_from(every)))


@st.composite
def messy_files(draw: st.DrawFn) -> MessyFile:
    """Draw a file of a few rows, flawed rows and blank lines."""
    pieces = draw(st.lists(_good() | _lacking() | _flawed() | st.just(_Piece(()))))
    separator = draw(st.sampled_from([",", ";", "\t"]))
    end = draw(st.sampled_from(["\n", "\r\n"]))
    names = [f"{draw(BLANKS)}{name}{draw(BLANKS)}" for name in HEADER]
    text, line = separator.join(names) + end, 2
    rows: list[Row] = []
    flaws: list[int] = []
    for piece in pieces:
        written = separator.join(_quoted(cell, separator) for cell in piece.cells)
        if piece.row is not None:
            rows.append(Row(line, *piece.row))
        elif piece.cells:
            flaws.append(line)
        text += written + end
        line += 1 + written.count("\n")
    encoding = draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]))
    return MessyFile(text.encode(encoding), separator, tuple(rows), tuple(flaws))


def _quoted(cell: str, separator: str) -> str:
    return f'"{cell}"' if set(cell) & {separator, "\n"} else cell


def read_file(folder: Path, file: MessyFile, is_strict: bool = False) -> Recording:
    path = folder / "data.csv"
    path.write_bytes(file.data)
    columns = Columns("at", "amount", "shop", time_unit="s", separator=file.separator)
    return read_table(path, replace(columns, is_strict=is_strict))


@promised("rows", "rows set aside", "rows without a number", "line breaks in cells", examples=12)
@given(file=messy_files())
def test_every_row_is_used_or_set_aside(folder: Path, file: MessyFile, reached: Reached) -> None:
    lacking = [row.line for row in file.rows if not isfinite(row.amount)]
    if len(lacking) == len(file.rows):
        with pytest.raises(UsageError, match=r"has no rows|no row can be used"):
            read_file(folder, file)
        return
    if file.flaws or lacking:
        with pytest.raises(UsageError):
            read_file(folder, file, is_strict=True)
    recording = read_file(folder, file, is_strict=not (file.flaws or lacking))
    used = sorted(recording.events, key=lambda event: event.source_id)
    found = [(each.event_time_us // SECOND_US, each.key) for each in used]
    assert found == [(row.at_s, row.shop) for row in file.rows]
    for event, row in zip(used, file.rows, strict=True):
        assert event.value == row.amount or not (isfinite(event.value) or isfinite(row.amount))
    (bad,) = recording.set_aside
    assert (bad.rows, bad.count) == (len(file.rows) + len(file.flaws), len(file.flaws))
    places = [place for kind in bad.gone for place in kind.places]
    assert set(places) <= set(file.flaws)
    assert len(places) == sum(min(kind.total, PLACES) for kind in bad.gone)
    assert sum(kind.total for kind in bad.lacking) == len(lacking)
    assert {place for kind in bad.lacking for place in kind.places} <= set(lacking)
    reached.add(
        {
            "rows": len(used) - len(lacking),
            "rows set aside": len(file.flaws),
            "rows without a number": len(lacking),
            "line breaks in cells": sum("\n" in row.shop for row in file.rows),
        }
    )
