"""Measurables of room ``slack``: kinds of runs, by the name that an experiment gives."""

from collections.abc import Mapping

import numpy as np

from model.vocabulary.settings import pick, read_settings, settings_of
from sim.kernel.log import simulate_arrivals
from sim.slack.settings import EXAMPLE, SETTINGS, from_settings
from sim.slack.stream import STREAM as ONE_TASK
from sim.sweep.measurable import Figures, Measurable, Settings, summaries
from sim.windows.settings import StreamSettings, fit_example


def measure_delays(settings: Settings, seed: int) -> Figures:
    """Return figures of the delay (us): latest event time so far minus that of the tuple."""
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
    "sim": summaries(from_settings, SETTINGS, EXAMPLE, fit=fit_example),
    "stream": ONE_TASK,
    "delays": Measurable(STREAM, measure_delays),
}
