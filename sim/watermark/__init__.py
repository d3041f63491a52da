"""Room ``watermark``, timed: what waiting by disorder costs and misses (docs/watermark.md)."""

from sim.watermark.run import make_system, simulate
from sim.watermark.settings import DEFAULTS, from_settings
from sim.windows.run import Run

__all__ = ["DEFAULTS", "Run", "from_settings", "make_system", "simulate"]
