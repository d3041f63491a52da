"""Room ``grouping``, the reference: skewed streams on unequal workers (docs/grouping.md)."""

from model.grouping.run import make_system, run

__all__ = ["make_system", "run"]
