"""Room ``grouping`` on Spark: balanced routing of skewed streams (docs/grouping.md)."""

from spark_impl.grouping.instances import Step, at_instances, merged_answers, partial_aggregates
from spark_impl.grouping.query import (
    Grouping,
    GroupingStream,
    Progress,
    pending,
    progress,
    rejected,
)
from spark_impl.grouping.reports import MicroBatch, Work
from spark_impl.grouping.system import make_system, run_in_process, run_workloads

__all__ = [
    "Grouping",
    "GroupingStream",
    "MicroBatch",
    "Progress",
    "Step",
    "Work",
    "at_instances",
    "make_system",
    "merged_answers",
    "partial_aggregates",
    "pending",
    "progress",
    "rejected",
    "run_in_process",
    "run_workloads",
]
