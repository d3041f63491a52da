"""Room ``slack``, timed: what waiting, missing and correcting cost (docs/slack.md)."""

from sim.kernel.run import TimedRun
from sim.slack.room import simulate
from sim.slack.settings import SETTINGS, from_settings

__all__ = ["SETTINGS", "TimedRun", "from_settings", "simulate"]
