"""Room ``grouping``, the reference: skewed streams on unequal workers (docs/grouping.md)."""

from model.grouping.machine import make_system, run

__all__ = ["make_system", "run"]
