"""What experiments with room ``slack`` can run."""

from collections.abc import Mapping

import numpy as np

from sim.kernel.log import simulate_arrivals
from sim.settings import with_defaults
from sim.slack.settings import DEFAULTS, from_settings
from sim.sweep.measurable import Figures, Measurable, Settings, moments
from sim.windows.settings import stream_of


def timed(settings: Settings, seed: int) -> Figures:
    """The summary of one timed run."""
    return from_settings(settings, seed).summary


def delays(settings: Settings, seed: int) -> Figures:
    """How far behind the latest event time tuples arrive, which is what K-slack calls a delay."""
    given = with_defaults(settings, STREAM)
    events = simulate_arrivals(stream_of(given, seed), seed).events
    event_us = np.array([event.event_time_us for event in events], dtype=np.int64)
    delay_us = np.maximum.accumulate(event_us) - event_us
    return {
        "tuples": len(events),
        "late_share": float((delay_us > 0).mean()),
        "mean_delay_us": float(delay_us.mean()),
        "longest_delay_us": float(delay_us.max()),
    }


STREAM = {key: DEFAULTS[key] for key in ("scenario", "messages")}
MEASURABLES: Mapping[str, Measurable] = {
    "sim": Measurable(DEFAULTS, timed),
    "moments": moments(from_settings, DEFAULTS),
    "delays": Measurable(STREAM, delays),
}
"""By name."""
