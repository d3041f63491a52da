"""Disorder of an arrival order, to which scenarios and inputs are held."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from model.vocabulary import Event
from sim.scenarios import PROCESSES

DEPENDENT = "value-delay"
"""The process whose delays follow values: it violates the assumption of exchangeability."""
INDEPENDENT = tuple(name for name in PROCESSES if name != DEPENDENT)


class Disorder(NamedTuple):
    """Disorder of an arrival order. A tuple is late if a larger event time arrived before it."""

    tuples: int
    late_share: float
    late_share_within_keys: float
    """Share of late tuples if each tuple is compared with tuples of its own key only."""
    delay_p50_us: float
    delay_p99_us: float
    delay_max_us: float


def measure(arrivals: Sequence[Event]) -> Disorder:
    """Return the disorder of events in arrival order; all figures are 0 without events."""
    if not arrivals:
        return Disorder(0, 0.0, 0.0, 0.0, 0.0, 0.0)
    late, late_within = 0, 0
    latest_us, latest_of_key = arrivals[0].event_time_us, dict[str, int]()
    for event in arrivals:
        latest_within = latest_of_key.get(event.key, event.event_time_us)
        late += event.event_time_us < latest_us
        late_within += event.event_time_us < latest_within
        latest_us = max(latest_us, event.event_time_us)
        latest_of_key[event.key] = max(latest_within, event.event_time_us)
    delays = np.array([event.arrival_us - event.event_time_us for event in arrivals])
    p50, p99 = np.percentile(delays, (50, 99))
    n = len(arrivals)
    return Disorder(n, late / n, late_within / n, float(p50), float(p99), float(delays.max()))
