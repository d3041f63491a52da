"""Room ``join``, timed: costs and memory of a chain of workers (docs/join.md)."""

from sim.join.room import ChainRun, simulate
from sim.join.settings import SETTINGS, from_settings

__all__ = ["SETTINGS", "ChainRun", "from_settings", "simulate"]
