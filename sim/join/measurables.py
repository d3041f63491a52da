"""What experiments with room ``join`` can run."""

from collections.abc import Mapping

from sim.join.experiments import (
    BATCH_SETTINGS,
    CHAIN_SETTINGS,
    RATE_SETTINGS,
    bandwidth,
    in_batches,
    largest_rate,
)
from sim.join.settings import SETTINGS, from_settings
from sim.sweep.measurable import Figures, Measurable, Settings, moments


def timed(settings: Settings, seed: int) -> Figures:
    """The summary of one timed run."""
    return from_settings(settings, seed).summary


MEASURABLES: Mapping[str, Measurable] = {
    "sim": Measurable(SETTINGS, timed),
    "moments": moments(from_settings, SETTINGS),
    "largest-rate": Measurable(RATE_SETTINGS, largest_rate),
    "bandwidth": Measurable(CHAIN_SETTINGS, bandwidth),
    "in-batches": Measurable(BATCH_SETTINGS, in_batches),
}
"""By name."""
