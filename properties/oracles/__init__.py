"""Oracles: each promise by definition, with the standard library alone."""
