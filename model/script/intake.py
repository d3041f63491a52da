"""Admission: which arrivals of a sensor are admitted, and its watermark.

Source: docs/script.md, section 4.

Rules of this file:

* An arrival is judged by the watermark before it; cluster and watermark move afterwards.
* A sensor is independent of all others, wherever it is admitted. What the others mean for a silent
  sensor is a floor that is given (``model/script/silence.py``).
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import isfinite

from model.script.rules import Rules
from model.vocabulary import Event, ScriptConfig
from model.vocabulary.script.config import REASON_LATE, REASON_NOT_FINITE, TIME_END_US
from model.windows.cluster import Cluster, wait_us

REDELIVERED = ""
"""Reason of an arrival that repeats an admitted tuple. It is no rejection."""


@dataclass(slots=True)
class Clock:
    """The progress of one sensor."""

    cluster: Cluster
    watermark_us: int = 0
    latest_us: int = 0
    ids: dict[int, int] = field(default_factory=dict)
    """Event times of the admitted tuples, by identity."""


class Intake:
    """Sensors whose tuples are admitted or refused."""

    def __init__(self, config: ScriptConfig, rules: Rules, sensors: Iterable[str]) -> None:
        self.clocks = {sensor: Clock(Cluster(config.cluster)) for sensor in sensors}
        """Everything that changes, by sensor."""
        self._rules = rules
        self._lateness_us = config.lateness_us
        self._watermark = config.watermark

    def raise_to(self, sensor: str, floor_us: int) -> None:
        """Move the watermark of a silent sensor up to a floor."""
        clock = self.clocks[sensor]
        clock.watermark_us = max(clock.watermark_us, floor_us)

    def admit(self, event: Event, floor_us: int = 0) -> str | None:
        """Admit the next arrival; return the reason if it is refused, and otherwise ``None``.

        Before this arrival, silence has moved the watermark up to the floor at least.

        Raises ``ValueError`` with one sentence for an event time outside 0 to 2^61.
        """
        seq, source_id, sensor, stamp_us, value = event[:5]
        if not 0 <= stamp_us < TIME_END_US:
            arrival = f"arrival {seq} has the event time {stamp_us}"
            msg = f"{arrival}; it must be at least 0 and below 2^61"
            raise ValueError(msg)
        if not isfinite(value):
            return REASON_NOT_FINITE
        self.raise_to(sensor, floor_us)
        clock = self.clocks[sensor]
        if stamp_us < clock.watermark_us:
            self._advance(clock, stamp_us)
            return REASON_LATE
        if source_id in clock.ids:
            return REDELIVERED
        clock.ids[source_id] = stamp_us
        self._advance(clock, stamp_us)
        return None

    def forget(self) -> None:
        """Forget identities below the watermarks, because a redelivery of them is late."""
        for clock in self.clocks.values():
            if clock.watermark_us:
                kept = {each: at for each, at in clock.ids.items() if at >= clock.watermark_us}
                clock.ids = kept

    def _advance(self, clock: Clock, stamp_us: int) -> None:
        lateness_us = self._lateness_us
        if lateness_us is None:
            return
        if self._watermark != "fixed":
            self._follow(clock, stamp_us, lateness_us)
            return
        clock.watermark_us = max(clock.watermark_us, stamp_us - lateness_us)

    def _follow(self, clock: Clock, stamp_us: int, most_us: int) -> None:
        """Enter an arrival into the cluster, and move the watermark."""
        clock.cluster.enter(stamp_us)
        clock.latest_us = max(clock.latest_us, stamp_us)
        reached_us = clock.latest_us - wait_us(self._watermark, most_us, clock.cluster)
        clock.watermark_us = self._rules.watermark_us(clock.watermark_us, reached_us)
