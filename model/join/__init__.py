"""Room ``join``, the reference: a chain that joins on any predicate (docs/join.md)."""

from model.join.run import make_system, run

__all__ = ["make_system", "run"]
