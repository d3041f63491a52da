"""Windows over a history, whatever says how long to wait: what rooms on Spark have in common."""
