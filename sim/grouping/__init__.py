"""Room ``grouping``, timed: what unequal instances make of a skewed stream (docs/grouping.md)."""

from sim.grouping.policies import side_by_side
from sim.grouping.run import Run, make_system, simulate, simulate_arrived
from sim.grouping.settings import DEFAULTS, from_settings

__all__ = [
    "DEFAULTS",
    "Run",
    "from_settings",
    "make_system",
    "side_by_side",
    "simulate",
    "simulate_arrived",
]
