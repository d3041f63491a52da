"""Recompute lateness with silent sensors from plain data: an oracle that imports nothing of ours.

Rules of this file:

* It reads a workload as JSON has it, and follows docs/script.md, section 4, by loops, for the
  watermark ``fixed``.
* The steps are methods, so that a test can plant a mistake in one of them.
"""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

LATE = "event time lies below the watermark of the sensor"
NOT_FINITE = "value is not a finite number"
Row = Sequence[Any]
"""An arrival: seq, identity, sensor, event time, value, arrival time, stream."""


class Lateness:
    """The rejected arrivals of a workload, and the watermarks at its end."""

    def __init__(self, workload: Mapping[str, Any], asked_for: frozenset[str]) -> None:
        config = workload["config"]
        self.idle_after_us: int | None = config.get("idle_after_us")
        self.lateness_us: int | None = config["lateness_us"]
        self.asked_for = asked_for
        self.watermark_us = {sensor: 0 for sensor, _rate in config["sensors"]}
        self.rejected: list[tuple[int, str]] = []
        self.now_us: int | None = None
        self.furthest_us = 0
        self.last_us: dict[str, int] = {}
        for row in workload["arrivals"]:
            self.judge(row)
            if self.counts(row):
                self.hear(row)
                self.move(row)

    def judge(self, row: Row) -> None:
        """Reject an arrival that is not finite or late."""
        if row[2] not in self.asked_for:
            return
        if not isfinite(float(row[4])):
            self.rejected.append((row[0], NOT_FINITE))
        elif row[3] < self.watermark_us[row[2]]:
            self.rejected.append((row[0], LATE))

    def counts(self, row: Row) -> bool:
        """Return whether an arrival moves the clocks."""
        return isfinite(float(row[4]))

    def moment_us(self, row: Row) -> int:
        """Return the time by which silence is measured."""
        arrival_us: int = row[5]
        return arrival_us

    def hear(self, row: Row) -> None:
        """Move the clocks of the stream, and the last moment of a sensor."""
        moment_us = self.moment_us(row)
        if self.now_us is None:
            self.last_us = dict.fromkeys(self.watermark_us, moment_us)
            self.now_us = moment_us
        self.now_us = max(self.now_us, moment_us)
        self.furthest_us = max(self.furthest_us, row[3])
        self.last_us[row[2]] = self.now_us

    def move(self, row: Row) -> None:
        """Move the watermark of the sensor of an arrival, and those of idle sensors."""
        if self.lateness_us is None or self.now_us is None:
            return
        if row[2] in self.watermark_us:
            self.raise_to(row[2], row[3] - self.lateness_us)
        for sensor in self.watermark_us if self.idle_after_us is not None else ():
            if self.now_us - self.last_us[sensor] > (self.idle_after_us or 0):
                self.raise_to(sensor, self.furthest_us - self.lateness_us)

    def raise_to(self, sensor: str, floor_us: int) -> None:
        """Raise the watermark of a sensor."""
        self.watermark_us[sensor] = max(self.watermark_us[sensor], floor_us)
