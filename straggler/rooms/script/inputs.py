"""Inputs of room ``script``: sensors, the tuples that they sent, and scripts as files.

Rules of this file:

1. The key of a tuple is its sensor. An input also brings its sensors, the scripts that run unless
   others are named, and its usual lateness.
2. No named recording has arrival times. Its delays are simulated, and its label says so.
3. A tuple of a file without a readable value has the value NaN: docs/script.md, section 4.
4. One script is one workflow, named after its file.
"""

import csv
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import NamedTuple

import numpy as np

from model.vocabulary import Event
from model.vocabulary.script.config import PER_HOUR_MAX
from model.vocabulary.script.tree import Sensor, Workflow
from model.vocabulary.settings import nearest
from sim.kernel.distributions import Distribution, Exponential, Lognormal
from straggler.errors import UsageError
from straggler.inputs import inputs
from straggler.inputs.columns import Columns
from straggler.inputs.inputs import MINUTE_US, SIMULATED
from straggler.inputs.tables import Recording, arrivals
from straggler.rooms.script.language import ScriptError, parse
from straggler.wiring import why_missing

WEATHER_HOURS = 90 * 24
HOUR_US = 60 * MINUTE_US

# --------------------------------------------------------------------------------------- scripts

SIZE_MAX = 1 << 24
"""Most bytes of a script."""
EXAMPLES = Path(__file__).parent / "examples"

Texts = Sequence[tuple[Path, str]]
"""Texts of scripts, each with its file."""


class InvalidScriptsError(UsageError):
    """Scripts with mistakes; the message is the first mistake."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__(lines[0])
        self.lines = lines
        """All mistakes for a terminal, each with its line of the script."""


def examples(network: str) -> tuple[Path, ...]:
    """Return the scripts that come with a network of sensors."""
    return tuple(sorted((EXAMPLES / network).glob("*.script")))


def read_script(path: Path) -> str:
    """Return the text of a script. Raise :class:`UsageError` if the file cannot be read."""
    name = repr(str(path))
    try:
        with path.open("rb") as file:
            data = file.read(SIZE_MAX + 1)
    except OSError as error:
        raise UsageError(f"{name} cannot be read: {error.strerror}") from error
    if len(data) > SIZE_MAX:
        raise UsageError(f"{name} is larger than {SIZE_MAX:,} bytes, the limit of a script")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        why = f"byte {data[error.start]:#04x} in line {line} is not UTF-8"
        raise UsageError(f"{name} is not text: {why}") from error


def read_all(files: Sequence[Path]) -> Texts:
    """Return the texts of all scripts; each file is read once, because it may be a pipe."""
    return [(path, read_script(path)) for path in files]


def workflows(texts: Texts, known: Collection[str] | None) -> list[Workflow]:
    """Parse all scripts; raise :class:`InvalidScriptsError` with all their mistakes.

    ``known`` are the sensors that scripts may name; ``None``: any.
    """
    found: list[Workflow] = []
    lines: list[str] = []
    for path, text in texts:
        try:
            found.append(parse(text, path.stem, known))
        except ScriptError as error:
            for mistake in error.mistakes:
                lines += mistake.lines(str(path))
    if lines:
        raise InvalidScriptsError(lines)
    return found


# --------------------------------------------------------------------------------------- sensors

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
"""Nine measures at three airports, once per hour."""
_FAST = ("ACC01_z", "DMS_AS", "DMS_CN", "FRC-01", "FRC-02", "INC01")
BRIDGE = {**dict.fromkeys(_FAST, 360_000), "AIR_TEMP": 3_600}
"""Acceleration, strain, force and tilt of a bridge at 100 Hz, and a thermometer."""
SENSORS = {"weather": WEATHER, "munich_bridge": BRIDGE}
"""Tuples per hour of each sensor, by name of the network."""
USUAL_PER_HOUR = 3_600
"""Tuples per hour of sensors with an unknown rate."""
COLUMNS = ["sensor", "per_hour"]
LIST = "sensors.csv"
"""Name of a list of sensors beside scripts."""


def find_list(scripts: Iterable[Path]) -> str | None:
    """Return the list of sensors beside some scripts, if there is one.

    Raise :class:`UsageError` if they lie in several folders that have one.
    """
    found = [path for path in sorted({each.parent / LIST for each in scripts}) if path.is_file()]
    if len(found) > 1:
        first, second = (repr(str(path)) for path in found[:2])
        raise UsageError(f"two lists of sensors, {first} and {second}: --sensors names one")
    return str(found[0]) if found else None


def load_sensors(name: str) -> dict[str, int]:
    """Return the tuples per hour by sensor, for a named network or from a CSV file.

    Raise :class:`UsageError` with one sentence.
    """
    if name in SENSORS:
        return SENSORS[name]
    path = Path(name)
    if not path.is_file():
        known = ", ".join(SENSORS)
        hint = nearest(name, SENSORS)
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
            sensor, per_hour = _read_row(name, number, row)
            if sensor in found:
                raise UsageError(f"line {number} of {name!r}: {sensor!r} appears a second time")
            found[sensor] = per_hour
    return found


def _read_row(name: str, number: int, row: list[str]) -> tuple[str, int]:
    try:
        sensor, per_hour = Sensor(row[0]).id, int(row[1])
        is_right = len(row) == len(COLUMNS) and 0 < per_hour <= PER_HOUR_MAX
    except (ValueError, IndexError):
        is_right = False
    if not is_right:
        expected = f"a sensor and its tuples in an hour, 1 to {PER_HOUR_MAX:_}"
        raise UsageError(f"line {number} of {name!r} is {row}; it must be {expected}")
    return sensor, per_hour


def count_per_hour(events: Sequence[Event]) -> dict[str, int]:
    """Return the tuples per hour that each sensor sent, rounded up, by name."""
    times_us = [event.event_time_us for event in events]
    hours = (max(times_us) - min(times_us)) / HOUR_US
    counts = Counter(event.key for event in events)
    return {
        sensor: min(max(1, ceil(count / hours)) if hours else count, PER_HOUR_MAX)
        for sensor, count in sorted(counts.items())
    }


# -------------------------------------------------------------------------------------- networks


class Network(NamedTuple):
    """A network of sensors: their tuples, and what is known of the sensors."""

    sent: Recording
    """Tuples of all sensors, in order of arrival."""
    per_hour: Mapping[str, int]
    """Tuples per hour, by sensor."""
    scripts: tuple[Path, ...] = ()
    """Scripts that come with the network."""
    lateness: str | None = None
    """Usual lateness, as a duration."""


def load(name: str, seed: int, columns: Columns, table: str | None) -> Network:
    """Return the named input, or the file ``name``, with the sensors of ``table``.

    ``table`` is a network or a CSV file (:func:`load_sensors`). Without it a file has the sensors
    that sent something, at their measured rates. Raise :class:`UsageError` with one sentence.
    """
    if name in NAMED:
        inputs.refuse_guard(name, columns)
        network = NAMED[name](seed)
    else:
        recording = inputs.load(name, seed, replace(columns, since_1970=True), {})
        if not any(event.key for event in recording.events):
            raise UsageError(f"there are no sensors in {recording.label}: --key names a column")
        network = Network(recording, count_per_hour(recording.events) if table is None else {})
    return network if table is None else network._replace(per_hour=load_sensors(table))


def add_delays(
    events: Sequence[Event], delay: Distribution, seed: int, name: str
) -> tuple[Event, ...]:
    """Return the tuples in order of arrival, each after a random delay of stream ``name``."""
    n = len(events)
    event_us = np.fromiter((event.event_time_us for event in events), np.int64, n)
    delays_us = inputs.delays_us(delay, seed, name, n)
    values = [event.value for event in events]
    keys = [event.key for event in events]
    return arrivals(np.arange(n, dtype=np.int64), keys, event_us, values, event_us + delays_us)


def weather_events(hours: int) -> tuple[Event, ...]:
    """Return the weather of the first ``hours`` hours of 2013, in time order; gaps stay gaps."""
    frame = inputs.weather()
    first = frame[frame["at_us"] < frame["at_us"].min() + hours * HOUR_US]
    long = first.melt(["origin", "at_us"], list(MEASURES)).dropna()
    long = long.sort_values(["at_us", "origin", "variable"], kind="stable")
    rows = zip(long["origin"], long["variable"], long["at_us"], long["value"], strict=True)
    return tuple(
        Event(seq, seq, f"{station}.{measure}", int(at_us), float(value), int(at_us))
        for seq, (station, measure, at_us, value) in enumerate(rows)
    )


def weather(seed: int) -> Network:
    """Return nine hourly measures at three airports: the first 90 days of 2013, with gaps."""
    sent = weather_events(WEATHER_HOURS)
    events = add_delays(sent, Lognormal(20 * MINUTE_US, 1.0), seed, "weather")
    recording = Recording("weather", f"weather {SIMULATED}", events)
    return Network(recording, WEATHER, examples("."), "1h")


def munich_bridge(seed: int) -> Network:
    """Return strain, force, tilt and acceleration at 100 Hz, and air temperature at 1 Hz."""
    if reason := why_missing("munich_bridge"):
        raise UsageError(reason)
    sent = inputs.load("munich_bridge", seed).events
    events = add_delays(sent, Exponential(20_000), seed, "munich_bridge")
    recording = Recording("munich_bridge", f"munich_bridge {SIMULATED}", events)
    return Network(recording, BRIDGE, examples("bridge"), "100ms")


NAMED: Mapping[str, Callable[[int], Network]] = {
    "weather": weather,
    "munich_bridge": munich_bridge,
}
"""Inputs by name: a function from a seed to a network."""
