"""What experiments with room ``slack`` can run."""

from collections.abc import Mapping

from sim.slack.settings import DEFAULTS, from_settings
from sim.sweep.measurable import Figures, Measurable, Settings


def timed(settings: Settings, seed: int) -> Figures:
    """The summary of one timed run."""
    return from_settings(settings, seed).summary


MEASURABLES: Mapping[str, Measurable] = {"sim": Measurable(DEFAULTS, timed)}
"""By name."""
