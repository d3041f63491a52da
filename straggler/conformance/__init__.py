"""Engines of others, judged by the same promises as ours, and the page with their verdicts."""
