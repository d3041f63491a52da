"""Reads cells of a user's table as times, numbers, keys and identities, for both doors.

A landing reads the rows of a stream with it, the command line the rows of a file. What a cell means
depends on the cell alone, never on other rows, the session or the time zone of the machine.

Rules of this file:

* Nothing is guessed: a cell that cannot be read is NULL and has a reason, which goes on a sentence
  about the cell ("is not a number").
* Work is done on arrays. Only cells that arrays cannot decide on (an exponent in a time, a number
  of more than 53 bits) are looked at one by one, exactly.
"""

from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from model.vocabulary.hashing import stable_hash
from spark_impl.runtime.arrays import Bools, Floats, Ints

Column: TypeAlias = pa.Array
"""A column of Arrow's, or a chunked one."""

UNITS_US = {"us": 1, "ms": 1_000, "s": 1_000_000}
"""Units of numeric times, in microseconds; a time in ``ns`` is a thousandth of one."""
TIMES, NUMBERS, KEYS, IDENTITIES = "a time", "a number", "text", "a whole number or text"
"""What a column may be read as."""
FIRST_US, LAST_US = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The first microsecond of the year 1 and the last one of the year 9999, since 1970."""

MISSING = "is missing"
_NO_TIME, _NO_NUMBER, _NO_TEXT = "is not a time", "is not a number", "is not text in UTF-8"
_OUTSIDE = "lies outside of the years 1 to 9999"
_INEXACT = "is not exact as a 64-bit float"
_TOO_LARGE = "is beyond the largest 64-bit float"
_NO_INT64 = "is not a 64-bit integer"

_EXACT = 1 << 53
"""Every whole number up to here is exact as a 64-bit float."""
_NEAR_US = 7_258_118_400_000_000
"""The year 2200, since 1970: a time before it is likely."""
_TEXT_TIME = (
    r"^(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})"
    r"(?:[Tt ](?P<hour>\d{2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,](?P<fraction>\d+))?)?"
    r"(?: ?(?P<zone>[Zz]|UTC|(?P<sign>[+-])(?P<hours>\d{2})(?::?(?P<minutes>\d{2}))?))?)?$"
)
_PLAIN = r"^(?P<sign>[+-]?)(?P<whole>\d{1,18})(?:\.(?P<fraction>\d*))?$"
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?$"
_NOT_FINITE = r"^(?i)[+-]?(nan|inf|infinity)$"
_CANONICAL = r"^(0|-?[1-9]\d{0,18})$"
_DAY_US = 86_400_000_000


class Cells(NamedTuple):
    """Cells of one column, and what is wrong with those that cannot be read."""

    values: pa.Array
    """NULL where a cell cannot be read."""
    reason: pa.Array
    """Why not, as the end of a sentence about the cell; NULL where it can."""
    texts: pa.Array | None = None
    """Identities only, if they are text: what the user wrote."""


def refuse_type(wanted: str, kind: pa.DataType, unit: str = "us") -> str | None:
    """Return why no column of a type can be read as ``wanted``; None if it can.

    The answer goes on a sentence about the column: ``holds bool, not a number``.
    """
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    text = _is_text(kind) or pa.types.is_null(kind)
    whole = pa.types.is_integer(kind)
    number = whole or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    if wanted == TIMES:
        on_calendar = pa.types.is_timestamp(kind) or pa.types.is_date(kind)
        fits = on_calendar or text or (number and unit in (*UNITS_US, "ns"))
    elif wanted == NUMBERS:
        fits = text or number
    else:
        fits = text or whole or (wanted == KEYS and _is_binary(kind))
    return None if fits else f"holds {kind}, not {wanted}"


# --------------------------------------------------------------------------------------- times


def read_times(column: Column, unit: str) -> Cells:
    """Read times as microseconds since 1970, int64.

    ``unit`` is ``us``, ``ms``, ``s`` or ``ns`` for numbers; any other for text such as
    ``2024-05-01T02:30:00.5+02:00``. Text without a zone is UTC, and so is a timestamp without one:
    its wall clock. What is finer than a microsecond is cut; binary floats are rounded to the
    nearest one.
    """
    column, kind = _plain(column)
    reasons = _Reasons(column)
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        if pa.types.is_date(kind):
            column = column.cast(pa.timestamp("ms"))
        scale = column.type.unit
        us = _scaled(column.cast(pa.int64()), scale, reasons)
    elif _is_text(kind) and unit not in (*UNITS_US, "ns"):
        us = _text_times(column, reasons)
    elif pa.types.is_integer(kind):
        us = _scaled(column, unit, reasons)
    elif pa.types.is_floating(kind):
        us = _float_times(column, unit, reasons)
    else:
        us = _decimal_times(_stripped(column), unit, reasons)
    return reasons.cells(us)


def _scaled(column: pa.Array, unit: str, reasons: "_Reasons") -> Ints:
    """Convert whole numbers of a unit to microseconds."""
    number = _filled(column, 0)
    if unit == "ns":
        return np.asarray(number // 1_000).astype(np.int64)
    scale = UNITS_US[unit]
    low, high = -(-FIRST_US // scale), LAST_US // scale
    outside = (number > high) | ((number < low) if number.dtype.kind == "i" else False)
    reasons.note(outside, _OUTSIDE)
    _name_unit(number.astype(np.float64) * scale, outside, unit, reasons)
    return np.where(outside, 0, number).astype(np.int64) * scale


def _name_unit(us: Floats, outside: Bools, unit: str, reasons: "_Reasons") -> None:
    """Say of times outside of all years which finer unit they seem to have, if one fits."""
    units = (*reversed(UNITS_US), "ns")
    unsaid = outside
    for steps, finer in enumerate(units[units.index(unit) + 1 :], 1):
        likely = unsaid & (us > 0) & (us / 1_000.0**steps < _NEAR_US)
        unsaid = unsaid & ~likely
        reasons.note(likely, f"{_OUTSIDE} in {unit}; it looks like {finer}", again=True)


def _float_times(column: pa.Array, unit: str, reasons: "_Reasons") -> Ints:
    number = _filled(column.cast(pa.float64()), 0.0)
    reasons.note(~np.isfinite(number), _NO_TIME)
    with np.errstate(all="ignore"):
        us = np.rint(number / 1e3 if unit == "ns" else number * UNITS_US[unit])
        outside = np.isfinite(number) & ~((us >= FIRST_US) & (us <= LAST_US))
    reasons.note(outside, _OUTSIDE)
    _name_unit(np.where(outside, us, 0.0), outside, unit, reasons)
    return np.where(reasons.bad, 0.0, us).astype(np.int64)


def _decimal_times(texts: pa.Array, unit: str, reasons: "_Reasons") -> Ints:
    """Convert decimal numbers exactly, digit by digit."""
    reasons.note(_matches(texts, r"^$"), MISSING)
    reasons.note(~_matches(texts, _NUMBER), f"is not a number of {unit}")
    parts = pc.extract_regex(texts, _PLAIN)
    plain = _valid(parts) & ~reasons.bad
    digits = 0 if unit == "ns" else len(str(UNITS_US[unit])) - 1
    fraction = pc.coalesce(pc.struct_field(parts, "fraction"), "")
    padded = pc.utf8_rpad(pc.utf8_slice_codeunits(fraction, 0, digits), digits, "0")
    finer = pc.utf8_trim(pc.utf8_slice_codeunits(fraction, digits), "0")
    whole = _digits(pc.struct_field(parts, "whole"), plain)
    small = _digits(padded, plain)
    with np.errstate(over="ignore"):
        fits = plain & (whole < 10 ** (18 - digits))
        us: Ints = np.where(fits, whole, 0) * 10**digits + small
    negative = _filled(pc.equal(pc.struct_field(parts, "sign"), "-"), False)
    us = np.where(negative, -us - _filled(pc.not_equal(finer, ""), False), us)
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


def _text_times(column: pa.Array, reasons: "_Reasons") -> Ints:
    """Convert texts of ISO 8601 with a calendar date."""
    texts = _stripped(column)
    if (_matches(texts, _TEXT_TIME) | reasons.bad).all():
        for kind in (pa.timestamp("us", "UTC"), pa.timestamp("us")):
            try:  # fast if all texts have a zone, or none has; refuses the rarer forms
                us: Ints = _filled(texts.cast(kind).cast(pa.int64()), 0)
            except pa.ArrowInvalid:
                continue
            reasons.note((us < FIRST_US) | (us > LAST_US), _OUTSIDE)
            return us
    reasons.note(_matches(texts, r"^$"), MISSING)
    parts = pc.extract_regex(texts, _TEXT_TIME)
    read = _valid(parts)

    def part(name: str, least: int = 0) -> Ints:
        field = pc.struct_field(parts, name)
        given = pc.if_else(pc.equal(field, ""), str(least), field)
        return _digits(given, read)

    year, month, day = part("year"), part("month"), part("day")
    hour, minute, second = part("hour"), part("minute"), part("second")
    hours, minutes = part("hours"), part("minutes")
    fraction = pc.utf8_slice_codeunits(pc.coalesce(pc.struct_field(parts, "fraction"), ""), 0, 6)
    micro = _digits(pc.utf8_rpad(fraction, 6, "0"), read)
    leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    lengths = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])
    length = lengths[np.clip(month, 0, 12)] + ((month == 2) & leap)
    valid = (month >= 1) & (month <= 12) & (day >= 1) & (day <= length)
    valid &= (hour < 24) & (minute < 60) & (second < 60) & (hours < 24) & (minutes < 60)
    reasons.note(~(read & valid), _NO_TIME)
    days = _days_since_1970(year, month, day)
    offset_s = (hours * 60 + minutes) * 60
    offset_s = (
        np.where(_filled(pc.equal(pc.struct_field(parts, "sign"), "-"), False), -1, 1) * offset_s
    )
    seconds = (hour * 60 + minute) * 60 + second - offset_s
    us = np.asarray(days * _DAY_US + seconds * 1_000_000 + micro, np.int64)
    reasons.note(~reasons.bad & ((us < FIRST_US) | (us > LAST_US)), _OUTSIDE)
    return us


def _days_since_1970(year: Ints, month: Ints, day: Ints) -> Ints:
    """Return the days between 1970 and a date of the proleptic Gregorian calendar."""
    # Years that begin in March have their leap day at the end (Howard Hinnant, days_from_civil).
    shifted = year - (month <= 2)
    era = shifted // 400
    of_era = shifted - era * 400
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    days: Ints = era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468
    return days


# ------------------------------------------------------------------------------------- numbers


def read_numbers(column: Column) -> Cells:
    """Read numbers as the nearest float64; NaN and infinities are numbers.

    A whole or decimal number of 2^53 or more, in a column of such numbers or as text without an
    exponent, has to be exact as a float64.
    """
    column, kind = _plain(column)
    reasons = _Reasons(column)
    if pa.types.is_floating(kind):
        return reasons.cells(_filled(column.cast(pa.float64()), 0.0))
    if pa.types.is_integer(kind):
        whole = _filled(column, 0)
        found = whole.astype(np.float64)
        large = np.flatnonzero(
            (whole > _EXACT) | (whole < -_EXACT if whole.dtype.kind == "i" else False)
        )
        exact = [int(found[row]) == int(whole[row]) for row in large.tolist()]
        inexact = np.zeros(len(whole), np.bool_)
        inexact[large] = ~np.array(exact, np.bool_)
        reasons.note(inexact, _INEXACT)
        return reasons.cells(found)
    texts = _stripped(column)
    reasons.note(_matches(texts, r"^$"), MISSING)
    finite = _matches(texts, _NUMBER)
    reasons.note(~finite & ~_matches(texts, _NOT_FINITE), _NO_NUMBER)
    readable = pc.if_else(pa.array(reasons.bad), None, texts)
    found = _filled(pc.utf8_ltrim(readable, "+").cast(pa.float64()), 0.0)
    reasons.note(finite & ~np.isfinite(found), _TOO_LARGE)
    large = finite & np.isfinite(found) & (np.abs(found) >= _EXACT) & ~_matches(texts, "[eE]")
    inexact = np.zeros(len(found), np.bool_)
    for row in np.flatnonzero(large).tolist():
        inexact[row] = Decimal(texts[row].as_py()) != Decimal(found[row].item())
    reasons.note(inexact, _INEXACT)
    return reasons.cells(found)


# ---------------------------------------------------------------------------- keys, identities


def read_keys(column: Column) -> Cells:
    """Read keys as text, exactly as it is; integers as decimal numbers, bytes as UTF-8."""
    column, kind = _plain(column)
    reasons = _Reasons(column)
    if pa.types.is_integer(kind):
        return Cells(column.cast(pa.string()), reasons.reason())
    return Cells(_utf8(column, reasons), reasons.reason())


def read_identities(column: Column) -> Cells:
    """Read identities as 64-bit integers; of text, ``texts`` keeps what the user wrote.

    Text that is the decimal form of such an integer is that integer, as in a column of integers;
    any other text is a number by :func:`model.vocabulary.stable_hash`. Two texts may share a
    number: :func:`find_clash` names them.
    """
    column, kind = _plain(column)
    reasons = _Reasons(column)
    if pa.types.is_integer(kind):
        whole = _filled(column, 0)
        reasons.note(whole > (1 << 63) - 1, _NO_INT64)
        return reasons.cells(np.where(reasons.bad, 0, whole).astype(np.int64))
    texts = _utf8(column, reasons)
    canonical = _matches(texts, _CANONICAL)
    if canonical.all():
        try:
            return Cells(texts.cast(pa.int64()), reasons.reason(), texts)
        except pa.ArrowInvalid:  # one of them has more than 64 bits
            pass
    pairs = zip(texts.to_pylist(), canonical.tolist(), strict=True)
    found = np.array([_number_identity(text, is_whole) for text, is_whole in pairs], np.int64)
    return reasons.cells(found)._replace(texts=texts)


def _number_identity(text: str | None, is_whole: bool) -> int:
    if text is None:
        return 0
    number = int(text) if is_whole else 1 << 63
    return number if -(1 << 63) <= number < 1 << 63 else stable_hash(text)


def find_clash(values: pa.Array, texts: pa.Array) -> tuple[str, str] | None:
    """Return two different texts of identities that have one number, None if there are none."""
    if len(texts) == 0:
        return None
    table = pa.table({"value": values, "text": texts}).group_by("value")
    ends = table.aggregate([("text", "min"), ("text", "max")])
    differ = pc.not_equal(ends.column("text_min"), ends.column("text_max"))
    clash = ends.filter(pc.fill_null(differ, False)).slice(0, 1).to_pylist()
    return (clash[0]["text_min"], clash[0]["text_max"]) if clash else None


# --------------------------------------------------------------------------------------- helpers


class _Reasons:
    """The first reason of each cell of a column."""

    def __init__(self, column: pa.Array) -> None:
        self.bad: Bools = _filled(column.is_null(), True)
        self._texts = [MISSING]
        self._which = self.bad.astype(np.int64)

    def note(self, cells: Bools, reason: str, *, again: bool = False) -> None:
        """Note a reason for cells that have none yet, or (``again``) a better one."""
        fresh = cells if again else cells & ~self.bad
        if fresh.any():
            self._texts.append(reason)
            self._which[fresh] = len(self._texts)
            self.bad = self.bad | fresh

    def reason(self) -> pa.Array:
        """Return the reasons, NULL for cells without one."""
        places = pa.array(self._which - 1, pa.int64(), mask=self._which == 0)
        return pa.array(self._texts, pa.string()).take(places)

    def cells(self, values: Ints | Floats) -> Cells:
        """Return values, NULL for cells with a reason."""
        return Cells(pa.array(values, mask=self.bad), self.reason())


def _plain(column: Column) -> tuple[pa.Array, pa.DataType]:
    """Return a column as one array of its plain type; a column without a type is text."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):  # pyarrow keeps no chunk as one
            column = pa.concat_arrays(column.chunks)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_null(column.type):
        column = column.cast(pa.string())
    return column, column.type


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_binary(kind: pa.DataType) -> bool:
    tests: tuple[Callable[[pa.DataType], bool], ...] = (
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_fixed_size_binary,
    )
    return any(test(kind) for test in tests)


def _filled(column: pa.Array, blank: float) -> Any:
    """Return a column as numpy's, of whatever type it has, with ``blank`` for NULL."""
    return np.asarray(pc.fill_null(column, blank).to_numpy(zero_copy_only=False))


def _valid(column: pa.Array) -> Bools:
    valid: Bools = _filled(column.is_valid(), False)
    return valid


def _matches(texts: pa.Array, pattern: str) -> Bools:
    matches: Bools = _filled(pc.match_substring_regex(texts, pattern), False)
    return matches


def _digits(texts: pa.Array, where: Bools) -> Ints:
    """Return texts of digits as integers, 0 elsewhere."""
    kept = pc.if_else(pa.array(where), texts, "0")
    numbers: Ints = _filled(pc.if_else(pc.equal(kept, ""), "0", kept).cast(pa.int64()), 0)
    return numbers


def _stripped(column: pa.Array) -> pa.Array:
    """Return numbers or texts as texts, without blanks around them."""
    reasons = _Reasons(column)
    texts = _utf8(column, reasons) if _is_text(column.type) else column.cast(pa.string())
    return pc.utf8_trim(texts, " \t\r\n\f\v")


def _utf8(column: pa.Array, reasons: _Reasons) -> pa.Array:
    """Return text or bytes as text, NULL with a reason where it is not UTF-8."""
    raw = column.cast(pa.large_binary()) if _is_text(column.type) else column
    try:
        return raw.cast(pa.large_binary()).cast(pa.large_string()).cast(pa.string())
    except pa.ArrowInvalid:
        decoded = [_decode(each) for each in raw.to_pylist()]
        reasons.note(np.array([each is None for each in decoded], np.bool_), _NO_TEXT)
        return pa.array(decoded, pa.string())


def _decode(data: bytes | None) -> str | None:
    try:
        return None if data is None else data.decode("utf-8")
    except UnicodeDecodeError:
        return None
