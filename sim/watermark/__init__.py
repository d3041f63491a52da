"""Room ``watermark``, timed: what waiting by disorder costs and misses (docs/watermark.md)."""

from sim.kernel.run import TimedRun
from sim.watermark.room import simulate
from sim.watermark.settings import SETTINGS, from_settings

__all__ = ["SETTINGS", "TimedRun", "from_settings", "simulate"]
