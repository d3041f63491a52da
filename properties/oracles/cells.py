"""The meaning of one cell of a user's table, by definition, with the standard library alone.

Rules of this file:

* Times, numbers and identities are None for a cell that cannot be read.
* A row is shown as JSON has it, which has finite numbers only and no bytes; times stay as they are.
"""

import re
from calendar import monthrange
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from math import floor, inf, isfinite, isnan
from typing import Any

from properties.oracles.hashing import signed_hash

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
UNITS_US = {"s": Fraction(10**6), "ms": Fraction(10**3), "us": Fraction(1)} | {
    "ns": Fraction(1, 10**3),
    "day": Fraction(86_400 * 10**6),
}
SPACES = " \t\r\n\f\v"
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)
TIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)"
    r"(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d+))?)?"
    r"(?: ?(Z|z|UTC|([+-])(\d\d)(?::?(\d\d))?))?)?",
    re.ASCII,
)
LIKELY_UNTIL = datetime(2200, 1, 1, tzinfo=UTC)
"""Times before this one are likely."""


def time_of(cell: object, unit: str) -> int | None:
    """Return a time in microseconds since 1970, rounded down; floats are rounded to the nearest."""
    if isinstance(cell, str) and unit not in UNITS_US:
        return _text_time(cell.strip(SPACES))
    us = _microseconds(cell, unit)
    if us is None:
        return None
    whole = round(us) if isinstance(cell, float) else floor(us)
    return whole if _is_in_range(whole) else None


def finer_unit(cell: object, unit: str) -> str | None:
    """Return the finer unit in which a time that is out of range would be a likely one."""
    us = _microseconds(cell, unit)
    if us is None or us <= 0 or time_of(cell, unit) is not None:
        return None
    names = ["s", "ms", "us", "ns"]
    likely_us = (LIKELY_UNTIL - EPOCH) // MICROSECOND
    finer = enumerate(names[names.index(unit) + 1 :], 1)
    return next((name for steps, name in finer if us / 1_000**steps < likely_us), None)


def _microseconds(cell: object, unit: str) -> Fraction | None:
    """Return a time in a unit as microseconds, exactly; None if it is no finite number."""
    if isinstance(cell, float):
        return Fraction(cell) * UNITS_US[unit] if isfinite(cell) else None
    text = str(cell).strip(SPACES)
    return Fraction(Decimal(text)) * UNITS_US[unit] if NUMBER.fullmatch(text) else None


def _text_time(text: str) -> int | None:
    found = TIME.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute, second = (int(each or 0) for each in found.groups()[:6])
    hours, minutes = int(found[10] or 0), int(found[11] or 0)
    if not (0 < month < 13 and hour < 24 and minute < 60 and second < 60):
        return None
    cycle = 0 if year else 400  # Python's calendar repeats after so many years, and has no year 0
    if not (0 < day <= monthrange(year + cycle, month)[1] and hours < 24 and minutes < 60):
        return None
    offset = timedelta(hours=hours, minutes=minutes) * (-1 if found[9] == "-" else 1)
    fraction = int(((found[7] or "") + "000000")[:6])
    wall = datetime(year + cycle, month, day, hour, minute, second, fraction, tzinfo=UTC)
    us = (wall - EPOCH - offset - timedelta(days=146_097 * cycle // 400)) // MICROSECOND
    return us if _is_in_range(us) else None


def _is_in_range(us: int) -> bool:
    """Return whether a time in UTC lies in the years 1 to 9999."""
    days = us // (86_400 * 10**6) + date(1970, 1, 1).toordinal()
    return date.min.toordinal() <= days <= date.max.toordinal()


def number_of(cell: object) -> float | None:
    """Return the nearest float; a number of 2^53 or more that writes its ones has to equal it.

    An exponent that is larger than the number of decimal places leaves the ones unwritten.
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


def text_of(cell: object) -> str | None:
    """Return a key or an identity as text; None for bytes that are not UTF-8."""
    if isinstance(cell, bytes):
        try:
            return cell.decode("utf-8")
        except UnicodeDecodeError:
            return None
    return None if cell is None else str(cell)


def identity_of(cell: object) -> int | None:
    """Return the 64-bit integer that a cell is, or is the decimal text of; else a text's hash."""
    text = text_of(cell)
    if text is None:
        return None
    number = int(text) if re.fullmatch(r"0|-?[1-9]\d*", text, re.ASCII) else 1 << 63
    if -(1 << 63) <= number < 1 << 63:
        return number
    return None if isinstance(cell, int) else signed_hash(text)


def shown(cell: Any) -> Any:
    """Return a cell, perhaps a nested one, as JSON has it."""
    match cell:
        case float():
            return cell if isfinite(cell) else str(cell)
        case bytes():
            return cell.hex()
        case dict():
            return {name: shown(each) for name, each in cell.items()}
        case list():
            return [shown(each) for each in cell]
        case Decimal():
            return str(cell)
    return cell
