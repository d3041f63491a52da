"""Cells of users' tables: columns of every type, each with the cells that readers get wrong.

Every drawn column has all *edges* of its type: the first and last times of the years 1 and 9999 in
its unit, numbers about 2^53 and 2^63, numbers that are not finite, missing cells, and texts with
characters beyond ASCII, control characters, blanks and exponents. The other cells are drawn.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from itertools import cycle, islice
from math import inf, nan, nextafter
from typing import NamedTuple

import pyarrow as pa
from hypothesis import assume
from hypothesis import strategies as st

FIRST_US, LAST_US = -62_135_596_800_000_000, 253_402_300_799_999_999
"""First and last microsecond of the years 1 to 9999."""
NEAR_US = 7_258_000_000_000_000, 7_259_000_000_000_000
"""Times just before and after the year 2200."""
UNITS = {"s": Fraction(10**6), "ms": Fraction(10**3), "us": Fraction(1), "ns": Fraction(1, 10**3)}
"""Microseconds of a unit."""
ISO = "iso"
"""Unit of times that are texts of a calendar."""
INT64 = (-(1 << 63), (1 << 63) - 1)
_BLANKS = st.sampled_from(["", "", "", " ", "\t", "  "])
_DATES = st.one_of(
    st.dates(date(1, 1, 1), date(9999, 12, 31)).map(date.isoformat),
    st.sampled_from(["2024-02-29", "2023-02-29", "1900-02-29", "2024-13-01", "2024-06-31"]),
    st.sampled_from(["0000-01-01", "2024-W18-3", "2024-123", "24-05-01", "2024-5-1", "now", ""]),
)
_CLOCKS = st.sampled_from(
    ["", "T00:00", " 23:59:59", "T12:30:15.5", "T12:30:15,25", "T24:00", " 12:60", "T02:30:60"]
) | st.builds(
    "T{:02}:{:02}:{:02}.{}".format,
    *map(st.integers, (0,) * 3, (23, 59, 59)),
    st.text("0123456789", min_size=1, max_size=9),
)
_ZONES = st.sampled_from(["", "Z", "+00", "+02:00", "-0530", "+23:59", "+24:00", " UTC", "z"])
TEXT_TIMES = st.tuples(_BLANKS, _DATES, _CLOCKS, _ZONES, _BLANKS).map("".join)
WHOLE = st.one_of(
    st.integers(*INT64),
    st.integers(-100, 100),
    st.integers(1, 4 * 10**9),
    st.builds(lambda power, step: 2**power + step, st.integers(50, 62), st.integers(-3, 3)),
    st.builds(lambda s, unit: s * unit, st.integers(0, 4 * 10**9), st.sampled_from([10**3, 10**6])),
)
DECIMALS = st.decimals(
    min_value=Decimal(-(10**25)), max_value=Decimal(10**25), places=9, allow_nan=False
)
_LARGE = st.builds(lambda power, step: 2**power + step, st.integers(52, 70), st.integers(-9, 9))
_WITH_EXPONENTS = st.builds(
    lambda number, sign, places, form: form.format(Decimal(sign * number).scaleb(places), -places),
    _LARGE,
    st.sampled_from([1, -1]),
    st.integers(-20, 3),
    st.sampled_from(["{:f}e{}", "{:f}E{:+}", "{:.16e}", "{:.25e}", "{:.30f}"]),
)
"""Numbers about 2^53 and beyond, written with and without an exponent and their last digits."""
_PLAIN_TEXTS = st.one_of(
    _WITH_EXPONENTS,
    WHOLE.map(str),
    DECIMALS.map(lambda number: f"{number:f}"),
    st.floats().map(repr),
    st.from_regex(r"[+-]?[0-9]{0,20}\.?[0-9]{0,12}([eE][+-]?[0-9]{1,3})?", fullmatch=True),
)
TEXT_NUMBERS = st.tuples(_BLANKS, _PLAIN_TEXTS, _BLANKS).map("".join)
BEYOND_ASCII = ("Zürich", "日本", "\U0001f600", "\u2028", "e\u0301")
CONTROLS = ("\x1b[2J", "a\tb", "a\nb", '"\\', "\x7f", "\u202e")
TEXTS = (*BEYOND_ASCII, *CONTROLS, "", " ", "NA", "NULL", "nan", "None")
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=6)
NO_UTF8 = (b"\xff", b"caf\xe9")
NO_NUMBERS = ("NaN", "-inf", "Infinity", "1e999", "0x1p3", "1f", "1_000", "1,5", "abc", "", " ")


class Column(NamedTuple):
    """A column of a user's table."""

    kind: pa.DataType
    unit: str
    """Unit of its times; empty for other columns."""
    cells: list[object]

    def __repr__(self) -> str:
        """Return one line, because the cells would fill pages."""
        return f"<{len(self.cells)} cells, {self.kind} {self.unit}>"

    @property
    def array(self) -> pa.Array:
        """The column in Arrow; a text that is no UTF-8 is given as bytes."""
        if self.kind == pa.string() and any(isinstance(each, bytes) for each in self.cells):
            raw = [each.encode() if isinstance(each, str) else each for each in self.cells]
            return pa.array(raw, pa.binary()).view(pa.string())
        if pa.types.is_dictionary(self.kind):
            return pa.array(self.cells, self.kind.value_type).dictionary_encode()
        return pa.array(self.cells, self.kind)


def _whole_edges(unit: str, low: int, high: int) -> list[int]:
    """Return whole numbers about the edges of the years, of 53 and of 64 bits."""
    scale = UNITS.get(unit, Fraction(1))
    about = [int(us // scale) for us in (FIRST_US, LAST_US)]
    about += [int(us // finer) for us in (*NEAR_US, LAST_US) for finer in UNITS.values()]
    steps = [base + step for base in (0, *about, 1 << 53, -(1 << 53)) for step in (-1, 0, 1)]
    return [each for each in dict.fromkeys([*steps, low, high]) if low <= each <= high]


def _float_edges(unit: str) -> list[float]:
    scale = UNITS.get(unit, Fraction(1))
    about = [float(each / scale) for us in (FIRST_US, LAST_US) for each in (us, us + 1)]
    near = [nextafter(each, to) for each in about for to in (-inf, inf)]
    halves = [float(Fraction(each, 2) / scale) for each in (1, 3, -1, 2_000_001)]
    return [*about, *near, *halves, nan, inf, -inf, -0.0, 1e300, 2.0**63, -(2.0**63)]


def _decimal_edges(unit: str) -> list[Decimal]:
    least = Decimal("0.000000001")
    whole = map(Decimal, _whole_edges(unit, *INT64))
    return [each + step for each in whole for step in (-least, Decimal(0), least)]


def _text_edges(unit: str) -> list[str]:
    decimals = _decimal_edges(unit)
    fine = [f"{each:f}" for each in decimals] + [f"{each:.40e}" for each in decimals[::5]]
    return [*fine, *(f" +{each}" for each in range(3)), "5.", ".5", *NO_NUMBERS]


_ISO_EDGES = [
    *("0001-01-01", "0001-01-01T00:00:00+00:01", "0000-12-31T23:59:59-00:01"),
    *("9999-12-31T23:59:59.9999999Z", "9999-12-31T23:59:59-00:01", "10000-01-01"),
    *("2024-02-29T12:30:15,25+02", "1900-02-29", "2100-02-28T23:59:60", "2024-5-1", "now", ""),
]
"""Texts of a calendar at the edges of the years 1 and 9999, and others that are no times."""


_SOME = ("0000-12-31T23:59", "0001-01-01 00:00:00", "2024-02-29T12:30", "2024-05-01T12")
_LAST = "9999-12-31T23:59:59"
_ALIKE = {
    "": [*_SOME, _LAST, f"{_LAST}.999999"],
    "Z": [*(f"{each}Z" for each in _SOME), f"{_LAST}-00:01", "0001-01-01T00:00:00+00:01"],
}
"""Edges of texts that have no zone, and of those that all have one: they are read all at once."""


def time_columns() -> Iterator[st.SearchStrategy[Column]]:
    """Yield a strategy for times of each type in each unit that it has."""
    for kind in (pa.string(), pa.large_string()):
        yield _column(kind, ISO, _ISO_EDGES, TEXT_TIMES)
    for end, edges in _ALIKE.items():
        alike = st.datetimes().map(datetime.isoformat).map(f"{{}}{end}".format)
        yield _column(pa.string(), ISO, edges, alike)
    for unit in UNITS:
        yield _column(pa.string(), unit, _text_edges(unit), TEXT_NUMBERS)
        yield from _numbers_of(unit)
        for zone in (None, "UTC"):
            yield _column(pa.timestamp(unit, zone), unit, _whole_edges(unit, *INT64), WHOLE)
    days = st.integers(-(1 << 31), (1 << 31) - 1) | st.integers(-800_000, 3_000_000)
    years = [(us // 86_400_000_000) + step for us in (FIRST_US, LAST_US) for step in (-1, 0, 1)]
    yield _column(pa.date32(), "day", years, days)


def number_columns() -> Iterator[st.SearchStrategy[Column]]:
    """Yield a strategy for numbers of each type."""
    for kind in (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())):
        yield _column(kind, "", _text_edges("us"), TEXT_NUMBERS)
    yield from _numbers_of("")


def _numbers_of(unit: str) -> Iterator[st.SearchStrategy[Column]]:
    for kind, low, high in (
        (pa.int64(), *INT64),
        (pa.uint64(), 0, (1 << 64) - 1),
        (pa.int16(), -(1 << 15), (1 << 15) - 1),
    ):
        yield _column(kind, unit, _whole_edges(unit, low, high), st.integers(low, high))
    yield _column(pa.float64(), unit, _float_edges(unit), st.floats())
    yield _column(pa.float32(), unit, [nan, inf, 0.5, 2.0**60], st.floats(width=32))
    yield _column(pa.decimal128(38, 9), unit, _decimal_edges(unit), DECIMALS)
    yield _column(pa.null(), unit, [None], st.none())


def text_columns(are_keys: bool) -> Iterator[st.SearchStrategy[Column]]:
    """Yield a strategy for keys, or for identities, of each type."""
    plain = WHOLE.map(str) | st.uuids().map(str) | TEXT
    edges = [*TEXTS, *map(str, _whole_edges("", -(1 << 64), 1 << 64)), "007", "-0", "+1", " 1"]
    yield _column(pa.string(), "", [*edges, *NO_UTF8], plain)
    for kind in (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())):
        yield _column(kind, "", edges, plain)
    yield _column(pa.int64(), "", _whole_edges("", *INT64), WHOLE)
    yield _column(pa.uint64(), "", _whole_edges("", 0, (1 << 64) - 1), st.integers(0, 1 << 63))
    if are_keys:
        raw = [each.encode() for each in TEXTS]
        yield _column(pa.binary(), "", [*raw, *NO_UTF8], TEXT.map(str.encode))


def nested() -> st.SearchStrategy[Column]:
    """Draw structs that hold what JSON has not: numbers, bytes and times of no year, and lists."""
    inside = {"x": pa.float64(), "t": pa.string(), "b": pa.binary(), "l": pa.list_(pa.float64())}
    inside["at"] = pa.timestamp("us")
    telling = {"x": nan, "b": b"\xff", "l": [inf, 1.5]}
    edges = [{**telling, "t": each, "at": 1 << 62 * (at % 2)} for at, each in enumerate(TEXTS)]
    drawn = st.fixed_dictionaries(
        {
            "x": st.floats(),
            "t": TEXT,
            "b": st.binary(max_size=3),
            "l": st.lists(st.floats(), max_size=3),
            "at": st.just(0),
        }
    )
    return _column(pa.struct(inside.items()), "", edges, drawn)


@st.composite
def _column(
    draw: st.DrawFn,
    kind: pa.DataType,
    unit: str,
    edges: Sequence[object],
    drawn: st.SearchStrategy[object],
) -> Column:
    return Column(kind, unit, [None, *edges, *draw(st.lists(drawn, min_size=4, max_size=8))])


NAMES = ("event_time_us", "value", "key", "source_id", "more")
"""Columns of a table: of times, numbers, texts and identities, and of anything."""
Drawn = Mapping[str, Column]
"""Columns of a table by their names."""


@st.composite
def tables(draw: st.DrawFn) -> list[Drawn]:
    """Draw tables with columns of all types; where times are text, also all other columns are."""
    assume(draw(st.integers(0, 7)))  # Hypothesis tries the simplest example first.
    strategies = time_columns(), number_columns(), text_columns(True), text_columns(False)
    columns = [[draw(each) for each in of_name] for of_name in strategies]
    most = max(map(len, columns))
    in_turn = zip(*(islice(cycle(each), most) for each in columns), strict=True)
    texts = [[each for each in of_name if each.kind == pa.string()] for of_name in columns]
    as_text = [(at, *(each[-1] for each in texts[1:])) for at in texts[0]]
    more = draw(nested())
    return [dict(zip(NAMES, [*each, more], strict=True)) for each in [*in_turn, *as_text]]
