"""Room ``join`` on Spark: a chain of workers that joins on any predicate (docs/join.md)."""
