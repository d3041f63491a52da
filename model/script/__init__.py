"""Room ``script``, the reference: sensor scripts as shared window aggregates (docs/script.md)."""

from model.script.run import make_system, run

__all__ = ["make_system", "run"]
