"""Room ``slack``, timed: what waiting, missing and correcting cost (docs/slack.md)."""

from sim.kernel.run import TimedRun
from sim.slack.room import make_system, simulate
from sim.slack.settings import DEFAULTS, from_settings

__all__ = ["DEFAULTS", "TimedRun", "from_settings", "make_system", "simulate"]
