"""Room ``slack``, the reference: adaptive K-slack windows that end exact (docs/slack.md)."""

from model.slack.run import make_system, run

__all__ = ["make_system", "run"]
