"""Messy files of users, whose rows and flaws are known.

The reader is not asked: a file is put together from pieces.
"""

from math import isfinite
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from properties.promised import Reached, promised
from straggler.errors import UsageError
from straggler.inputs.columns import Columns
from straggler.inputs.set_aside import PLACES
from straggler.inputs.tables import Recording, read_table


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cells")


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


def read_file(folder: Path, file: MessyFile) -> Recording:
    path = folder / "data.csv"
    path.write_bytes(file.data)
    columns = Columns("at", "amount", "shop", time_unit="s", separator=file.separator)
    return read_table(path, columns)


@promised("rows", "rows set aside", "rows without a number", "line breaks in cells", examples=80)
@given(file=messy_files())
def test_every_row_is_used_or_set_aside(folder: Path, file: MessyFile, reached: Reached) -> None:
    lacking = [row.line for row in file.rows if not isfinite(row.amount)]
    if len(lacking) == len(file.rows):
        with pytest.raises(UsageError, match=r"has no rows|no row can be used"):
            read_file(folder, file)
        return
    recording = read_file(folder, file)
    used = sorted(recording.events, key=lambda event: event.source_id)
    assert [each.source_id for each in used] == [row.line for row in file.rows]
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
