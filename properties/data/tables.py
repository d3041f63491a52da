"""A user's file as arrivals: Parquet or CSV, with the columns and the time unit that it has.

Rules of this file:

1. Nothing is guessed and nothing is repaired: a value that cannot be read is an error that names
   it and its row. Rows are counted from 1, the header of a CSV file not included.
2. Nothing is rounded in silence: times and whole numbers must be exact as 64-bit floats. The one
   exception is the unit ``ns``: whole nanoseconds are cut to microseconds.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from model.vocabulary import Event, stable_hash
from model.vocabulary.settings import nearest
from properties.data.frames import read_frame
from properties.errors import UsageError, counted
from sim.kernel.distributions import AnyArray

EVENT_TIME = "event_time"
TIME_UNITS = ("us", "ms", "s", "ns", "iso")
_TO_US = {"us": (0, 1), "ms": (3, 1), "s": (6, 1), "ns": (0, 1_000)}
"""Shift by so many decimal places to the left of the point, then divide (floor) by the second."""

EXACT = 2**53
"""Every whole number up to here is exact as a 64-bit float."""
_IN_RANGE = "within 2**53 microseconds of 1970 (the years 1684 to 2255), the times that are exact"
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)
_NOT_FINITE = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)
_BINARY = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Columns:
    """Names of the columns of a file, and the unit of its times.

    ``None`` stands for the default name of a column, which is used if the file has it.
    """

    event_time: str | None = None
    """Default ``event_time``; required if ``needs_times``."""
    value: str = "value"
    key: str | None = None
    """Default ``key``; without it every tuple has the key ``""``."""
    arrival: str | None = None
    """Default ``arrival_time``; without it rows arrive in file order, as early as possible."""
    id: str | None = None
    """Default: the row number. Identities are hashed unless all are plain 64-bit integers."""
    time_unit: str = "us"
    separator: str = ","
    needs_times: bool = True
    """Event times are required; without them rows are a microsecond apart."""
    may_lack_values: bool = False
    """Values that are NULL, NaN or infinite become NaN; otherwise they are refused."""


class Recording(NamedTuple):
    """Arrivals with the name that a user gave."""

    name: str
    label: str
    """Name with a note for the reader, for example that the arrivals are simulated."""
    events: tuple[Event, ...]

    @property
    def in_order(self) -> bool:
        """True if no event arrives after one with a later event time."""
        times = np.fromiter((e.event_time_us for e in self.events), np.int64, len(self.events))
        return bool(np.all(np.diff(times) >= 0))


DEFAULT_COLUMNS = Columns()


def read_table(path: Path, columns: Columns = DEFAULT_COLUMNS) -> Recording:
    """Read a Parquet or CSV file in order of arrival.

    Raise :class:`UsageError` for anything in the file that differs from ``columns``.
    """
    if not path.exists():
        raise UsageError(f"there is no file {str(path)!r}")
    if path.is_dir():
        raise UsageError(f"{str(path)!r} is a folder, not a Parquet or CSV file")
    frame = read_frame(path, columns.separator)
    _require_columns(frame, columns, path)
    if frame.empty:
        raise UsageError(f"{path.name} has no rows")
    event_time = columns.event_time or (EVENT_TIME if EVENT_TIME in frame.columns else None)
    rows = np.arange(len(frame), dtype=np.int64)
    event_us = rows if event_time is None else _times(frame, event_time, columns.time_unit)
    values = _numbers(frame, columns.value, columns.may_lack_values)
    keys = _keys(frame, columns.key or ("key" if "key" in frame.columns else None))
    ids = _ids(frame, columns.id)
    arrival = columns.arrival or ("arrival_time" if "arrival_time" in frame.columns else None)
    if arrival is None:
        arrival_us = np.maximum.accumulate(event_us)
    else:
        arrival_us = _times(frame, arrival, columns.time_unit)
    if columns.id is not None:
        _refuse_conflicts(ids, frame[columns.id], (event_us, values, np.array(keys, object)))
    return Recording(path.stem, path.name, arrivals(ids, keys, event_us, values, arrival_us))


def arrivals(
    ids: Ints, keys: Iterable[str], event_us: Ints, values: Iterable[float], arrival_us: Ints
) -> tuple[Event, ...]:
    """Return events in a stable order of arrival, from parallel columns."""
    order = np.argsort(arrival_us, kind="stable")
    columns = (
        ids[order].tolist(),
        np.asarray(list(keys), dtype=object)[order].tolist(),
        event_us[order].tolist(),
        np.asarray(values, dtype=np.float64)[order].tolist(),
        arrival_us[order].tolist(),
    )
    rows = zip(*columns, strict=True)
    return tuple(Event(seq, *row) for seq, row in enumerate(rows))


def cuts_into(rows: int, batches: int) -> tuple[int, ...]:
    """Return the cuts of ``rows`` rows into at most ``batches`` equal micro-batches, none empty."""
    made = min(rows, batches)
    return tuple(rows * number // made for number in range(1, made))


# ------------------------------------------------------------------------------------- columns


def _require_columns(frame: pd.DataFrame, columns: Columns, path: Path) -> None:
    names = [str(name) for name in frame.columns]
    event_time = columns.event_time or (EVENT_TIME if columns.needs_times else None)
    wanted = (event_time, columns.value, columns.key, columns.arrival, columns.id)
    for name in wanted:
        if name is not None and name not in names:
            have = ", ".join(names)
            raise UsageError(
                f"{path.name} has no column {name!r}; its columns are {have}{nearest(name, names)}"
            )


def _column(frame: pd.DataFrame, name: str, may_lack: bool = False) -> pd.Series:
    """Return a column of a readable type, without NULLs unless ``may_lack``."""
    column = frame[name]
    if _is_arrow(column, pa.types.is_nested, *_BINARY):
        kind = column.dtype.pyarrow_dtype
        raise UsageError(f"column {name!r} is of type {kind}, not of numbers, text or times")
    if not may_lack:
        _refuse_nulls(column.isna().to_numpy(dtype=bool), name)
    return column


def _refuse_nulls(missing: NDArray[np.bool_], name: str) -> None:
    if missing.any():
        count, row = int(missing.sum()), int(missing.argmax()) + 1
        which = ", the first" if count > 1 else ","
        raise UsageError(f"column {name!r} has {counted(count, 'NULL value')}{which} in row {row}")


def _refuse_first(bad: Iterable[bool], column: pd.Series, name: str, expected: str) -> None:
    row = next((row for row, is_bad in enumerate(bad) if is_bad), None)
    if row is None:
        return
    try:
        value = str(column.iloc[row])
    except (OverflowError, ValueError):  # a timestamp that Python has no date for
        value = str(column.astype(pd.ArrowDtype(pa.int64())).iloc[row])
    number = column.index[row] + 1  # of a column without its NULLs
    raise UsageError(f"column {name!r} has {value!r} in row {number}, which is not {expected}")


def _is_arrow(column: pd.Series, *checks: Callable[[pa.DataType], bool]) -> bool:
    dtype = column.dtype
    return isinstance(dtype, pd.ArrowDtype) and any(c(dtype.pyarrow_dtype) for c in checks)


def _texts(column: pd.Series) -> list[str]:
    return [str(value).strip() for value in column.tolist()]


def _whole_numbers(column: pd.Series) -> AnyArray | None:
    """Return a column as integers of 64 bits, signed or unsigned; None if a value is no integer."""
    if _is_arrow(column, pa.types.is_integer):
        return np.asarray(column.to_numpy())
    if _is_arrow(column, pa.types.is_floating):
        return None
    numbers = pd.to_numeric(column.astype(str).astype(object), errors="coerce").to_numpy()
    return np.asarray(numbers) if numbers.dtype.kind in "iu" else None


def _numbers(frame: pd.DataFrame, name: str, may_lack: bool) -> NDArray[np.float64]:
    """Return a column as finite float64, with NaN for missing values if ``may_lack``."""
    column = _column(frame, name, may_lack)
    is_there = column.notna().to_numpy(dtype=bool)
    there = column[is_there]
    found = np.full(len(column), np.nan)
    found[is_there] = _floats(there, name)
    if not may_lack:
        _refuse_first(~np.isfinite(found), column, name, "a finite number")
    return np.where(np.isfinite(found), found, np.nan)


def _floats(column: pd.Series, name: str) -> NDArray[np.float64]:
    """Convert a column to float64; refuse integers of more than 53 bits, which would be rounded."""
    whole = _whole_numbers(column)
    if whole is not None:
        _refuse_first(_beyond(whole, EXACT), column, name, "exact as a 64-bit float")
        return whole.astype(np.float64)
    if _is_arrow(column, pa.types.is_floating):
        return np.asarray(column.to_numpy(dtype=np.float64))
    texts = _texts(column)
    bad = (not (_NUMBER.fullmatch(t) or _NOT_FINITE.fullmatch(t)) for t in texts)
    _refuse_first(bad, column, name, "a number")
    floats = np.array([float(text) for text in texts], np.float64)
    # Compare the digits of an integer, because the float of 2**53 + 1 is 2**53.
    big = (abs(f) >= EXACT and _is_inexact(t) for f, t in zip(floats, texts, strict=True))
    _refuse_first(big, column, name, "exact as a 64-bit float")
    return floats


def _beyond(numbers: AnyArray, limit: float) -> NDArray[np.bool_]:
    # abs(-2**63) would overflow.
    return np.asarray((numbers > limit) | (numbers < -limit))


def _is_inexact(text: str) -> bool:
    return text.lstrip("+-").isdigit() and abs(Decimal(text)) > EXACT


# --------------------------------------------------------------------------------------- times


def _times(frame: pd.DataFrame, name: str, unit: str) -> Ints:
    """Return a column of times as microseconds since the epoch; times without a zone are UTC."""
    column = _column(frame, name)
    if _is_arrow(column, pa.types.is_timestamp):
        stamps = column.astype(pd.ArrowDtype(pa.int64())).to_numpy(dtype=np.int64)
        return _scaled(stamps, column, name, column.dtype.pyarrow_dtype.unit)
    if unit == "iso":
        return _iso_times(column, name)
    whole = _whole_numbers(column)
    if whole is not None:
        return _scaled(whole, column, name, unit)
    if _is_arrow(column, pa.types.is_floating):
        return _float_times(column, name, unit)
    return _decimal_times(column, name, unit)


def _scaled(whole: AnyArray, column: pd.Series, name: str, unit: str) -> Ints:
    shift, divide = _TO_US[unit]
    # Compare in the unit of the file, in which nothing overflows.
    _refuse_first(_beyond(whole, EXACT * divide // 10**shift), column, name, _IN_RANGE)
    return np.asarray(whole.astype(np.int64) * 10**shift // divide)


def _iso_times(column: pd.Series, name: str) -> Ints:
    texts = _texts(column)
    parsed = pd.to_datetime(pd.Series(texts), format="ISO8601", utc=True, errors="coerce")
    # pandas would also read 'now' and 'today'.
    unread = [nat or not t[:1].isdigit() for nat, t in zip(parsed.isna(), texts, strict=True)]
    bad = (is_bad and not _is_date(t) for is_bad, t in zip(unread, texts, strict=True))
    _refuse_first(bad, column, name, "an ISO 8601 time")
    _refuse_first(unread, column, name, _IN_RANGE)  # dates that pandas has no nanoseconds for
    stamps = parsed.dt.tz_localize(None).to_numpy(dtype="datetime64[us]")
    return _scaled(stamps.view(np.int64), column, name, "us")


def _is_date(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _float_times(column: pd.Series, name: str, unit: str) -> Ints:
    """Convert floats to whole microseconds; each must be the nearest float to its microsecond."""
    floats = column.to_numpy(dtype=np.float64)
    _refuse_first(~np.isfinite(floats), column, name, f"a time in {unit}")
    shift, divide = _TO_US[unit]
    _refuse_first(_beyond(floats, EXACT * divide / 10**shift), column, name, _IN_RANGE)
    us = np.rint(floats * 10**shift / divide)
    rounded = us * divide / 10**shift != floats
    _refuse_first(rounded, column, name, "a whole number of microseconds")
    return np.asarray(us.astype(np.int64))


def _decimal_times(column: pd.Series, name: str, unit: str) -> Ints:
    """Convert times in decimal text exactly, digit by digit."""
    texts = _texts(column)
    _refuse_first((not _NUMBER.fullmatch(t) for t in texts), column, name, f"a time in {unit}")
    shift, divide = _TO_US[unit]
    limit = Decimal(EXACT * divide).scaleb(-shift)
    exact = [Decimal(text) for text in texts]
    _refuse_first((t > limit or t < -limit for t in exact), column, name, _IN_RANGE)
    whole = [int(time.scaleb(shift).to_integral_value()) for time in exact]
    pairs = zip(whole, exact, strict=True)
    # Comparing decimals is exact, however many digits they have.
    rounded = (Decimal(number).scaleb(-shift) != time for number, time in pairs)
    finest = "nanoseconds" if unit == "ns" else "microseconds"
    _refuse_first(rounded, column, name, f"a whole number of {finest}")
    return np.array(whole, dtype=np.int64) // divide


# ---------------------------------------------------------------------------- keys, identities


def _labels(frame: pd.DataFrame, name: str) -> list[str]:
    column = _column(frame, name)
    if _is_arrow(column, pa.types.is_floating):
        _refuse_nulls(np.isnan(column.to_numpy(dtype=np.float64)), name)
    return [str(value) for value in column.tolist()]


def _keys(frame: pd.DataFrame, name: str | None) -> list[str]:
    return [""] * len(frame) if name is None else _labels(frame, name)


def _ids(frame: pd.DataFrame, name: str | None) -> Ints:
    if name is None:
        return np.arange(len(frame), dtype=np.int64)
    labels = _labels(frame, name)
    # '01' and '1' are two identities.
    plain = all(_is_plain_integer(label) for label in labels)
    return np.array([int(x) if plain else stable_hash(x) for x in labels], dtype=np.int64)


def _is_plain_integer(text: str) -> bool:
    # Limit the length to nineteen digits and a sign, so that int() stays cheap.
    if len(text) > 20 or not re.fullmatch(r"-?\d+", text, re.ASCII):
        return False
    return str(int(text)) == text and -(2**63) <= int(text) < 2**63


def _refuse_conflicts(ids: Ints, column: pd.Series, parts: tuple[AnyArray, ...]) -> None:
    """Raise :class:`UsageError` if rows with one identity differ; a redelivery is the same."""
    _, first, group = np.unique(ids, return_index=True, return_inverse=True)
    earlier = first[group]
    for part, what in zip(parts, ("event time", "value", "key"), strict=True):
        # NaN differs from itself; two missing values are equal.
        is_lacking = (part != part) & (part[earlier] != part[earlier])
        differs = (part != part[earlier]) & ~is_lacking
        if differs.any():
            row = int(differs.argmax())
            raise UsageError(
                f"identity {str(column.iloc[row])!r} is in row {int(earlier[row]) + 1} and in row"
                f" {row + 1} with another {what}; a redelivery repeats its tuple"
            )
