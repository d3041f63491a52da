"""Room ``script``, timed: what is sent for sensor scripts, and how soon they answer."""

from sim.script.run import Run, make_system, simulate, simulate_arrived
from sim.script.settings import DEFAULTS, from_settings
from sim.script.sides import side_by_side

__all__ = [
    "DEFAULTS",
    "Run",
    "from_settings",
    "make_system",
    "side_by_side",
    "simulate",
    "simulate_arrived",
]
