"""Spark jobs on trial: drawn streams, their runs, and what was right (``docs/your-job.md``)."""
