"""What sweeps need of others: Parquet, Spark, a terminal, and CI (docs/sweeps.md)."""
