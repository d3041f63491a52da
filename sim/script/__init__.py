"""Room ``script``, timed: what is sent for sensor scripts, and how soon they answer."""

from sim.script.room import simulate
from sim.script.settings import SETTINGS, from_settings

__all__ = ["SETTINGS", "from_settings", "simulate"]
