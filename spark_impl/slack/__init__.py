"""Room ``slack`` on Spark: adaptive K-slack windows that end exact (docs/slack.md)."""

from spark_impl.slack.answers import results
from spark_impl.slack.query import QueryProblem, SlackQuery
from spark_impl.slack.system import make_system, run_in_process, run_workloads

__all__ = [
    "QueryProblem",
    "SlackQuery",
    "make_system",
    "results",
    "run_in_process",
    "run_workloads",
]
