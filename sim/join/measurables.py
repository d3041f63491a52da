"""What experiments with room ``join`` can run."""

from collections.abc import Mapping

from sim.join.experiments import (
    BATCH_DEFAULTS,
    CHAIN_DEFAULTS,
    RATE_DEFAULTS,
    bandwidth,
    in_batches,
    largest_rate,
)
from sim.join.settings import DEFAULTS, from_settings
from sim.sweep.measurable import Figures, Measurable, Settings, moments


def timed(settings: Settings, seed: int) -> Figures:
    """The summary of one timed run."""
    return from_settings(settings, seed).summary


MEASURABLES: Mapping[str, Measurable] = {
    "sim": Measurable(DEFAULTS, timed),
    "moments": moments(from_settings, DEFAULTS),
    "largest-rate": Measurable(RATE_DEFAULTS, largest_rate),
    "bandwidth": Measurable(CHAIN_DEFAULTS, bandwidth),
    "in-batches": Measurable(BATCH_DEFAULTS, in_batches),
}
"""By name."""
