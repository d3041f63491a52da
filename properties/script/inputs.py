"""Sensors and what they sent: what ``--input`` understands in room ``script``.

Rules of this file:

1. The key of a tuple is its sensor. An input brings the sensors that there are, the scripts that
   are run when nobody names others, and how late a tuple may come.
2. Neither recording has times of arrival. Delays are simulated, and the label says so.
3. A tuple of a file may lack its value: it is NaN, and what becomes of it says section 4.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import NamedTuple

import numpy as np

from model.vocabulary import Event
from model.vocabulary.script import PER_HOUR_MAX
from properties.data import inputs
from properties.data.tables import Columns, arrivals
from properties.errors import UsageError
from properties.script import files, sensors
from sim.kernel.distributions import Distribution, Exponential, Lognormal, draw_us
from sim.kernel.seeds import Seeds

SIMULATED = "(delay simulated)"
WEATHER_HOURS = 90 * 24
MINUTE_US = 60_000_000


class Network(NamedTuple):
    """What sensors sent, with what is known of them."""

    name: str
    label: str
    events: tuple[Event, ...]
    per_hour: Mapping[str, int]
    """Tuples an hour, by sensor."""
    scripts: tuple[Path, ...] = ()
    """Those that come with it."""
    lateness: str | None = None
    """What is usual for it, as a duration."""


def load(name: str, seed: int, columns: Columns, table: str | None) -> Network:
    """The input called ``name``, or in the file ``name``, with the sensors of a table.

    Without a table there are the sensors that sent something, as often as they did. Raises
    :class:`UsageError` with one sentence.
    """
    if name in NAMED:
        network = NAMED[name](seed)
    else:
        columns = replace(columns, may_lack_values=True)
        recording = inputs.load(name, seed, columns, {})
        if not any(event.key for event in recording.events):
            raise UsageError(f"there are no sensors in {recording.label}: --key names a column")
        per_hour = rates(recording.events) if table is None else {}
        network = Network(recording.name, recording.label, recording.events, per_hour)
    return network if table is None else network._replace(per_hour=sensors.load(table))


def missing(name: str) -> str | None:
    """Why an input cannot be had, if it is a recording that is not there."""
    there = name not in inputs.PUBLISHED or name in inputs.recordings_by_name()
    return None if there else inputs.missing_recording(name)


def rates(events: Sequence[Event]) -> dict[str, int]:
    """Tuples that sensors sent in an hour, rounded up, by name."""
    times_us = [event.event_time_us for event in events]
    hours = (max(times_us) - min(times_us)) / sensors.HOUR_US
    counts = Counter(event.key for event in events)
    return {
        sensor: min(max(1, ceil(count / hours)) if hours else count, PER_HOUR_MAX)
        for sensor, count in sorted(counts.items())
    }


def delayed(
    events: Sequence[Event], delay: Distribution, seed: int, name: str
) -> tuple[Event, ...]:
    """The same tuples as they arrive, each on its way for a time that is drawn."""
    n = len(events)
    event_us = np.fromiter((event.event_time_us for event in events), np.int64, n)
    ways_us = np.rint(draw_us(delay, Seeds(seed), name, n)).astype(np.int64)
    values = [event.value for event in events]
    keys = [event.key for event in events]
    return arrivals(np.arange(n, dtype=np.int64), keys, event_us, values, event_us + ways_us)


def weather(seed: int) -> Network:
    """Three airports, nine measures, hourly: the first 90 days of 2013, with their gaps."""
    sent = sensors.weather(WEATHER_HOURS)
    events = delayed(sent, Lognormal(20 * MINUTE_US, 1.0), seed, "weather")
    scripts = files.examples(".")
    return Network("weather", f"weather {SIMULATED}", events, sensors.WEATHER, scripts, "1h")


def munich_bridge(seed: int) -> Network:
    """Strain, force, tilt and acceleration at 100 Hz, the warmth of the air once a second."""
    reason = missing("munich_bridge")
    if reason is not None:
        raise UsageError(reason)
    sent = inputs.load("munich_bridge", seed).events
    events = delayed(sent, Exponential(20_000), seed, "munich_bridge")
    label = f"munich_bridge {SIMULATED}"
    scripts = files.examples("bridge")
    return Network("munich_bridge", label, events, sensors.BRIDGE, scripts, "100ms")


NAMED: Mapping[str, Callable[[int], Network]] = {
    "weather": weather,
    "munich_bridge": munich_bridge,
}
"""Inputs by name: a function from a seed to a network."""
