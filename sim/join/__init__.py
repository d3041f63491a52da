"""Room ``join``, timed: costs and memory of a chain of workers (docs/join.md)."""

from sim.join.room import ChainRun, simulate
from sim.join.settings import SETTINGS, STANDARD, from_settings

__all__ = ["SETTINGS", "STANDARD", "ChainRun", "from_settings", "simulate"]
