"""Spark jobs on trial: drawn streams, their runs, and what was right (``docs/your-job.md``)."""

APPEND, UPDATE, COMPLETE = MODES = ("append", "update", "complete")
"""Output modes of a query."""
