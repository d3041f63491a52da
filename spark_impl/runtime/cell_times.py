"""Reads times in files and streams of users, whether cells are text, numbers or timestamps.

``straggler/inputs/tables.py`` and ``typed_columns.py`` beside it call it for files, ``columns`` for
streams. Durations are read by ``model/vocabulary/durations.py``, times in conditions of joins by
``iso_times`` beside it.
"""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_impl.runtime.arrays import Bools, Floats, Ints
from spark_impl.runtime.cell_arrays import (
    MISSING,
    Cells,
    Column,
    Reasons,
    digits_of,
    filled,
    is_text,
    is_valid,
    matches,
    plain,
    stripped,
)

Duration: TypeAlias = str | timedelta
"""A length of time: a ``timedelta``, or a text with a unit such as ``"6 hours"`` or ``"500ms"``."""
NUMBER_UNITS_US = {"us": 1, "ms": 1_000, "s": 1_000_000}
"""Units of numeric times, in microseconds; a time in ``ns`` is a thousandth of one."""
_UNITS = {name: Fraction(us) for name, us in NUMBER_UNITS_US.items()} | {"ns": Fraction(1, 1_000)}
NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?$"
FIRST_US, LAST_US = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The first microsecond of the year 1 and the last one of the year 9999, since 1970."""
_NO_TIME = "is not a time"
_OUTSIDE = "lies outside of the years 1 to 9999"
_NEAR_US = 7_258_118_400_000_000
"""The year 2200, since 1970: a time before it is likely."""
_TEXT_TIME = (
    r"^\d{4}-\d{2}-\d{2}"
    r"(?:[Tt ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?"
    r"(?: ?(?:[Zz]|UTC|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?))?)?$"
)
_PLAIN = r"^(?P<sign>[+-]?)(?P<whole>\d{1,18})(?:\.(?P<fraction>\d*))?$"
_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
_2000_YEARS = timedelta(5 * 146_097)


def read_times(column: Column, unit: str) -> Cells:
    """Read times as microseconds since 1970, int64.

    ``unit`` is ``us``, ``ms``, ``s`` or ``ns`` for numbers; any other for text such as
    ``2024-05-01T02:30:00.5+02:00``. Text without a zone is UTC, and so is a timestamp without one:
    its wall clock. What is finer than a microsecond is cut; binary floats are rounded to the
    nearest one.
    """
    column, kind = plain(column)
    reasons = Reasons(column)
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        if pa.types.is_date(kind):
            column = column.cast(pa.timestamp("ms"))
        scale = column.type.unit
        us = _scaled(column.cast(pa.int64()), scale, reasons)
    elif is_text(kind) and unit not in (*NUMBER_UNITS_US, "ns"):
        us = _text_times(column, reasons)
    elif pa.types.is_integer(kind):
        us = _scaled(column, unit, reasons)
    elif pa.types.is_floating(kind):
        us = _float_times(column, unit, reasons)
    else:
        us = _decimal_times(stripped(column), unit, reasons)
    return reasons.cells(us)


def _scaled(column: pa.Array, unit: str, reasons: "Reasons") -> Ints:
    """Convert whole numbers of a unit to microseconds."""
    number = filled(column, 0)
    if unit == "ns":
        return np.asarray(number // 1_000).astype(np.int64)
    scale = NUMBER_UNITS_US[unit]
    low, high = -(-FIRST_US // scale), LAST_US // scale
    outside = (number > high) | ((number < low) if number.dtype.kind == "i" else False)
    reasons.note(outside, _OUTSIDE)
    _name_unit(number.astype(np.float64) * scale, outside, unit, reasons)
    return np.where(outside, 0, number).astype(np.int64) * scale


def _name_unit(us: Floats, outside: Bools, unit: str, reasons: "Reasons") -> None:
    """Say of times outside of all years which finer unit they seem to have, if one fits."""
    units = (*reversed(NUMBER_UNITS_US), "ns")
    unsaid = outside
    for steps, finer in enumerate(units[units.index(unit) + 1 :], 1):
        likely = unsaid & (us > 0) & (us / 1_000.0**steps < _NEAR_US)
        unsaid = unsaid & ~likely
        reasons.note(likely, f"{_OUTSIDE} in {unit}; it looks like {finer}", again=True)


def _float_times(column: pa.Array, unit: str, reasons: "Reasons") -> Ints:
    """Convert floats to the nearest microsecond of what they are, exactly."""
    number = filled(column.cast(pa.float64()), 0.0)
    reasons.note(~np.isfinite(number), _NO_TIME)
    number = np.where(reasons.bad, 0.0, number)
    steps, scale = (1_000.0, 1) if unit == "ns" else (1.0, NUMBER_UNITS_US[unit])  # in a whole time
    with np.errstate(over="ignore"):
        about = number / steps * scale
    outside = ~((about > FIRST_US - 1_000) & (about < LAST_US + 1_000))
    inside = np.where(outside, 0.0, number)
    small = np.where(np.abs(inside) < 1 << 62, inside, 0.0)
    whole = np.floor(small).astype(np.int64)
    # One product would be rounded twice. Here rounding passes no half, but may end at one.
    part = (whole % steps + (small - np.floor(small))) / steps * scale
    us: Ints = whole // int(steps) * scale + np.rint(part).astype(np.int64)
    for row in np.flatnonzero((part % 1 == 0.5) | (small != inside)).tolist():
        us[row] = round(Fraction(inside[row]) * _UNITS[unit])
    outside |= (us < FIRST_US) | (us > LAST_US)
    reasons.note(outside, _OUTSIDE)
    _name_unit(np.where(outside, about, 0.0), outside, unit, reasons)
    return us


def _decimal_times(texts: pa.Array, unit: str, reasons: "Reasons") -> Ints:
    """Convert decimal numbers exactly, digit by digit."""
    reasons.note(matches(texts, r"^$"), MISSING)
    none = ~matches(texts, NUMBER)
    reasons.note(none, f"is not a number of {unit}")
    if none.any():
        dates = none & matches(texts, _TEXT_TIME)
        reasons.note(dates, f"is not a number of {unit}; it looks like iso", again=True)
    parts = pc.extract_regex(texts, _PLAIN)
    plain = is_valid(parts) & ~reasons.bad
    digits = 0 if unit == "ns" else len(str(NUMBER_UNITS_US[unit])) - 1
    fraction = pc.coalesce(pc.struct_field(parts, "fraction"), "")
    padded = pc.utf8_rpad(pc.utf8_slice_codeunits(fraction, 0, digits), digits, "0")
    finer = pc.utf8_trim(pc.utf8_slice_codeunits(fraction, digits), "0")
    whole = digits_of(pc.struct_field(parts, "whole"), plain)
    small = digits_of(padded, plain)
    with np.errstate(over="ignore"):
        fits = plain & (whole < 10 ** (18 - digits))
        us: Ints = np.where(fits, whole, 0) * 10**digits + small
    negative = filled(pc.equal(pc.struct_field(parts, "sign"), "-"), False)
    us = np.where(negative, -us - filled(pc.not_equal(finer, ""), False), us)
    if unit == "ns":
        us = us // 1_000
    about = us.astype(np.float64)
    for row in np.flatnonzero(~fits & ~reasons.bad).tolist():  # exponents, and very many digits
        number = Decimal(texts[row].as_py()) * (Decimal("0.001") if unit == "ns" else 10**digits)
        about[row] = float(number)
        near = abs(number) < 10**18
        us[row] = int(number.to_integral_value("ROUND_FLOOR")) if near else LAST_US + 1
    outside = ~reasons.bad & ((us < FIRST_US) | (us > LAST_US))
    reasons.note(outside, _OUTSIDE)
    _name_unit(about, outside, unit, reasons)
    return us


def _text_times(column: pa.Array, reasons: "Reasons") -> Ints:
    """Convert texts of ISO 8601 with a calendar date."""
    texts = stripped(column)
    reasons.note(matches(texts, r"^$"), MISSING)
    reasons.note(~matches(texts, _TEXT_TIME), _NO_TIME)
    readable = pc.if_else(pa.array(reasons.bad), None, _in_one_form(texts))
    for kind in (pa.timestamp("us", "UTC"), pa.timestamp("us")):
        try:  # fast if all texts have a zone, or none has; refuses dates beyond the calendar
            us: Ints = filled(readable.cast(kind).cast(pa.int64()), 0)
        except pa.ArrowInvalid:
            continue
        reasons.note((us < FIRST_US) | (us > LAST_US), _OUTSIDE)
        return us
    found = [0 if text is None else _read_text(text) for text in readable.to_pylist()]
    reasons.note(np.array([each is None for each in found], np.bool_), _NO_TIME)
    us = np.array([each or 0 for each in found], np.int64)
    reasons.note(~reasons.bad & ((us < FIRST_US) | (us > LAST_US)), _OUTSIDE)
    return us


def _in_one_form(texts: pa.Array) -> pa.Array:
    """Return texts of times with ``Z`` for UTC, and without a blank before another zone."""
    zoned = pc.replace_substring_regex(texts, r" ?(UTC|[Zz])$", "Z")
    return pc.replace_substring_regex(zoned, r" ([+-])", r"\1")


def _read_text(text: str) -> int | None:
    """Return a time in microseconds since 1970; None if it is not on the calendar."""
    is_year_0 = text.startswith("0000")  # Python begins with the year 1; 2000 is a leap year, too
    try:
        time = datetime.fromisoformat(f"2{text[1:]}" if is_year_0 else text)
    except ValueError:
        return None
    aware = time if time.tzinfo else time.replace(tzinfo=UTC)
    return (aware - _EPOCH - is_year_0 * _2000_YEARS) // _MICROSECOND
