"""Room ``script``, timed: what is sent for sensor scripts, and how soon they answer."""

from sim.kernel.run import TimedRun
from sim.script.measurables import side_by_side
from sim.script.room import simulate
from sim.script.settings import SETTINGS, example, from_settings

__all__ = ["SETTINGS", "TimedRun", "example", "from_settings", "side_by_side", "simulate"]
