"""Room ``script``, timed: what is sent for sensor scripts, and how soon they answer."""

from sim.script.room import ScriptRun, make_system, replay, simulate
from sim.script.settings import SETTINGS, from_settings
from sim.script.sides import side_by_side

__all__ = [
    "SETTINGS",
    "ScriptRun",
    "from_settings",
    "make_system",
    "replay",
    "side_by_side",
    "simulate",
]
