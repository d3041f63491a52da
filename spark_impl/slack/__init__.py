"""Room ``slack`` on Spark: adaptive K-slack windows that end exact (docs/slack.md)."""

from spark_impl.slack.query import (
    SlackQuery,
    corrections,
    make_system,
    pending,
    progress,
    rejected,
    results,
    run_in_process,
    run_workloads,
)

__all__ = [
    "SlackQuery",
    "corrections",
    "make_system",
    "pending",
    "progress",
    "rejected",
    "results",
    "run_in_process",
    "run_workloads",
]
