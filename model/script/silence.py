"""Silent sensors: how far their watermarks follow the other sensors.

Source: docs/script.md, section 4.

Rules of this file:

* This file sees the arrivals of the whole stream, in their order. A worker sees only those of its
  own sensors, so it is told how far silence has moved their watermarks.
* A floor counts for the next arrival of its sensor, and for what is known now. It is never undone:
  whoever is told a floor keeps it.
"""

from collections.abc import Iterable, Mapping
from math import isfinite

from model.vocabulary import Event, ScriptConfig

NO_FLOORS: Mapping[str, int] = {}


class Silences:
    """The clocks of a stream, and the last moment of each of its sensors."""

    def __init__(self, config: ScriptConfig) -> None:
        self._idle_after_us = config.idle_after_us
        self._lateness_us = config.lateness_us or 0
        self._now_us: int | None = None
        """Largest arrival time so far; ``None`` before the first arrival."""
        self._first_us = 0
        """Arrival time of the first arrival."""
        self._latest_us = 0
        """Largest event time so far."""
        self._last_us: dict[str, int] = {}
        """Last moment by sensor, for sensors that have sent."""

    def take(self, event: Event) -> None:
        """Take the next arrival of the stream, whatever its sensor."""
        if self._idle_after_us is None or not isfinite(event.value):
            return
        moment_us = event.arrival_us
        if self._now_us is None:
            self._now_us = self._first_us = moment_us
        self._now_us = max(self._now_us, moment_us)
        self._latest_us = max(self._latest_us, event.event_time_us)
        self._last_us[event.key] = self._now_us

    def floor_us(self, sensor: str) -> int:
        """Return what the watermark of a sensor is at least; 0 unless the sensor is idle now."""
        if self._idle_after_us is None or self._now_us is None:
            return 0
        silent_us = self._now_us - self._last_us.get(sensor, self._first_us)
        if silent_us <= self._idle_after_us:
            return 0
        return max(0, self._latest_us - self._lateness_us)

    def floors_us(self, sensors: Iterable[str]) -> Mapping[str, int]:
        """Return the floors of those of the sensors that are idle now."""
        if self._idle_after_us is None:
            return NO_FLOORS
        floors_us = {each: self.floor_us(each) for each in sensors}
        return {each: floor_us for each, floor_us in floors_us.items() if floor_us}
