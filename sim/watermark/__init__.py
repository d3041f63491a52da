"""Room ``watermark``, timed: what waiting by disorder costs and misses (docs/watermark.md)."""

from sim.kernel.run import TimedRun
from sim.watermark.room import make_system, simulate
from sim.watermark.settings import DEFAULTS, from_settings

__all__ = ["DEFAULTS", "TimedRun", "from_settings", "make_system", "simulate"]
