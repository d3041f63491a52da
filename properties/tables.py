"""A user's file as arrivals: Parquet or CSV, with the columns and the time unit that it has.

Rules of this file:

1. Nothing is guessed and nothing is repaired: a value that cannot be read is an error that names
   it and its row. Rows are counted from 1, the header of a CSV file not included.
2. A CSV file is read as text first, for only text can be quoted in an error.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet
from pyarrow.lib import ArrowException

from model.vocabulary import Event, stable_hash
from properties.errors import UsageError, counted, nearest

TIME_UNITS = ("us", "ms", "s", "ns", "iso")
_TO_US = {"us": (1, 1), "ms": (1_000, 1), "s": (1_000_000, 1), "ns": (1, 1_000)}
"""Multiply by the first, then divide (floor) by the second."""

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Columns:
    """What the columns of a file are called, and how its times are written.

    ``None`` for a column that has a default name: it is used where the file has it.
    """

    event_time: str = "event_time"
    value: str = "value"
    key: str | None = None
    """Default ``key``; without it every tuple has the key ``""``."""
    arrival: str | None = None
    """Default ``arrival_time``; without it rows arrive in file order, as early as possible."""
    id: str | None = None
    """Default: the number of the row. Text is hashed."""
    time_unit: str = "us"
    separator: str = ","


class Recording(NamedTuple):
    """Arrivals with a name, as a user knows them."""

    name: str
    label: str
    """The name with what a reader must know, for example that it is simulated."""
    events: tuple[Event, ...]

    @property
    def in_order(self) -> bool:
        """Whether no event arrives after one with a later event time."""
        times = np.fromiter((e.event_time_us for e in self.events), np.int64, len(self.events))
        return bool(np.all(np.diff(times) >= 0))


DEFAULT_COLUMNS = Columns()


def read_table(path: Path, columns: Columns = DEFAULT_COLUMNS) -> Recording:
    """Read a Parquet file (or a folder of them) or a CSV file in order of arrival.

    Raises :class:`UsageError` with one sentence for everything that is not as ``columns`` says.
    """
    if not path.exists():
        raise UsageError(f"there is no file {str(path)!r}")
    frame = _read_parquet(path) if _is_parquet(path) else _read_csv(path, columns)
    _require_columns(frame, columns, path)
    if frame.empty:
        raise UsageError(f"{path.name} has no rows")
    event_us = _times(frame, columns.event_time, columns.time_unit)
    values = _numbers(frame, columns.value)
    keys = _keys(frame, columns.key or ("key" if "key" in frame.columns else None))
    ids = _ids(frame, columns.id)
    arrival = columns.arrival or ("arrival_time" if "arrival_time" in frame.columns else None)
    if arrival is None:
        arrival_us = np.maximum.accumulate(event_us)
    else:
        arrival_us = _times(frame, arrival, columns.time_unit)
    return Recording(path.stem, path.name, arrivals(ids, keys, event_us, values, arrival_us))


def arrivals(
    ids: Ints, keys: Iterable[str], event_us: Ints, values: Iterable[float], arrival_us: Ints
) -> tuple[Event, ...]:
    """Events in a stable order of arrival, from parallel columns."""
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


# --------------------------------------------------------------------------------------- files


def _is_parquet(path: Path) -> bool:
    if path.is_dir() or path.suffix.lower() in {".parquet", ".pq"}:
        return True
    with path.open("rb") as file:
        return file.read(4) == b"PAR1"


def _read_parquet(path: Path) -> pd.DataFrame:
    try:
        table = parquet.read_table(path)
    except (ArrowException, OSError) as error:
        raise UsageError(f"{path.name} is not a Parquet file that can be read") from error
    return table.to_pandas(types_mapper=pd.ArrowDtype)


def _read_csv(path: Path, columns: Columns) -> pd.DataFrame:
    try:
        return pd.read_csv(path, sep=columns.separator, dtype=str, skipinitialspace=True)
    except pd.errors.EmptyDataError as error:
        raise UsageError(f"{path.name} is empty") from error
    except (pd.errors.ParserError, UnicodeDecodeError, OSError) as error:
        raise UsageError(f"{path.name} is neither a Parquet nor a CSV file") from error


def _require_columns(frame: pd.DataFrame, columns: Columns, path: Path) -> None:
    names = [str(name) for name in frame.columns]
    wanted = (columns.event_time, columns.value, columns.key, columns.arrival, columns.id)
    for name in wanted:
        if name is not None and name not in names:
            have = ", ".join(names)
            raise UsageError(
                f"{path.name} has no column {name!r}, it has: {have}{nearest(name, names)}"
            )


# ------------------------------------------------------------------------------------- columns


def _refuse_nulls(column: pd.Series, name: str) -> None:
    missing = column.isna().to_numpy(dtype=bool)
    if missing.any():
        count, row = int(missing.sum()), int(missing.argmax()) + 1
        which = ", the first" if count > 1 else ","
        raise UsageError(f"column {name!r} has {counted(count, 'NULL value')}{which} in row {row}")


def _refuse_first(bad: NDArray[np.bool_], column: pd.Series, name: str, expected: str) -> None:
    if bad.any():
        row = int(bad.argmax())
        value = str(column.iloc[row])
        raise UsageError(f"column {name!r} has {value!r} in row {row + 1}, which is not {expected}")


def _is_arrow(column: pd.Series, *checks: Any) -> bool:
    dtype = column.dtype
    return isinstance(dtype, pd.ArrowDtype) and any(c(dtype.pyarrow_dtype) for c in checks)


def _numbers(frame: pd.DataFrame, name: str) -> NDArray[np.float64]:
    """A column as float64; integers of more than 53 bits are refused rather than rounded."""
    column = frame[name]
    _refuse_nulls(column, name)
    numbers = pd.to_numeric(_as_text_or_number(column), errors="coerce")
    _refuse_first(numbers.isna().to_numpy(dtype=bool), column, name, "a number")
    exact = numbers.to_numpy()
    if exact.dtype.kind in "iu":
        too_big = np.abs(exact) > 2**53
        _refuse_first(too_big, column, name, "exact as a 64-bit float")
    return np.asarray(exact, dtype=np.float64)


def _times(frame: pd.DataFrame, name: str, unit: str) -> Ints:
    """A column of times as microseconds since the epoch; times without a zone are UTC."""
    column = frame[name]
    _refuse_nulls(column, name)
    if _is_arrow(column, pa.types.is_timestamp):
        stamps = column.astype("datetime64[us, UTC]").to_numpy(dtype="datetime64[us]")
        return np.asarray(stamps.view(np.int64))
    if unit == "iso":
        parsed = pd.to_datetime(column.astype(str), format="ISO8601", utc=True, errors="coerce")
        _refuse_first(parsed.isna().to_numpy(dtype=bool), column, name, "an ISO 8601 time")
        stamps = parsed.dt.tz_localize(None).to_numpy(dtype="datetime64[us]")
        return np.asarray(stamps.view(np.int64))
    numbers = pd.to_numeric(_as_text_or_number(column), errors="coerce")
    bad = ~np.isfinite(numbers.to_numpy(dtype=np.float64, na_value=np.nan))
    _refuse_first(bad, column, name, f"a time in {unit}")
    multiply, divide = _TO_US[unit]
    exact = numbers.to_numpy()
    if exact.dtype.kind in "iu":
        return np.asarray(exact.astype(np.int64) * multiply // divide)
    return np.asarray(np.rint(exact.astype(np.float64) * multiply / divide).astype(np.int64))


def _as_text_or_number(column: pd.Series) -> pd.Series:
    """What ``pandas.to_numeric`` can read: anything but numbers goes through its text."""
    if _is_arrow(column, pa.types.is_integer):
        return column.astype(np.int64)
    if _is_arrow(column, pa.types.is_floating):
        return column.astype(np.float64)
    return column.astype(str).astype(object)


def _keys(frame: pd.DataFrame, name: str | None) -> list[str]:
    if name is None:
        return [""] * len(frame)
    _refuse_nulls(frame[name], name)
    return [str(value) for value in frame[name].tolist()]


def _ids(frame: pd.DataFrame, name: str | None) -> Ints:
    if name is None:
        return np.arange(len(frame), dtype=np.int64)
    column = frame[name]
    _refuse_nulls(column, name)
    numbers = pd.to_numeric(_as_text_or_number(column), errors="coerce")
    if not numbers.isna().any() and numbers.to_numpy().dtype.kind == "i":
        return np.asarray(numbers.to_numpy(), dtype=np.int64)
    return np.array([stable_hash(str(value)) for value in column.tolist()], dtype=np.int64)
