"""Messy CSV files that are drawn, with what is in them by construction.

The reader is not asked: a file is put together from pieces whose rows and flaws are known.
"""

from collections import defaultdict
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.slack import make_system
from model.vocabulary import SlackConfig, Workload
from model.vocabulary.windows import Final
from straggler.errors import UsageError
from straggler.inputs.set_aside import PLACES
from straggler.inputs.tables import Columns, Recording, read_table
from tests.straggler.written_files import refusal

SECOND_US = 1_000_000
SIZE_S = 1_000
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
    """Cells of a row or a line that is none."""

    cells: tuple[str, ...]
    kind: str
    row: tuple[int, float, str] = (0, 0.0, "")


TIMES = st.integers(0, 100_000)
SHOPS = st.text("ab é'", min_size=1, max_size=4)
BLANKS = st.sampled_from(["", " ", "  "])
NUMBERS = st.integers(1, 1_000) | st.floats(0.5, 1e6).map(lambda x: round(x, 3))
BAD_TIMES = st.sampled_from(["", "soon", "2014-13-01", "1e999", "9" * 30, "12:30"])
BAD_NUMBERS = st.sampled_from(["", "much", "NaN", "-inf", "1,5", "0x10", "9007199254740993"])


@st.composite
def _good(draw: st.DrawFn) -> _Piece:
    at_s, amount, shop = draw(TIMES), draw(NUMBERS), draw(SHOPS)
    if draw(st.booleans()):
        shop += "\n" + draw(SHOPS)  # a line break within a cell
    time = f"{draw(BLANKS)}{at_s}{draw(BLANKS)}"
    number = f"{draw(BLANKS)}{amount!r}{draw(BLANKS)}"
    return _Piece((time, number, shop), "row", (at_s, float(amount), shop))


@st.composite
def _lacking(draw: st.DrawFn) -> _Piece:
    at_s, shop = draw(TIMES), draw(SHOPS)
    return _Piece((str(at_s), draw(BAD_NUMBERS), shop), "row", (at_s, float("nan"), shop))


@st.composite
def _flawed(draw: st.DrawFn) -> _Piece:
    good = draw(_good()).cells
    kind = draw(st.sampled_from(["time", "key", "short", "long", "quote", "left open"]))
    match kind:
        case "time":
            return _Piece((draw(BAD_TIMES), *good[1:]), "flaw")
        case "key":
            return _Piece((*good[:2], ""), "flaw")
        case "short":
            return _Piece(good[:2], "flaw")
        case "long":
            return _Piece((*good, "more"), "flaw")
    return _Piece((), kind)


@st.composite
def messy_files(draw: st.DrawFn) -> MessyFile:
    """Draw a file of a few rows, flawed rows and blank lines."""
    pieces = draw(st.lists(_good() | _lacking() | _flawed() | st.just(_Piece((), "blank"))))
    separator = draw(st.sampled_from([",", ";", "\t"]))
    end = draw(st.sampled_from(["\n", "\r\n"]))
    names = [f"{draw(BLANKS)}{name}{draw(BLANKS)}" for name in HEADER]
    text, line = separator.join(names) + end, 2
    rows: list[Row] = []
    flaws: list[int] = []
    for piece in pieces:
        match piece.kind:
            case "blank":
                written = ""
            case "quote":
                written = f'"a"b{separator}1{separator}c'
            case "left open":
                written = f'"a{separator}1{separator}c'
            case _:
                written = separator.join(_quoted(cell, separator) for cell in piece.cells)
        if piece.kind == "row":
            rows.append(Row(line, *piece.row))
        elif piece.kind != "blank":
            flaws.append(line)
        text += written + end
        line += 1 + written.count("\n")
    mark = draw(st.sampled_from(["", "\ufeff"]))
    return MessyFile((mark + text).encode(), separator, tuple(rows), tuple(flaws))


def _quoted(cell: str, separator: str) -> str:
    return f'"{cell}"' if set(cell) & {separator, "\n"} else cell


# ------------------------------------------------------------------------------------ what is read


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("messy")


def read(folder: Path, file: MessyFile, is_strict: bool = False) -> Recording:
    path = folder / "data.csv"
    path.write_bytes(file.data)
    columns = Columns("at", "amount", "shop", time_unit="s", separator=file.separator)
    return read_table(path, replace(columns, is_strict=is_strict))


@given(file=messy_files())
def test_every_row_is_used_or_set_aside_and_windows_are_those_of_the_used_ones(
    folder: Path, file: MessyFile
) -> None:
    lacking = [row.line for row in file.rows if not isfinite(row.amount)]
    if len(lacking) == len(file.rows):
        with pytest.raises(UsageError, match=r"has no rows|no row can be used"):
            read(folder, file)
        return
    if file.flaws or lacking:
        with pytest.raises(UsageError):
            read(folder, file, is_strict=True)
    recording = read(folder, file, is_strict=not (file.flaws or lacking))
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
    size_us = SIZE_S * SECOND_US
    config = SlackConfig(size_us, size_us, control="max").to_json()
    trace = make_system()(Workload("slack", recording.events, config))
    answers = {(final.key, final.start_us): final.value for final in trace.of(Final)}
    assert answers == pytest.approx(sums(file.rows))


def sums(rows: tuple[Row, ...]) -> dict[tuple[str, int], float]:
    """Return the sum of every window, from the rows as they were written."""
    found: dict[tuple[str, int], float] = defaultdict(float)
    for row in rows:
        if isfinite(row.amount):
            found[row.shop, row.at_s // SIZE_S * SIZE_S * SECOND_US] += row.amount
    return dict(found)


REFUSED: dict[str, tuple[str, Columns]] = {
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
}


@pytest.mark.parametrize("sentence", REFUSED)
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, sentence: str) -> None:
    assert refusal(tmp_path, *REFUSED[sentence]) == sentence
