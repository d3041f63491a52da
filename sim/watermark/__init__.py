"""Room ``watermark``, timed: what waiting by disorder costs and misses (docs/watermark.md)."""

from sim.kernel.run import TimedRun
from sim.watermark.room import simulate
from sim.watermark.settings import SETTINGS, example, from_settings

__all__ = ["SETTINGS", "TimedRun", "example", "from_settings", "simulate"]
