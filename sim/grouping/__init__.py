"""Room ``grouping``, timed: what unequal instances make of a skewed stream (docs/grouping.md)."""

from sim.grouping.measurables import side_by_side
from sim.grouping.room import simulate
from sim.grouping.settings import SETTINGS, from_settings
from sim.kernel.run import TimedRun

__all__ = ["SETTINGS", "TimedRun", "from_settings", "side_by_side", "simulate"]
