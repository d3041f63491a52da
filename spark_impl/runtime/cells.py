"""Reads cells of a user's table as numbers, keys and identities.

A landing reads rows of a stream by these rules, the command line rows of a file; ``cell_times``
reads times. What a cell means depends on the cell alone, never on other rows, the session or the
time zone of the machine.

Rules of this file:

* Nothing is guessed: a cell that cannot be read is NULL and has a reason, which is the end of a
  sentence about the cell ("is not a number").
* Work is done on arrays. Only cells that arrays cannot decide on (an exponent in a time, a number
  of more than 53 bits) are looked at one by one, exactly.
"""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from model.vocabulary.hashing import stable_hash
from spark_impl.runtime.cell_arrays import (
    MISSING,
    Cells,
    Column,
    Reasons,
    filled,
    is_binary,
    is_text,
    matches,
    plain,
    stripped,
    utf8,
)
from spark_impl.runtime.cell_times import NUMBER, NUMBER_UNITS_US

TIMES, NUMBERS, KEYS, IDENTITIES = "a time", "a number", "text", "a whole number or text"
"""Kinds of cells that a column may be read as."""
GROUPS = "text or a whole number"
_NO_NUMBER = "is not a number"
_INEXACT = "is not exact as a 64-bit float"
_TOO_LARGE = "is beyond the largest 64-bit float"
_NO_INT64 = "is not a 64-bit integer"
_EXACT = 1 << 53
"""Every whole number up to here is exact as a 64-bit float."""
_NOT_FINITE = r"^(?i)[+-]?(nan|inf|infinity)$"
_CANONICAL = r"^(0|-?[1-9]\d{0,18})$"


def refuse_type(wanted: str, kind: pa.DataType, unit: str = "us") -> str | None:
    """Return why no column of a type can be read as ``wanted``; None if it can.

    The answer is the end of a sentence about the column: ``holds bool, not a number``.
    """
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    text = is_text(kind) or pa.types.is_null(kind)
    whole = pa.types.is_integer(kind)
    number = whole or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    if wanted == TIMES:
        on_calendar = pa.types.is_timestamp(kind) or pa.types.is_date(kind)
        fits = on_calendar or text or (number and unit in (*NUMBER_UNITS_US, "ns"))
    elif wanted == NUMBERS:
        fits = text or number
    else:
        fits = text or whole or (wanted == KEYS and is_binary(kind))
    return None if fits else f"holds {kind}, not {wanted}"


# ------------------------------------------------------------------------------------- numbers


def read_numbers(column: Column) -> Cells:
    """Read numbers as the nearest float64; NaN and infinities are numbers.

    A whole or decimal number of 2^53 or more has to be exact as a float64, and so has such a number
    in text that writes its ones (``9007199254740993``, ``9007199254740993e0``). Text whose exponent
    leaves the ones unwritten (``1e300``) need not be exact.
    """
    column, kind = plain(column)
    reasons = Reasons(column)
    if pa.types.is_floating(kind):
        return reasons.cells(filled(column.cast(pa.float64()), 0.0))
    if pa.types.is_integer(kind):
        whole = filled(column, 0)
        found = whole.astype(np.float64)
        large = np.flatnonzero(
            (whole > _EXACT) | (whole < -_EXACT if whole.dtype.kind == "i" else False)
        )
        exact = [int(found[row]) == int(whole[row]) for row in large.tolist()]
        inexact = np.zeros(len(whole), np.bool_)
        inexact[large] = ~np.array(exact, np.bool_)
        reasons.note(inexact, _INEXACT)
        return reasons.cells(found)
    texts = stripped(column)
    reasons.note(matches(texts, r"^$"), MISSING)
    finite = matches(texts, NUMBER)
    reasons.note(~finite & ~matches(texts, _NOT_FINITE), _NO_NUMBER)
    readable = pc.if_else(pa.array(reasons.bad), None, texts)
    found = filled(pc.utf8_ltrim(readable, "+").cast(pa.float64()), 0.0)
    reasons.note(finite & ~np.isfinite(found), _TOO_LARGE)
    large = finite & np.isfinite(found) & (np.abs(found) >= _EXACT)
    inexact = np.zeros(len(found), np.bool_)
    for row in np.flatnonzero(large).tolist():
        number = Decimal(texts[row].as_py())
        has_ones = int(number.as_tuple().exponent) <= 0 or not is_text(kind)
        is_large = number.copy_abs() >= _EXACT  # exact; abs() would round to 28 digits
        inexact[row] = has_ones and is_large and number != Decimal(found[row].item())
    reasons.note(inexact, _INEXACT)
    return reasons.cells(found)


# ---------------------------------------------------------------------------- keys, identities


def read_keys(column: Column) -> Cells:
    """Read keys as text, exactly as it is; integers as decimal numbers, bytes as UTF-8."""
    column, kind = plain(column)
    reasons = Reasons(column)
    if pa.types.is_integer(kind):
        return Cells(column.cast(pa.string()), reasons.reason())
    return Cells(utf8(column, reasons), reasons.reason())


def read_identities(column: Column) -> Cells:
    """Read identities as 64-bit integers; of text, ``texts`` keeps what the user wrote.

    Text that is the decimal form of such an integer is that integer, as in a column of integers;
    any other text is a number by :func:`model.vocabulary.stable_hash`. Two texts may share a
    number: queries compare ``texts``.
    """
    column, kind = plain(column)
    reasons = Reasons(column)
    if pa.types.is_integer(kind):
        whole = filled(column, 0)
        reasons.note(whole > (1 << 63) - 1, _NO_INT64)
        return reasons.cells(np.where(reasons.bad, 0, whole).astype(np.int64))
    texts = utf8(column, reasons)
    canonical = matches(texts, _CANONICAL)
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
