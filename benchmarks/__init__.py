"""Benchmarks, measured side by side with what a user would take instead: `make bench`."""
