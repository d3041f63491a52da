"""Room ``grouping`` on Spark: balanced routing of skewed streams (docs/grouping.md).

* :mod:`spark_impl.grouping.keys` hashes keys, counts them and tells heavy ones.
* :mod:`spark_impl.grouping.candidates` computes the instances that a key may go to.
* :mod:`spark_impl.grouping.router` routes the tuples of one sender.
* :mod:`spark_impl.grouping.windows` closes windows between micro-batches.
* :mod:`spark_impl.grouping.tasks` runs routers as Spark tasks.
* :mod:`spark_impl.grouping.instances` runs work at instances, with a state, timed; and aggregates.
* :mod:`spark_impl.grouping.reports` tells the driver what tasks have written.
* :mod:`spark_impl.grouping.store` keeps the progress of a stream.
* :mod:`spark_impl.grouping.query` is the interface for users.
"""

from spark_impl.grouping.instances import (
    MicroBatch,
    Step,
    at_instances,
    merged_answers,
    partial_aggregates,
)
from spark_impl.grouping.query import (
    Grouping,
    GroupingProblem,
    GroupingStream,
    Progress,
    Work,
    progress,
    rejected,
)
from spark_impl.grouping.system import make_system, run_in_process, run_workloads

__all__ = [
    "Grouping",
    "GroupingProblem",
    "GroupingStream",
    "MicroBatch",
    "Progress",
    "Step",
    "Work",
    "at_instances",
    "make_system",
    "merged_answers",
    "partial_aggregates",
    "progress",
    "rejected",
    "run_in_process",
    "run_workloads",
]
