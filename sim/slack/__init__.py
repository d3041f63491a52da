"""Room ``slack``, timed: what waiting, missing and correcting cost (docs/slack.md)."""

from sim.slack.run import make_system, simulate
from sim.slack.settings import DEFAULTS, from_settings
from sim.windows.run import Run

__all__ = ["DEFAULTS", "Run", "from_settings", "make_system", "simulate"]
