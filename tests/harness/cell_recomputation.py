"""Meaning of the cells of a user's table, one at a time: an oracle that imports nothing of ours.

A function returns None for a cell that cannot be read.
"""

import re
from calendar import monthrange
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from math import floor, inf, isfinite, isnan

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
UNITS_S = {"s": Fraction(1), "ms": Fraction(1, 10**3), "us": Fraction(1, 10**6)} | {
    "ns": Fraction(1, 10**9)
}
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
        return (cell.replace(tzinfo=cell.tzinfo or UTC) - EPOCH) // timedelta(microseconds=1)
    if isinstance(cell, date):
        return (cell - EPOCH.date()).days * 86_400 * 10**6
    if isinstance(cell, str) and unit not in UNITS_S:
        return _text_time(cell.strip(" \t\r\n\f\v"))
    if isinstance(cell, float):
        if not isfinite(cell):
            return None
        us = round(Fraction(cell) * UNITS_S[unit] * 10**6)
    else:
        text = str(cell).strip(" \t\r\n\f\v")
        if not NUMBER.fullmatch(text):
            return None
        us = floor(Fraction(Decimal(text)) * UNITS_S[unit] * 10**6)
    return us if _is_in_range(us) else None


def _text_time(text: str) -> int | None:
    found = TIME.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute, second = (int(each or 0) for each in found.groups()[:6])
    hours, minutes = int(found[10] or 0), int(found[11] or 0)
    if not (0 < month < 13 and hour < 24 and minute < 60 and second < 60):
        return None
    # 2000 and the years before 1 lie in cycles of 400 years.
    if not (0 < day <= monthrange(year or 2000, month)[1] and hours < 24 and minutes < 60):
        return None
    if year == 0:
        return None
    offset = timedelta(hours=hours, minutes=minutes) * (-1 if found[9] == "-" else 1)
    fraction = int(((found[7] or "") + "000000")[:6])
    wall = datetime(year, month, day, hour, minute, second, fraction, tzinfo=UTC)
    us = (wall - EPOCH) // timedelta(microseconds=1) - offset // timedelta(microseconds=1)
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
    text = str(cell).strip(" \t\r\n\f\v")
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
