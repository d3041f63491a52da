"""Room ``slack``, the reference: adaptive K-slack windows that end exact (docs/slack.md)."""

from model.slack.machine import MODEL

run = MODEL.run
make_system = MODEL.make_system

__all__ = ["make_system", "run"]
