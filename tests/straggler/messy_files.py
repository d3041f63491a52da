"""Messy CSV files that are drawn, with what is in them by construction.

Rules of this file:

* The reader is not asked: a file is put together from pieces whose rows and flaws are known.
"""

from typing import NamedTuple

from hypothesis import strategies as st

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
