"""What experiments with room ``watermark`` can run."""

from collections.abc import Mapping

from sim.sweep.measurable import Figures, Measurable, Settings
from sim.watermark.settings import SETTINGS, from_settings


def timed(settings: Settings, seed: int) -> Figures:
    """The summary of one timed run."""
    return from_settings(settings, seed).summary


MEASURABLES: Mapping[str, Measurable] = {"sim": Measurable(SETTINGS, timed)}
"""By name."""
