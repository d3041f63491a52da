"""Room ``script``, timed: what is sent for sensor scripts, and how soon they answer."""

from sim.script.measurables import side_by_side
from sim.script.room import ScriptRun, simulate
from sim.script.settings import SETTINGS, from_settings

__all__ = ["SETTINGS", "ScriptRun", "from_settings", "side_by_side", "simulate"]
