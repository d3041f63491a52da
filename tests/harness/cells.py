"""Cells of a user's table: drawn ones of every kind that matters, and the meaning of each.

:func:`time_of` and :func:`number_of` are an oracle that imports nothing of ours, one cell at a
time. They return None for a cell that cannot be read.
"""

import re
from calendar import monthrange
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from math import floor, inf, isfinite, isnan

from hypothesis import strategies as st

# ------------------------------------------------------------------------------------ drawn cells


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
STAMPS = st.datetimes()  # wall clocks of all years
WHOLE = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
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
    st.sampled_from(["NaN", "-inf", "Infinity", "1e999", "0x1p3", "1f", "1_000", "1,5", "abc", ""]),
)
TEXT_NUMBERS = st.tuples(_BLANKS, _PLAIN_TEXTS, _BLANKS).map("".join)
IDENTITIES = st.one_of(
    st.uuids().map(str),
    WHOLE.map(str),
    st.sampled_from(["007", "-0", "+1", " 1", "", "ä", str(2**63), "NA", "NULL", "nan", "None"]),
)


# ---------------------------------------------------------------------------------------- meaning


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
UNITS_US = {"s": Fraction(10**6), "ms": Fraction(10**3), "us": Fraction(1)} | {
    "ns": Fraction(1, 10**3)
}
SPACES = " \t\r\n\f\v"
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)
TIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)"
    r"(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d+))?)?"
    r"(?: ?(Z|z|UTC|([+-])(\d\d)(?::?(\d\d))?))?)?",
    re.ASCII,
)


def time_of(cell: object, unit: str) -> int | None:
    """Return a time in microseconds since 1970, rounded down; floats are rounded to the nearest."""
    if cell is None:
        return None
    if isinstance(cell, datetime):
        return (cell.replace(tzinfo=cell.tzinfo or UTC) - EPOCH) // MICROSECOND
    if isinstance(cell, date):
        return (cell - EPOCH.date()) // MICROSECOND
    if isinstance(cell, str) and unit not in UNITS_US:
        return _text_time(cell.strip(SPACES))
    if isinstance(cell, float):
        if not isfinite(cell):
            return None
        us = round(Fraction(cell) * UNITS_US[unit])
    else:
        text = str(cell).strip(SPACES)
        if not NUMBER.fullmatch(text):
            return None
        us = floor(Fraction(Decimal(text)) * UNITS_US[unit])
    return us if _is_in_range(us) else None


def _text_time(text: str) -> int | None:
    found = TIME.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute, second = (int(each or 0) for each in found.groups()[:6])
    hours, minutes = int(found[10] or 0), int(found[11] or 0)
    if not (year and 0 < month < 13 and hour < 24 and minute < 60 and second < 60):
        return None
    if not (0 < day <= monthrange(year, month)[1] and hours < 24 and minutes < 60):
        return None
    offset = timedelta(hours=hours, minutes=minutes) * (-1 if found[9] == "-" else 1)
    fraction = int(((found[7] or "") + "000000")[:6])
    wall = datetime(year, month, day, hour, minute, second, fraction, tzinfo=UTC)
    us = (wall - EPOCH) // MICROSECOND - offset // MICROSECOND
    return us if _is_in_range(us) else None


def _is_in_range(us: int) -> bool:
    """Return whether a time lies in the years 1 to 9999."""
    days = us // (86_400 * 10**6) + date(1970, 1, 1).toordinal()
    return date.min.toordinal() <= days <= date.max.toordinal()


def number_of(cell: object) -> float | None:
    """Return a number as the nearest float; a large one with all its digits has to be that float.

    An exponent that is larger than the number of decimal places leaves digits unwritten.
    """
    if cell is None or isinstance(cell, float):
        return cell
    text = str(cell).strip(SPACES)
    if re.fullmatch(r"[+-]?(nan|inf|infinity)", text, re.ASCII | re.IGNORECASE):
        return float(text)
    if not NUMBER.fullmatch(text):
        return None
    nearest = float(text)
    if nearest in (inf, -inf):
        return None
    digits, _, exponent = text.lower().partition("e")
    has_ones = int(exponent or 0) <= len(digits.partition(".")[2]) or not isinstance(cell, str)
    exact = Fraction(Decimal(text))
    if has_ones and abs(exact) >= 2**53 and exact != Fraction(nearest):
        return None
    return nearest


def same(one: float | None, other: float | None) -> bool:
    """Return whether two numbers are equal; NaN equals itself."""
    if one is None or other is None:
        return one is other
    return one == other or (isnan(one) and isnan(other))
