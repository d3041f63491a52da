"""Sweeps on the command line: their files and their output (docs/sweeps.md)."""
