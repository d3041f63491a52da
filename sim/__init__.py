"""Timed simulations: when it happens and what it costs."""
