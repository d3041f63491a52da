"""What experiments with room ``slack`` can run."""

from collections.abc import Mapping

import numpy as np

from model.vocabulary.settings import pick, read_settings, settings_of
from sim.kernel.log import simulate_arrivals
from sim.slack.settings import SETTINGS, from_settings
from sim.sweep.measurable import Figures, Measurable, Settings, moments
from sim.windows.settings import StreamSettings


def timed(settings: Settings, seed: int) -> Figures:
    """The summary of one timed run."""
    return from_settings(settings, seed).summary


def delays(settings: Settings, seed: int) -> Figures:
    """How far behind the latest event time tuples arrive, which is what K-slack calls a delay."""
    stream = pick(StreamSettings, read_settings(settings, STREAM))
    events = simulate_arrivals(stream.plan(seed), seed).events
    event_us = np.array([event.event_time_us for event in events], dtype=np.int64)
    delay_us = np.maximum.accumulate(event_us) - event_us
    return {
        "tuples": len(events),
        "late_share": float((delay_us > 0).mean()),
        "mean_delay_us": float(delay_us.mean()),
        "longest_delay_us": float(delay_us.max()),
    }


STREAM = settings_of(StreamSettings)
MEASURABLES: Mapping[str, Measurable] = {
    "sim": Measurable(SETTINGS, timed),
    "moments": moments(from_settings, SETTINGS),
    "delays": Measurable(STREAM, delays),
}
"""By name."""
