"""The promises about late tuples (docs/script.md, section 10, 7 and 8), judged on any trace.

Rules of this file:

* How far an arrival lies behind others, and who is silent, follows from the arrivals by definition,
  not from the model's ``Intake`` and ``Silences``.
* That a silent sensor holds no result back is part of another claim: results are what the workflows
  mean.
"""

from collections.abc import Iterator
from math import isfinite
from typing import NamedTuple

from model.script.evidence import Evidence
from model.vocabulary import Event
from model.vocabulary.script.config import REASON_LATE, Rejected

BOUNDS = "late is what lies behind the latest, and all that lies farther than the lateness"
SILENCE = "silence makes late what lies too far behind all sensors, and nothing else"


class Heard(NamedTuple):
    """A finite arrival of a sensor that is asked for, and what was known before it."""

    event: Event
    is_silent: bool
    """Whether its sensor had been silent for longer than ``idle_after_us``."""
    behind_us: int
    """Distance behind the latest arrival of its sensor."""
    behind_all_us: int
    """Distance behind the latest arrival of any sensor."""


def heard(seen: Evidence) -> Iterator[Heard]:
    """Yield the finite arrivals of sensors that are asked for."""
    arrivals = [event for event in seen.workload.arrivals if isfinite(event.value)]
    idle_after_us, asked_for = seen.config.idle_after_us, seen.config.asked_for
    now_us = first_us = arrivals[0].arrival_us if arrivals else 0
    all_us = 0
    latest_us: dict[str, int] = {}
    moments_us: dict[str, int] = {}
    for event in arrivals:
        sensor, at_us = event.key, event.event_time_us
        own_us = latest_us.get(sensor, 0)
        if sensor in asked_for:
            silent_us = now_us - moments_us.get(sensor, first_us)
            is_silent = idle_after_us is not None and silent_us > idle_after_us
            yield Heard(event, is_silent, own_us - at_us, all_us - at_us)
        now_us, all_us = max(now_us, event.arrival_us), max(all_us, at_us)
        latest_us[sensor], moments_us[sensor] = max(own_us, at_us), now_us


def late_arrivals(seen: Evidence) -> frozenset[int]:
    """Return the positions of the arrivals that are recorded as late."""
    return frozenset(each.seq for each in seen.trace.of(Rejected) if each.reason == REASON_LATE)


def against_bounds(seen: Evidence) -> Iterator[str]:
    """Yield arrivals on the wrong side of the watermark, by each sensor's latest event time."""
    late, most_us = late_arrivals(seen), seen.config.lateness_us
    for event, _, behind_us, _ in heard(seen):
        # An idle sensor is late by what the others have sent: see SILENCE.
        not_behind = behind_us <= 0 and not has_silence(seen)
        if event.seq in late and (not_behind or most_us is None):
            yield f"Arrival {event.seq} does not lie behind {event.key!r}, and is late."
        if event.seq not in late and most_us is not None and behind_us > most_us:
            position = f"Arrival {event.seq} lies {behind_us:,} us behind {event.key!r}"
            yield f"{position}, and is not late."


def against_silence(seen: Evidence) -> Iterator[str]:
    """Yield arrivals after a silence that are on the wrong side of the watermark."""
    late, most_us = late_arrivals(seen), seen.config.lateness_us or 0
    for event, is_silent, behind_us, behind_all_us in heard(seen):
        name = f"Arrival {event.seq} of {event.key!r}"
        if is_silent and behind_all_us > most_us and event.seq not in late:
            yield f"{name} lies {behind_all_us:,} us behind all after a silence, and is not late."
        if event.seq in late and behind_us <= 0 and behind_all_us <= most_us:
            yield f"{name} lies {behind_all_us:,} us behind all, and is late."


def has_silence(seen: Evidence) -> bool:
    """Return whether a silence of a sensor means anything."""
    return seen.config.idle_after_us is not None


def late_after_silence(seen: Evidence) -> int:
    """Count the arrivals that are late because their sensor was silent."""
    late = late_arrivals(seen) if has_silence(seen) else frozenset[int]()
    return sum(each.event.seq in late and each.behind_us <= 0 for each in heard(seen))
