"""Benchmarks, measured side by side with the usual alternatives: `make bench`."""
