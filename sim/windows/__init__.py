"""Timed runs of windowed rooms, which answer windows early and correct them later."""
