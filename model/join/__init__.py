"""Room ``join``, the reference: a chain that joins on any predicate (docs/join.md)."""
