"""Sweeps on the command line: their files, their output, and Spark (docs/sweeps.md)."""
