"""Room ``script``, timed: what is sent for sensor scripts, and how soon they answer."""

from sim.script.room import simulate
from sim.script.settings import SETTINGS, example, from_settings

__all__ = ["SETTINGS", "example", "from_settings", "simulate"]
