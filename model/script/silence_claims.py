"""The promise about silent sensors (docs/script.md, section 10, 8), judged on any trace.

Rules of this file:

* Silences are found from the arrivals by their definition, not by the model's ``Silences``.
* That a silent sensor holds no result back is part of another claim: results are what the workflows
  mean. Here it is only counted how often that made a difference.
"""

from collections.abc import Iterator, Mapping
from math import isfinite
from typing import NamedTuple

from model.script.evidence import Evidence
from model.vocabulary import Event
from model.vocabulary.script.config import REASON_LATE, Rejected, Result
from model.vocabulary.script.tree import Name, Sensor, walk

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


class _Hearing:
    """The arrivals so far."""

    def __init__(self, idle_after_us: int) -> None:
        self._idle_after_us = idle_after_us
        self._times_us: list[int] = []
        """Largest arrival time after each arrival."""
        self.latest_us: dict[str, int] = {}
        """Latest event time, by sensor."""
        self._last: dict[str, int] = {}
        """Position of the last arrival, by sensor."""

    def add(self, event: Event) -> None:
        self._times_us.append(max([event.arrival_us, *self._times_us[-1:]]))
        self.latest_us[event.key] = max(event.event_time_us, self.latest_us.get(event.key, 0))
        self._last[event.key] = len(self._times_us) - 1

    def is_silent(self, sensor: str) -> bool:
        if not self._times_us:
            return False
        last_us = self._times_us[self._last.get(sensor, 0)]
        return self._times_us[-1] - last_us > self._idle_after_us


def _hear(seen: Evidence, hearing: _Hearing) -> Iterator[Heard]:
    asked_for = seen.config.asked_for
    for event in seen.workload.arrivals:
        if not isfinite(event.value):
            continue
        if event.key in asked_for:
            own_us = hearing.latest_us.get(event.key, 0)
            all_us = max(hearing.latest_us.values(), default=0)
            at_us = event.event_time_us
            yield Heard(event, hearing.is_silent(event.key), own_us - at_us, all_us - at_us)
        hearing.add(event)


def heard(seen: Evidence) -> Iterator[Heard]:
    """Yield the finite arrivals of sensors that are asked for; none unless silence counts."""
    if seen.config.idle_after_us is not None:
        yield from _hear(seen, _Hearing(seen.config.idle_after_us))


def _late(seen: Evidence) -> frozenset[int]:
    return frozenset(each.seq for each in seen.trace.of(Rejected) if each.reason == REASON_LATE)


def against_silence(seen: Evidence) -> Iterator[str]:
    """Yield arrivals after a silence that are on the wrong side of the watermark."""
    late, most_us = _late(seen), seen.config.lateness_us or 0
    for event, is_silent, behind_us, behind_all_us in heard(seen):
        name = f"Arrival {event.seq} of {event.key!r}"
        if is_silent and behind_all_us > most_us and event.seq not in late:
            yield f"{name} lies {behind_all_us:,} us behind all after a silence, and is not late."
        if event.seq in late and behind_us <= 0 and behind_all_us <= most_us:
            yield f"{name} lies {behind_all_us:,} us behind all, and is late."


def has_silence(seen: Evidence) -> bool:
    """Return whether a silence of a sensor means anything."""
    return seen.config.idle_after_us is not None


def _late_after_silence(seen: Evidence) -> int:
    late = _late(seen)
    return sum(each.event.seq in late and each.behind_us <= 0 for each in heard(seen))


def _not_held_back(seen: Evidence) -> int:
    """Count results that a sensor, silent at the end, would hold back if its silence meant nothing.

    They lie beyond everything that the sensor has sent, so none of its watermarks covers them.
    """
    if seen.config.idle_after_us is None or seen.workload.flush:
        return 0
    hearing = _Hearing(seen.config.idle_after_us)
    for _ in _hear(seen, hearing):
        pass
    silent = {
        sensor: hearing.latest_us.get(sensor, 0)
        for sensor in seen.config.asked_for
        if hearing.is_silent(sensor)
    }
    below = _sensors_below(seen)
    return sum(
        any(each.ts_us > silent[sensor] for sensor in below[each.workflow, each.name] & {*silent})
        for each in seen.trace.of(Result)
    )


def _sensors_below(seen: Evidence) -> Mapping[tuple[str, str], frozenset[str]]:
    """Return all sensors that a statement depends on, by workflow and name."""
    found: dict[tuple[str, str], frozenset[str]] = {}
    for workflow in seen.config.workflows:
        for statement in workflow.statements:
            nodes = [node for node, _ in walk(statement.expression)]
            own = frozenset(node.id for node in nodes if isinstance(node, Sensor))
            named = (found[workflow.name, n.name] for n in nodes if isinstance(n, Name))
            found[workflow.name, statement.name] = own.union(*named)
    return found


CASES = {
    "arrivals after a silence": lambda seen: sum(each.is_silent for each in heard(seen)),
    "late after a silence": _late_after_silence,
    "results not held back by silence": _not_held_back,
}
