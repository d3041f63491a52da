"""Room ``grouping``, timed: what unequal instances make of a skewed stream (docs/grouping.md)."""

from sim.grouping.policies import side_by_side
from sim.grouping.room import make_system, replay, simulate
from sim.grouping.settings import SETTINGS, from_settings
from sim.kernel.run import TimedRun

__all__ = [
    "SETTINGS",
    "TimedRun",
    "from_settings",
    "make_system",
    "replay",
    "side_by_side",
    "simulate",
]
